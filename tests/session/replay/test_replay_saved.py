"""Saved sessions are replayed: from a file of any version, whatever the hash seed, and after an interrupt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.interrupting import every_place, interrupted_at
from tests.session.files.test_load_fixtures import ALL, loaded
from tests.session.ledger import Added, Noted, Put, Total, make_session, notes_of, shelf_of, total_of
from weakfs import Session
from weakfs.reducers import FileTree
from weakfs.session.replay.verification import Comparison, Moment, Rebuilding

# An interrupt that comes while a generator is being closed cannot be raised anywhere.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def moments_of(session: Session) -> list[Moment]:
    rules, line, own = session._parts()
    return list(Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments())


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_session_that_an_earlier_version_saved_is_replayed(path: Path) -> None:
    session = loaded(path)

    again = session.replayed()

    same = Comparison(session._parts()[0])
    assert same.differing(session._table("state"), again._table("state")) == ()
    assert same.differing(session._table("log"), again._table("log")) == ()
    assert again.snapshots == session.snapshots
    for seq in range(session.seq - len(session.records), session.seq + 1):
        one, other = session.at(seq)[FileTree].latest(), again.at(seq)[FileTree].latest()
        assert one is not None
        assert other is not None
        assert (one.digest, one.fingerprint) == (other.digest, other.fingerprint)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_state_that_an_earlier_version_saved_is_what_its_records_give(path: Path) -> None:
    found = moments_of(loaded(path))

    assert [one for one in found if not one.is_same] == []
    # A snapshot from before the first record that is kept.
    assert [(one.kind, one.tag) for one in found if one.rebuilt is None] == [("snapshot", "early")]


REPLAY = """
import sys
from itertools import count
from weakfs import InMemoryFilesystem, Session
session = Session(session_id="s", clock=count(1).__next__)
files = InMemoryFilesystem(session)
for number in range(100):
    files.write(f"/wide/{number}", f"{number}")
session.snapshot()
fork = session.fork()
files.bind(fork).move("/wide", "/moved")
files.write("/own", "x")
session.merge(fork)
session.rollback(50)
files.copy("/wide", "/copied")
session.replayed().save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_replay_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    saved: set[bytes] = set()
    for seed in ("0", "1", "2"):
        file = tmp_path / f"{seed}.json"
        subprocess.run(
            [sys.executable, "-c", REPLAY, str(file)], env={**os.environ, "PYTHONHASHSEED": seed}, check=True
        )
        saved.add(file.read_bytes())

    assert len(saved) == 1


def test_an_interrupt_anywhere_in_a_replay_leaves_it_complete_or_absent() -> None:
    session = make_session()
    session.dispatch(Added(1))
    session.snapshot("kept")
    fork = session.fork()
    fork.dispatch(Put("a", 1))
    fork.dispatch(Noted("n"))
    session.merge(fork)
    session.rollback("kept")
    records = session.records

    def attempt(place: int) -> bool:
        again = make_session()
        there = interrupted_at(place, lambda: again.replay(records))

        if again.seq:
            assert list(again.records) == list(records)
            assert again.snapshots == session.snapshots
            assert (total_of(again), shelf_of(again), notes_of(again)) == (1, {}, ["n"])
        else:
            assert again.snapshots == ()
            assert again[Total].latest() == Total(0)
        again.dispatch(Added(1))
        return there

    every_place(attempt)
