"""The timeline: which rows a session has, and that their files are the real differences."""

from __future__ import annotations

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history.timeline_rows import ChangedFile, TimelineRow, timeline
from weakfs.history.tree_patch import count_lines
from weakfs.reducers import FileTree
from weakfs.reducers.tree.node import EMPTY_TREE


@pytest.fixture
def session() -> Session:
    ticks = iter(range(0, 10**15, 10**6))
    session = Session(session_id="main", clock=ticks.__next__)
    tools = Toolset(session)
    tools.call("write_file", {"path": "/a.py", "content": "one\ntwo\n"}, call_id="c1", caller="ann")
    tools.call("edit_file", {"path": "/a.py", "old_string": "none", "new_string": "x"}, call_id="c2")
    fork = session.fork("idea")
    Toolset(fork).call("write_file", {"path": "/idea.py", "content": "x\n"}, call_id="f1", caller="bob")
    session.snapshot("before")
    tools.call("mv", {"source": "/a.py", "destination": "/b.py"}, call_id="c3")
    session.merge(fork)
    InMemoryFilesystem(session).write("/own.txt", "own\n")
    session.rollback(2)
    return session


def rows_of(session: Session) -> list[TimelineRow]:
    return list(timeline(session))


def test_each_call_change_merge_rollback_and_snapshot_has_a_row(session: Session) -> None:
    assert [(row.kind, row.number, row.action, row.target) for row in rows_of(session)] == [
        ("call", 1, "write_file", "/a.py"),
        ("call", 2, "edit_file", "/a.py"),
        ("snapshot", None, "snapshot", "before"),
        ("call", 3, "mv", "/a.py to /b.py"),
        ("merge", None, "session/merged", "3 records of main/idea1"),
        ("call", 4, "write_file", "/idea.py"),
        ("change", None, "fs/file_written", "/own.txt"),
        ("rollback", None, "session/rolled_back", "to record 2"),
    ]


def test_rows_show_caller_target_and_status(session: Session) -> None:
    by_name = {row.name: row for row in rows_of(session)}
    assert (by_name["c1"].caller, by_name["c1"].fork, by_name["c1"].status) == ("ann", None, "ok")
    assert (by_name["f1"].caller, by_name["f1"].fork) == ("bob", "main/idea1")
    assert by_name["c2"].status == "edit_target_not_found"
    assert by_name["c1"].ended_at > by_name["c1"].at
    assert (by_name["c2"].first, by_name["c2"].files) == (None, ())


def test_rows_name_the_files_and_their_lines(session: Session) -> None:
    by_name = {row.name: row for row in rows_of(session)}
    assert by_name["c1"].files == (ChangedFile("/a.py", "added", None, 2, 0, None),)
    assert by_name["c3"].files == (ChangedFile("/b.py", "moved", "/a.py", 0, 0, None),)
    assert by_name["f1"].files == (ChangedFile("/idea.py", "added", None, 1, 0, None),)
    back = rows_of(session)[-1]
    assert {(one.change, one.path, one.source) for one in back.files} == {
        ("moved", "/a.py", "/b.py"), ("removed", "/idea.py", None), ("removed", "/own.txt", None),
    }  # fmt: skip


def test_the_line_counts_of_all_rows_add_up() -> None:
    session = Session(session_id="main")
    tools = Toolset(session)
    for number in range(30):
        tools.call("write_file", {"path": f"/{number % 5}", "content": "line\n" * (number % 7)})
    lines = [row.lines for row in timeline(session)]
    final = session[FileTree].latest()
    assert final is not None
    counted = count_lines(EMPTY_TREE, final)
    assert counted is not None
    assert sum(added - removed for added, removed in lines) == counted[0]


def test_compacted_work_has_rows_without_files(session: Session) -> None:
    session.compact(keep=0)
    rows = rows_of(session)
    assert [row.number for row in rows if row.kind == "call"] == [1, 2, 3, 4]
    assert all(row.files == () for row in rows)


def test_an_empty_session_has_no_rows() -> None:
    assert rows_of(Session(session_id="empty")) == []
