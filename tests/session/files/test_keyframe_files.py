"""Keyframes in session files: reading a loaded history from them, and detecting wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from attrs import frozen

from tests.session.ledger import Noted
from weakfs import InMemoryFilesystem, Registry, Session, SessionFileError, event
from weakfs.reducers import FileTree
from weakfs.session import append_all
from weakfs.session.history.keyframes import GAP
from weakfs.session.replay.verification import Rebuilding
from weakfs.session.slices.slice import Declaration

RECORDS = 3 * GAP
REGISTRY = Registry().with_types(Noted).with_slices(Declaration(Noted, kind="log", reducers={Noted: append_all}))


@event("keyframe_files/seen")
@frozen
class Seen:
    """A slice that a program installs after loading."""

    count: int = 0


@event("keyframe_files/unused")
@frozen
class Unused:
    """An event that no record of the file holds."""


def write_history(session: Session) -> Session:
    files = InMemoryFilesystem(session)
    for number in range(RECORDS // 2):
        files.write_bytes(f"/{number % 7}/{number % 5}", b"content %d" % number)
        session.dispatch(Noted(f"note {number}"))
    return session


@pytest.fixture(scope="module")
def session() -> Session:
    return write_history(Session(session_id="s", registry=REGISTRY, clock=lambda: 1))


@pytest.fixture
def path(session: Session, tmp_path: Path) -> Path:
    session.save(tmp_path / "s.json")
    return tmp_path / "s.json"


def load(path: Path) -> Session:
    return Session.load(path, registry=REGISTRY)


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change what a file holds, and make its checksum fit."""
    document = orjson.loads(path.read_bytes())
    change(document)
    head = {key: document.pop(key) for key in ("format", "version", "sha256")}
    head["sha256"] = sha256(orjson.dumps(document)[1:]).hexdigest()
    path.write_bytes(orjson.dumps({**head, **document}))
    return path


def moments(session: Session) -> list[tuple[str, int, tuple[str, ...]]]:
    rules, line, own = session._parts()
    found = Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments()
    return [(moment.kind, moment.seq, moment.differing) for moment in found]


@pytest.mark.slow
def test_a_loaded_session_holds_the_keyframes_and_every_moment(session: Session, path: Path) -> None:
    loaded = load(path)

    held = loaded._parts()[1].all_lasting
    assert [mark.seq for mark in held] == [mark.seq for mark in session._parts()[1].all_lasting]
    assert len(held) >= 2
    for seq in [*range(0, RECORDS, 611), held[0].seq - 1, held[0].seq, held[0].seq + 1, RECORDS - 1]:
        one, other = session.at(seq), loaded.at(seq)
        before, after = one[FileTree].latest(), other[FileTree].latest()
        assert before is not None
        assert after is not None
        assert before.fingerprint == after.fingerprint
        assert one[Noted].all() == other[Noted].all()


def test_a_session_saved_again_has_the_same_bytes_even_after_its_history_was_read(path: Path, tmp_path: Path) -> None:
    loaded = load(path)

    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    loaded.at(RECORDS - 3)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_loaded_session_adds_keyframes_to_those_that_it_loaded(path: Path) -> None:
    loaded = load(path)
    known = len(loaded._parts()[1].all_lasting)

    write_history(loaded)

    numbers = [mark.seq for mark in loaded._parts()[1].all_lasting]
    assert len(numbers) > known
    assert numbers == sorted({*numbers})


@pytest.mark.slow
def test_a_file_without_keyframes_is_read(path: Path) -> None:
    def forget(document: dict[str, Any]) -> None:
        del document["checkpoints"]

    expected = load(path).at(RECORDS - 3)[FileTree].latest()
    found = load(changed(path, forget)).at(RECORDS - 3)[FileTree].latest()

    assert expected is not None
    assert found is not None
    assert found.fingerprint == expected.fingerprint


