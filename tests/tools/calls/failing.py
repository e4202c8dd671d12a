"""Calls that fail, with the expected status and code of each, and calls that change something."""

from __future__ import annotations

import errno
from typing import Any

from attrs import evolve

from weakfs import Filesystem, InMemoryFilesystem, Limits, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.tools import ToolCall

SMALL = Limits(max_file_size=100, max_path_depth=4, max_segment_length=20, max_total_size=200, max_node_count=9)
LONG = "x" * 101
DEEP = "/1/2/3/4/5"
NAME = "/" + "n" * 21


def patch(*lines: str) -> str:
    """Return a V4A patch of these lines."""
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


PATCH = patch("*** Update File: a.txt", "@@", "-aa", "+b")
TWO_FILES = patch("*** Update File: a.txt", "@@", "-aa", "+b", "*** Update File: none", "@@", "-aa", "+b")

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
    ("apply_patch", {"patch": ""}, "parse_error", "patch_parse_error"),
    ("apply_patch", {"patch": PATCH.removesuffix("*** End Patch\n")}, "parse_error", "patch_parse_error"),
    ("apply_patch", {"patch": PATCH, "patch_format": "unified"}, "parse_error", "patch_parse_error"),
    ("apply_patch", {"patch": PATCH, "patch_format": "search_replace"}, "parse_error", "patch_parse_error"),
    ("apply_patch", {"patch": PATCH, "patch_format": "v5"}, "error", "invalid_arguments"),
    ("apply_patch", {"patch": PATCH.replace("-aa", "-zz")}, "reject", "hunk_rejected"),
    ("apply_patch", {"patch": PATCH.replace("-aa", "-zz"), "dry_run": True}, "reject", "hunk_rejected"),
    ("apply_patch", {"patch": TWO_FILES}, "not_found", "update_target_not_found"),
    ("apply_patch", {"patch": patch("*** Delete File: none")}, "not_found", "delete_target_not_found"),
    ("apply_patch", {"patch": PATCH.replace("a.txt", "binary")}, "error", "update_target_non_utf8"),
    ("apply_patch", {"patch": PATCH.replace("a.txt", "../up")}, "forbidden", "path_forbidden"),
    ("apply_patch", {"patch": PATCH.replace("a.txt", "link")}, "forbidden", "path_forbidden"),
    ("apply_patch", {"patch": patch("*** Add File: b", "+" + LONG)}, "error", "file_too_large"),
    ("apply_patch", {"patch": patch("*** Add File: b", "+" + LONG[:98])}, "error", "quota_exceeded"),
    ("apply_patch", {"patch": patch("*** Add File: " + NAME, "+1")}, "forbidden", "path_forbidden"),
    ("apply_patch", {"patch": {"blob_ref": "0" * 64}}, "error", "unknown_blob"),
    ("write_file", {"path": "/b", "content": {"blob_ref": "0" * 64}}, "error", "unknown_blob"),
    ("write_file", {"path": "/b", "content": {"base64": "?"}}, "error", "invalid_arguments"),
    ("read_file", {"path": "/none"}, "not_found", "not_found"),
    ("read_file", {"path": "/dir"}, "is_directory", "is_directory"),
    ("read_file", {"path": "/link"}, "forbidden", "path_forbidden"),
    ("read_file", {"path": "/a.txt", "offset": 1, "offset_bytes": 1}, "error", "invalid_arguments"),
    ("read_file", {"path": "/a.txt", "offset": 0}, "error", "invalid_arguments"),
    ("read_file", {"path": "/binary"}, "error", "not_utf8"),
    ("ls", {"path": "/a.txt"}, "error", "not_a_directory"),
    ("ls", {"path": "/none"}, "not_found", "not_found"),
    ("ls", {"path": ".."}, "forbidden", "path_forbidden"),
    ("stat", {"path": "/none"}, "not_found", "not_found"),
    ("stat", {"path": "../x"}, "forbidden", "path_forbidden"),
    ("exists", {"path": "../x"}, "forbidden", "path_forbidden"),
    ("glob", {"pattern": "["}, "invalid_pattern", "invalid_pattern"),
    ("glob", {"pattern": "*", "path": "/none"}, "not_found", "not_found"),
    ("glob", {"pattern": "*", "path": ".."}, "forbidden", "path_forbidden"),
    ("glob", {"pattern": "*", "path": "/a.txt"}, "error", "not_a_directory"),
    ("grep", {"pattern": "("}, "invalid_regex", "invalid_regex"),
    ("grep", {"pattern": "(?=a)"}, "invalid_regex", "invalid_regex"),
    ("grep", {"pattern": "a", "glob": "["}, "invalid_pattern", "invalid_pattern"),
    ("grep", {"pattern": "a", "path": "/none"}, "not_found", "not_found"),
    ("grep", {"pattern": "a", "path": "/link"}, "forbidden", "path_forbidden"),
    ("no_such_tool", {}, "error", "unknown_tool"),
]

WRITING: dict[str, dict[str, object]] = {
    "write_file": {"path": "/b", "content": "x"},
    "edit_file": {"path": "/a.txt", "old_string": "aa", "new_string": "b"},
    "apply_patch": {"patch": PATCH},
    "rm": {"path": "/dir", "recursive": True},
    "mkdir": {"path": "/new/er"},
    "mv": {"source": "/a.txt", "destination": "/b.txt"},
    "cp": {"source": "/a.txt", "destination": "/b.txt"},
    "shell": {"command": "rm -r dir; echo x > b"},
}


def fill(fs: Filesystem) -> None:
    """Create the files that the calls below use."""
    fs.write("/a.txt", "aa\na\n")
    fs.write("/dir/sub/file", "content")
    fs.mkdir("/empty")
    fs.write_bytes("/binary", b"a\xff" * 50)
    fs.symlink("a.txt", "/link")
    fs.chmod("/a.txt", 0o600)


def populate(session: Session, **options: Any) -> InMemoryFilesystem:
    """Return files in memory, made without the limits of `options`."""
    fill(InMemoryFilesystem(session))
    return InMemoryFilesystem(session, **options)


def failing_late(tool: Tool) -> Tool:
    """Return a tool whose handler does its work and then fails."""

    def handler(params: object, *, context: ToolContext) -> ToolResult[object]:
        done = tool.handler(params, context=context)
        assert isinstance(done, ToolResult)
        assert done.success
        raise OSError(errno.ENOSPC, "no space left")

    return evolve(tool, handler=handler)


def last_call(tools: Toolset) -> ToolCall:
    """Return the last call that the session of a toolset recorded."""
    found = tools.session[ToolCall].latest()
    assert found is not None
    return found
