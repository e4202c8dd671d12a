"""Every failure of every tool leaves the files exactly as they were, and is written down."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from attrs import evolve, frozen

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import FilesystemSnapshot, Limits
from weakfs.session import RolledBack, Session
from weakfs.tools import DEFAULT_TOOLS, Tool, ToolCalls, ToolContext, ToolResult, Toolset
from weakfs.tools.errors import classify

SMALL = Limits(max_file_size=100, max_path_depth=4, max_segment_length=20, max_total_size=200, max_node_count=9)
LONG = "x" * 101
DEEP = "/1/2/3/4/5"
NAME = "/" + "n" * 21

# Tool, arguments, status, error code: in a filesystem of `populate`, under the limits of SMALL.
FAILURES: list[tuple[str, dict[str, object], str, str]] = [
    ("write_file", {"path": "/a.txt/b", "content": ""}, "error", "not_a_directory"),
    ("write_file", {"path": "/dir", "content": ""}, "is_directory", "is_directory"),
    ("write_file", {"path": "/", "content": ""}, "is_directory", "is_directory"),
    ("write_file", {"path": "../up", "content": ""}, "forbidden", "path_forbidden"),
    ("write_file", {"path": "/link", "content": ""}, "forbidden", "path_forbidden"),
    ("write_file", {"path": "/link/x", "content": ""}, "forbidden", "path_forbidden"),
    ("write_file", {"path": "/nul\0", "content": ""}, "error", "invalid_input"),
    ("write_file", {"path": "/a.txt", "content": "", "mode": "create"}, "conflict", "already_exists"),
    ("write_file", {"path": "/n/e/w", "content": "", "create_parents": False}, "not_found", "not_found"),
    ("write_file", {"path": "/b", "content": LONG}, "error", "file_too_large"),
    ("write_file", {"path": "/a.txt", "content": LONG[:98], "mode": "append"}, "error", "file_too_large"),
    ("write_file", {"path": DEEP, "content": ""}, "error", "path_too_long"),
    ("write_file", {"path": NAME, "content": ""}, "error", "path_too_long"),
    ("write_file", {"path": "/b", "content": LONG[:99]}, "error", "quota_exceeded"),
    ("write_file", {"path": "/p/q/r/s", "content": ""}, "error", "quota_exceeded"),
    ("write_file", {"path": "/b"}, "error", "invalid_arguments"),
    ("write_file", {"path": "/b", "content": "\ud800"}, "error", "invalid_arguments"),
    ("edit_file", {"path": "/none", "old_string": "a", "new_string": "b"}, "not_found", "not_found"),
    ("edit_file", {"path": "/dir", "old_string": "a", "new_string": "b"}, "is_directory", "is_directory"),
    ("edit_file", {"path": "/link", "old_string": "a", "new_string": "b"}, "forbidden", "path_forbidden"),
    ("edit_file", {"path": "/a.txt", "old_string": "zz", "new_string": "b"}, "not_found", "edit_target_not_found"),
    ("edit_file", {"path": "/a.txt", "old_string": "a", "new_string": "b"}, "ambiguous", "ambiguous_matches"),
    ("edit_file", {"path": "/a.txt", "old_string": "", "new_string": "b"}, "error", "invalid_input_empty_old_string"),
    ("edit_file", {"path": "/a.txt", "old_string": "a", "new_string": "a"}, "error", "invalid_input_no_change"),
    ("edit_file", {"path": "/a.txt", "old_string": "aa", "new_string": LONG}, "error", "file_too_large"),
    ("edit_file", {"path": "/binary", "old_string": "a", "new_string": "b"}, "error", "not_utf8"),
    ("rm", {"path": "/none"}, "not_found", "not_found"),
    ("rm", {"path": "/dir"}, "error", "directory_not_empty"),
    ("rm", {"path": "/"}, "forbidden", "path_forbidden"),
    ("rm", {"path": "/", "recursive": True}, "forbidden", "path_forbidden"),
    ("rm", {"path": "/a.txt/x"}, "error", "not_a_directory"),
    ("rm", {"path": "/dir", "recursive": "yes"}, "error", "invalid_arguments"),
    ("mkdir", {"path": "/a.txt"}, "conflict", "already_exists"),
    ("mkdir", {"path": "/dir", "exist_ok": False}, "conflict", "already_exists"),
    ("mkdir", {"path": "/n/e/w", "parents": False}, "not_found", "not_found"),
    ("mkdir", {"path": "/a.txt/x"}, "error", "not_a_directory"),
    ("mkdir", {"path": DEEP}, "error", "path_too_long"),
    ("mkdir", {"path": "/p/q/r/s"}, "error", "quota_exceeded"),
    ("mkdir", {"path": "/link/x"}, "forbidden", "path_forbidden"),
    ("mv", {"source": "/none", "destination": "/x"}, "not_found", "not_found"),
    ("mv", {"source": "/dir", "destination": "/dir/in"}, "error", "invalid_input"),
    ("mv", {"source": "/a.txt", "destination": "/dir"}, "is_directory", "is_directory"),
    ("mv", {"source": "/dir", "destination": "/a.txt"}, "error", "not_a_directory"),
    ("mv", {"source": "/dir", "destination": "/e/e/e"}, "error", "path_too_long"),
    ("mv", {"source": "/a.txt", "destination": NAME}, "error", "path_too_long"),
    ("mv", {"source": "/a.txt", "destination": "../x"}, "forbidden", "path_forbidden"),
    ("cp", {"source": "/none", "destination": "/x"}, "not_found", "not_found"),
    ("cp", {"source": "/dir", "destination": "/dir/in"}, "error", "invalid_input"),
    ("cp", {"source": "/a.txt", "destination": "/dir"}, "is_directory", "is_directory"),
    ("cp", {"source": "/binary", "destination": "/binary2"}, "error", "quota_exceeded"),
    ("cp", {"source": "/dir", "destination": "/dir2"}, "error", "quota_exceeded"),
    ("cp", {"source": "/a.txt", "destination": "/a.txt/x"}, "error", "not_a_directory"),
    ("shell", {"command": "true", "workdir": "/none"}, "not_found", "not_found"),
    ("shell", {"command": "true", "workdir": "/a.txt"}, "error", "not_a_directory"),
    ("shell", {"command": "true", "workdir": "/link"}, "forbidden", "path_forbidden"),
    ("shell", {"command": "true", "workdir": ".."}, "forbidden", "path_forbidden"),
    ("shell", {"command": " \n"}, "error", "invalid_arguments"),
    ("shell", {"command": "true\0"}, "error", "invalid_input"),
    ("shell", {"command": "#" * 140_000}, "error", "invalid_input"),
    ("shell", {"command": "true", "timeout": 0}, "error", "invalid_arguments"),
    ("read_file", {"path": "/none"}, "not_found", "not_found"),
    ("read_file", {"path": "/binary"}, "error", "not_utf8"),
    ("ls", {"path": "/a.txt"}, "error", "not_a_directory"),
    ("stat", {"path": "/none"}, "not_found", "not_found"),
    ("exists", {"path": "../x"}, "forbidden", "path_forbidden"),
    ("glob", {"pattern": "["}, "invalid_pattern", "invalid_pattern"),
    ("grep", {"pattern": "("}, "invalid_regex", "invalid_regex"),
    ("no_such_tool", {}, "error", "unknown_tool"),
]

WRITING: dict[str, dict[str, object]] = {
    "write_file": {"path": "/b", "content": "x"},
    "edit_file": {"path": "/a.txt", "old_string": "aa", "new_string": "b"},
    "rm": {"path": "/dir", "recursive": True},
    "mkdir": {"path": "/new/er"},
    "mv": {"source": "/a.txt", "destination": "/b.txt"},
    "cp": {"source": "/a.txt", "destination": "/b.txt"},
    "shell": {"command": "rm -r dir; echo x > b"},
}


def populate(session: Session, **options: Any) -> InMemoryFilesystem:
    fs = InMemoryFilesystem(session)
    fs.write("/a.txt", "aa\na\n")
    fs.write("/dir/sub/file", "content")
    fs.mkdir("/empty")
    fs.write_bytes("/binary", b"a\xff" * 50)
    fs.symlink("a.txt", "/link")
    fs.chmod("/a.txt", 0o600)
    return InMemoryFilesystem(session, **options)


def ids(case: object) -> str:
    return str(case)[:60]


@pytest.mark.parametrize(("name", "arguments", "status", "code"), FAILURES, ids=ids)
def test_a_failed_call_leaves_everything_as_it_was(
    name: str, arguments: dict[str, object], status: str, code: str
) -> None:
    session = Session(session_id="s")
    toolset = Toolset(session, populate(session, limits=SMALL))
    before, fingerprint = toolset.filesystem.tree(), toolset.filesystem.tree().fingerprint

    result = toolset.call(name, arguments, call_id="c1")

    assert (result.success, result.status, result.error_code) == (False, status, code)
    assert toolset.filesystem.tree() is before
    assert toolset.filesystem.tree().fingerprint == fingerprint
    (call,) = session[ToolCalls].all()
    assert (call.call_id, call.status, call.error_code) == ("c1", status, code)
    assert call.summary == result.summary_text
    assert "\n" not in call.summary


def test_every_tool_has_a_failure_here() -> None:
    assert {name for name, *_ in FAILURES} > {tool.name for tool in DEFAULT_TOOLS}
    assert set(WRITING) == {tool.name for tool in DEFAULT_TOOLS if not tool.read_only}


@pytest.mark.parametrize("name", WRITING)
def test_a_read_only_filesystem_refuses_every_change(name: str) -> None:
    session = Session(session_id="s")
    toolset = Toolset(session, populate(session, read_only=True))
    before = toolset.filesystem.tree()

    result = toolset.call(name, WRITING[name])

    assert (result.status, result.error_code) == ("forbidden", "read_only")
    assert toolset.filesystem.tree() is before


@pytest.mark.parametrize("name", WRITING)
def test_a_call_that_fails_after_its_work_was_done_is_undone(name: str) -> None:
    (tool,) = [tool for tool in DEFAULT_TOOLS if tool.name == name]

    def fail_late(params: object, *, context: ToolContext) -> ToolResult[object]:
        assert tool.handler(params, context=context).success
        raise OSError(errno.ENOSPC, "no space left")

    session = Session(session_id="s")
    toolset = Toolset(session, populate(session), tools=[evolve(tool, handler=fail_late)])
    before, fingerprint = toolset.filesystem.tree(), toolset.filesystem.tree().fingerprint

    result = toolset.call(name, WRITING[name], call_id="c1")

    assert (result.status, result.error_code) == ("error", "no_space_left")
    assert toolset.filesystem.tree() is before
    assert toolset.filesystem.tree().fingerprint == fingerprint
    *made, rolled_back, _ = [record for record in session.records if record.cause == "c1"]
    assert made
    assert isinstance(rolled_back.event, RolledBack)
    (call,) = session[ToolCalls].all()
    assert (call.first_seq, call.last_seq) == (made[0].seq, rolled_back.seq)


@pytest.mark.parametrize("name", WRITING)
def test_a_call_that_works_can_be_undone_by_hand(name: str) -> None:
    session = Session(session_id="s")
    toolset = Toolset(session, populate(session))
    before = toolset.filesystem.tree().fingerprint

    assert toolset.call(name, WRITING[name]).success
    (call,) = session[ToolCalls].all()
    assert call.first_seq is not None
    assert toolset.filesystem.tree().fingerprint != before
    session.rollback(call.first_seq - 1)

    assert toolset.filesystem.tree().fingerprint == before


def test_a_custom_tool_that_restores_a_snapshot_and_fails_is_undone() -> None:
    session = Session(session_id="s")
    fs = populate(session)
    empty: FilesystemSnapshot = InMemoryFilesystem().snapshot()

    @frozen
    class Nothing:
        pass

    def restore(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        fs.restore(empty, foreign=True)
        assert fs.list() == ()
        return ToolResult("no", None, success=False)

    toolset = Toolset(session, fs, tools=[Tool("restore", "For tests.", Nothing, restore)])
    before = fs.tree()

    toolset.call("restore", {})

    assert fs.tree() is before


def test_errors_are_classified_by_number_first_and_then_by_the_nearest_class() -> None:
    class OwnMissing(FileNotFoundError):
        pass

    assert classify(OwnMissing("x")) == ("not_found", "not_found")
    assert classify(FileNotFoundError(errno.ENOENT, "x")) == ("not_found", "not_found")
    assert classify(PermissionError(errno.EPERM, "x")) == ("forbidden", "path_forbidden")
    assert classify(OSError(errno.EROFS, "x")) == ("forbidden", "read_only")
    assert classify(OSError(errno.ELOOP, "x")) == ("error", "too_many_links")
    assert classify(OSError("x")) == ("error", "io_error")
    assert classify(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x")) == ("error", "invalid_input")
    assert classify(KeyError("x")) == ("error", "internal_error")