def test_a_slice_that_no_record_changes_leaves_the_keyframes_of_a_file_as_they_are(path: Path) -> None:
    loaded = load(path)
    held = loaded._parts()[1].all_lasting

    loaded.install(Seen, initial=Seen(7))
    loaded[Seen].register(Unused, lambda value, _: Seen(value.count + 1))

    assert loaded._parts()[1].all_lasting == held
    assert loaded.at(RECORDS - 3)[Seen].latest() == Seen(7)


def test_reading_between_the_keyframes_of_a_file_adds_no_others(path: Path) -> None:
    loaded = load(path)

    for seq in range(0, RECORDS, 997):
        loaded.at(seq)

    assert not loaded._parts()[1].past.made


def test_a_slice_installed_after_loading_does_not_see_the_records_of_the_file(path: Path) -> None:
    loaded = Session.load(path, registry=REGISTRY.with_types(Seen))
    loaded.install(Seen, initial=Seen())
    loaded[Seen].register(Noted, lambda value, _: Seen(value.count + 1))
    loaded.dispatch(Noted("after loading"))
    loaded.dispatch(Noted("after loading"))

    found = [loaded.at(seq)[Seen].latest() for seq in (0, 2, RECORDS - 2, RECORDS, RECORDS + 1, RECORDS + 2)]
    assert found == [Seen(0), Seen(0), Seen(0), Seen(0), Seen(1), Seen(2)]
    loaded.rollback(RECORDS - 2)
    assert loaded[Seen].latest() == Seen(0)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("seq", 0, r"\$\.checkpoints\[1\]\.seq"),
        ("seq", RECORDS + 1, r"\$\.checkpoints\[1\]\.seq"),
        ("seq", "7", r"\$\.checkpoints\[1\]\.seq"),
        ("state", [10_000], r"\$\.checkpoints\[1\]\.state\[0\]"),
        ("logs", None, r"\$\.checkpoints\[1\]\.logs"),
        ("more", 1, r"\$\.checkpoints\[1\]"),
    ],
)
def test_an_impossible_keyframe_is_refused(path: Path, field: str, value: object, where: str) -> None:
    def change(document: dict[str, Any]) -> None:
        document["checkpoints"][1][field] = value

    with pytest.raises(SessionFileError, match=where):
        load(changed(path, change))


@pytest.mark.slow
def test_checking_a_session_compares_its_keyframes(path: Path) -> None:
    told = [one for one in moments(load(path)) if one[0] == "keyframe"]
    assert [differing for _, _, differing in told] == [()] * len(told)
    assert len(told) >= 2

    def lie(document: dict[str, Any]) -> None:
        document["checkpoints"][1]["state"] = document["state"]
        document["checkpoints"][0]["logs"] = document["logs"]

    found = [one for one in moments(load(changed(path, lie))) if one[2]]
    assert found == [("keyframe", told[0][1], ("ledger/noted",)), ("keyframe", told[1][1], ("fs/tree",))]


@pytest.mark.slow
def test_no_keyframe_in_a_file_is_among_the_records_of_a_merged_fork() -> None:
    session = Session(session_id="s", registry=REGISTRY)
    fork = write_history(session.fork())
    session.dispatch(Noted("meanwhile"))
    session.merge(fork)
    write_history(session)

    line = session._parts()[1]
    assert all(mark.seq >= 2 + RECORDS for mark in line.all_lasting)
    assert len(line.all_lasting) >= 2


@pytest.mark.slow
def test_compacting_drops_keyframes_of_dropped_records(path: Path, tmp_path: Path) -> None:
    loaded = load(path)
    held = [mark.seq for mark in loaded._parts()[1].all_lasting]

    loaded.compact(keep=RECORDS - held[0])
    loaded.save(tmp_path / "compacted.json")

    assert [mark.seq for mark in load(tmp_path / "compacted.json")._parts()[1].all_lasting] == held[1:]
    assert all(differing == () for _, _, differing in moments(load(tmp_path / "compacted.json")))
