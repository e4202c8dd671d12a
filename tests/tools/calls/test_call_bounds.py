"""Bounds on what a call may request: the depth of a path, the names of arguments, the entries of a tree."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pytest

from weakfs import Capability, HostFilesystem, InMemoryFilesystem, Session, ToolResult, Toolset
from weakfs.filesystem import Limits

DEEP = "/".join(["a"] * 32_000)


def toolset() -> Toolset:
    made = Toolset(Session(session_id="s"))
    made.filesystem.write("/a/b", "x")
    return made


def told(name: str, arguments: dict[str, object], *, most: int) -> ToolResult[object]:
    """Make a tool call that may make a limited number of calls of Python functions."""
    tools = toolset()
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"
        if made > most:
            raise AssertionError(f"more than {most} calls of functions")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return tools.call(name, arguments)
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": DEEP, "content": "x"}),
        ("read_file", {"path": DEEP}),
        ("edit_file", {"path": DEEP, "old_string": "x", "new_string": "y"}),
        ("ls", {"path": DEEP}),
        ("rm", {"path": DEEP}),
        ("mkdir", {"path": DEEP}),
        ("stat", {"path": DEEP}),
    ],
)
def test_the_depth_of_a_path_is_checked_first(name: str, arguments: dict[str, object]) -> None:
    result = told(name, arguments, most=20_000)

    assert not result.success
    assert "segments deep" in result.message
    assert len(result.message) < 400


def test_the_first_of_many_unknown_arguments_are_named_and_the_rest_counted() -> None:
    unknown: dict[str, object] = {f"pat{number}": 1 for number in range(16_000)}

    result = told("read_file", {"path": "/a/b", **unknown}, most=20_000)

    assert result.error_code == "invalid_arguments"
    assert "pat9: no such argument" in result.message
    assert "pat10" not in result.message
    assert "15990 more unknown names" in result.message


def test_copying_a_tree_into_itself_repeatedly_reaches_the_entry_quota() -> None:
    tools = toolset()
    tools.filesystem.write("/0/a", "x")

    answers = [
        tools.call("cp", {"source": f"/{level}", "destination": f"/{level + 1}/{half}"})
        for level in range(22)
        for half in "ab"
    ]

    assert "quota_exceeded" in {answer.error_code for answer in answers}
    assert tools.filesystem.statistics().node_count <= 1_000_000 == Limits.tools().max_node_count


LINE = b"a line of words\n"


def scanned(files: dict[str, bytes], arguments: dict[str, object], capability: Capability) -> object:
    session = Session(session_id="s")
    for path, content in files.items():
        InMemoryFilesystem(session).write_bytes(path, content)
    result = Toolset(session, capability=capability).call("grep", arguments)
    assert result.success, result.message
    return result.value


@pytest.mark.parametrize("path", ["/", "/log"])
def test_a_search_in_one_large_file_stops_at_max_scan_bytes(path: str) -> None:
    found = scanned(
        {"/log": LINE * 1000}, {"pattern": "words", "path": path}, Capability(max_scan_bytes=10 * len(LINE) + 5)
    )

    assert getattr(found, "match_count", None) == 10
    assert getattr(found, "truncated", None) is True


@pytest.mark.parametrize("path", ["/", "/log"])
def test_a_search_that_may_not_scan_a_whole_line_is_reported_as_cut(path: str) -> None:
    found = scanned({"/log": LINE * 10}, {"pattern": "words", "path": path}, Capability(max_scan_bytes=5))

    assert getattr(found, "match_count", None) == 0
    assert getattr(found, "truncated", None) is True


def test_a_search_in_a_file_of_exactly_max_scan_bytes_is_complete() -> None:
    found = scanned({"/log": LINE * 10}, {"pattern": "words"}, Capability(max_scan_bytes=10 * len(LINE)))

    assert getattr(found, "match_count", None) == 10
    assert getattr(found, "truncated", None) is False


def test_a_search_in_one_file_is_refused_if_no_file_may_be_scanned() -> None:
    found = scanned({"/log": LINE}, {"pattern": "words", "path": "/log"}, Capability(max_scan_files=0))

    assert getattr(found, "match_count", None) == 0
    assert getattr(found, "truncated", None) is True


def test_only_bytes_that_may_be_scanned_are_read_from_an_external_file(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with open(tmp_path / "root/log", "wb") as stream:
        stream.write(LINE * 10)
        # Larger than any memory.
        stream.truncate(1 << 42)
    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    tools = Toolset(files.session, files, capability=Capability(max_scan_bytes=1 << 20))

    for path in ("/", "/log"):
        result = tools.call("grep", {"pattern": "nowhere", "path": path})
        assert result.success, result.message
        assert getattr(result.value, "truncated", None) is True


def test_a_deadline_ends_a_search_in_one_large_file() -> None:
    ticks = count(0, 10**9)
    session = Session(session_id="s", clock=lambda: next(ticks))
    files = InMemoryFilesystem(session, limits=Limits(max_file_size=None))
    files.write_bytes("/log", LINE * (1 << 20))

    result = Toolset(session, files).call("grep", {"pattern": "nowhere"}, deadline=session.now() + 8 * 10**9)

    assert result.error_code == "deadline_exceeded"


LINES = "".join(f"line {number}\n" for number in range(200))
MANY_CHANGES: dict[str, tuple[str, dict[str, object]]] = {
    "edits": (
        "edit_file",
        {"path": "/f", "edits": [{"old_string": f"line {n}\n", "new_string": "x\n"} for n in range(200)]},
    ),
    "hunks": (
        "apply_patch",
        {
            "patch": "*** Begin Patch\n*** Update File: /f\n"
            + "".join(f"@@\n-line {n}\n+x\n" for n in range(200))
            + "*** End Patch\n"
        },
    ),
    "blocks": (
        "apply_patch",
        {
            "patch_format": "search_replace",
            "patch": "/f\n" + "".join(f"<<<<<<< SEARCH\nline {n}\n=======\nx\n>>>>>>> REPLACE\n" for n in range(200)),
        },
    ),
    "files": (
        "apply_patch",
        {
            "patch": "*** Begin Patch\n"
            + "".join(f"*** Update File: /f\n*** Move to: /f\n@@\n-line {n}\n+x\n" for n in range(200))
            + "*** End Patch\n"
        },
    ),
}


@pytest.mark.parametrize("case", MANY_CHANGES)
def test_a_deadline_ends_an_edit_and_a_patch_between_their_parts(case: str) -> None:
    ticks = count(0, 10**9)
    session = Session(session_id="s", clock=lambda: next(ticks))
    tools = Toolset(session)
    tools.filesystem.write("/f", LINES)
    name, arguments = MANY_CHANGES[case]

    result = tools.call(name, arguments, deadline=session.now() + 100 * 10**9)

    assert result.error_code == "deadline_exceeded"
    assert tools.filesystem.read("/f").content == LINES


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"path": "/large"}),
        ("read_file", {"path": "/large", "offset": 2, "limit": 1}),
        ("read_file", {"path": "/large", "offset_bytes": 5}),
        ("read_file", {"path": "/large", "offset_bytes": 5, "max_bytes": 1 << 40}),
        ("read_file", {"path": "/large", "encoding": "bytes"}),
        ("edit_file", {"path": "/large", "old_string": "a", "new_string": "b"}),
        (
            "apply_patch",
            {"patch": "*** Begin Patch\n*** Update File: /large\n@@\n-a\n+b\n*** End Patch\n"},
        ),
        (
            "apply_patch",
            {"patch": "/large\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "patch_format": "search_replace"},
        ),
    ],
)
def test_a_file_that_does_not_fit_into_memory_is_not_read_as_a_whole(
    name: str, arguments: dict[str, object], tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with (root / "large").open("wb") as file:
        file.truncate(1 << 40)
    session = Session(session_id="s")
    tools = Toolset(session, HostFilesystem(root, session=session, store=tmp_path / "store"))

    result = tools.call(name, arguments)

    assert result.error_code == "file_too_large", result.message
    assert (root / "large").stat().st_size == 1 << 40
    assert tools.call("read_file", {"path": "/large", "offset_bytes": 1 << 39, "max_bytes": 3}).success
