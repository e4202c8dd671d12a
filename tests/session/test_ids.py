"""Ids under the id of a session: calls are numbered apart from everything else, and no id is given twice."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset


def test_neither_snapshots_nor_forks_leave_gaps_between_the_numbers_of_calls() -> None:
    session = Session(session_id="s")
    session.snapshot()
    fork = session.fork()

    assert [session.next_id("call"), fork.session_id, session.next_id("call")] == ["s/call1", "s/f2", "s/call2"]
    assert session.snapshot().snapshot_id == "s/s3"


def test_a_fork_named_like_a_call_has_the_id_of_no_call() -> None:
    session = Session(session_id="s")

    assert [session.next_id("call"), session.fork("call").session_id] == ["s/call1", "s/call2"]
    assert session.next_id("call") == "s/call3"


@pytest.mark.parametrize("calls", [1, 9])
def test_a_loaded_session_gives_no_id_again(calls: int) -> None:
    session = Session(session_id="s")
    dropped = session.snapshot()
    session.drop_snapshot(dropped)
    used = {dropped.snapshot_id, *(session.snapshot().snapshot_id for _ in range(2))}
    used |= {session.next_id("call") for _ in range(calls)}

    again = Session.from_bytes(session.to_bytes())

    # A file holds only the highest number.
    assert again.next_id("call") == f"s/call{max(calls, 3) + 1}"
    assert not {again.snapshot().snapshot_id, again.next_id("s"), again.next_id("call")} & used


def test_a_copy_continues_with_the_numbers_of_the_original() -> None:
    session = Session(session_id="s")
    session.snapshot()
    for again in (copy.copy(session), session.replayed()):
        assert (again.next_id("call"), again.next_id("s")) == ("s/call1", "s/s2")


def test_the_ids_in_merged_forks_differ_from_those_of_the_session() -> None:
    session = Session(session_id="s")
    files = InMemoryFilesystem(session)
    tools, forks = Toolset(session, files), [session.fork(), session.fork()]
    for number, each in enumerate([session, *forks]):
        tools = Toolset(each, files.bind(each))
        tools.call("write_file", {"path": f"/{number}", "content": "x"})
        each.snapshot()
    for fork in forks:
        session.merge(fork)

    causes = [record.cause for record in session.records if record.cause is not None]
    assert sorted(set(causes)) == ["s/call1", "s/f1/call1", "s/f2/call1"]
    assert len({one.snapshot_id for one in session.snapshots}) == 3


def test_an_open_session_continues_the_numbers_that_its_storage_holds(tmp_path: Path) -> None:
    with Session.open(tmp_path / "sessions", "s") as session:
        tools = Toolset(session, InMemoryFilesystem(session))
        tools.call("write_file", {"path": "/a", "content": "x"})
        session.snapshot("one")
        tools.call("write_file", {"path": "/a", "content": "y"})
        calls = [record.cause or "" for record in session.records]
        assert [one.rpartition("/")[2].split("-")[0] for one in calls] == ["call1"] * 2 + ["call2"] * 2
        taken = session.snapshots[0].snapshot_id
    with Session.open(tmp_path / "sessions", "s") as session:
        Toolset(session, InMemoryFilesystem(session)).call("write_file", {"path": "/a", "content": "z"})
        assert "/call3" in str(session.records[-1].cause)
        assert session.snapshot("two").snapshot_id != taken


def test_ids_that_another_process_stored_meanwhile_are_not_given_again(tmp_path: Path) -> None:
    with Session.open(tmp_path / "sessions", "s") as session, Session.open(tmp_path / "sessions", "s") as other:
        # Not stored yet.
        for _ in range(10):
            session.next_id("call")
        taken = other.snapshot()
        session.refresh()
        assert session.snapshot().snapshot_id != taken.snapshot_id
        assert len({one.snapshot_id for one in session.snapshots}) == 2
