"""Bounds of a capability: how much one call reads, changes and returns."""

from __future__ import annotations

import pytest

from tests.tools.permissions.guarded_files import SECRETS, SOURCES, handled, toolset
from weakfs import (
    Capability,
    Filesystem,
    Policy,
    PolicyRule,
    ToolResult,
)


def test_reads_are_clamped_to_whole_lines(files: Filesystem) -> None:
    files.write("/src/long.txt", "".join(f"line {n}\n" for n in range(100)))
    result = toolset(files, Capability(max_read_bytes=20)).call("read_file", {"path": "/src/long.txt"})
    assert result.value.content == "line 0\nline 1\n"  # type: ignore[attr-defined]  # the receipt of read_file
    assert result.value.truncated  # type: ignore[attr-defined]  # the receipt of read_file
    assert "offset=3" in result.message
    part = toolset(files, Capability(max_read_bytes=4)).call("read_file", {"path": "/src/long.txt", "max_bytes": 50})
    assert part.value.content == "line"  # type: ignore[attr-defined]  # the receipt of read_file
    assert handled(files, lambda fs: fs.read_lines("/src/long.txt"), capability=Capability(max_read_bytes=9)).error_code
    edit = {"path": "/src/long.txt", "old_string": "line 99", "new_string": "end"}
    assert toolset(files, Capability(max_read_bytes=4)).call("edit_file", edit).success


@pytest.mark.parametrize("limit", [None, -1])
def test_a_tool_that_may_write_is_refused_instead_of_getting_part_of_a_file(
    files: Filesystem, limit: int | None
) -> None:
    files.write("/src/long.txt", "line\n" * 100)

    def rewrite(fs: Filesystem) -> None:
        fs.write("/src/long.txt", fs.read("/src/long.txt", limit=limit).content.upper())

    def rewrite_bytes(fs: Filesystem) -> None:
        fs.write_bytes("/src/long.txt", fs.read_bytes("/src/long.txt", limit=limit).content.upper())

    for work in (rewrite, rewrite_bytes):
        refused = handled(files, work, capability=Capability(max_read_bytes=499))
        assert refused.error_code == "limit_exceeded"
        assert files.read("/src/long.txt").content == "line\n" * 100
        assert handled(files, work, capability=Capability(max_read_bytes=500)).success
        files.write("/src/long.txt", "line\n" * 100)
    part = Capability(max_read_bytes=5)
    assert handled(files, lambda fs: fs.read("/src/long.txt", limit=10), capability=part).success


@pytest.mark.parametrize(("most", "text"), [(0, "one\ntwo\n"), (1, "\u20ac\n"), (2, "\u20ac")])
def test_a_line_too_wide_to_read_is_not_reported_as_past_the_end(files: Filesystem, most: int, text: str) -> None:
    tools = toolset(files, Capability(max_read_bytes=most))
    files.write("/src/text", text)
    result = tools.call("read_file", {"path": "/src/text"})
    assert result.message == "[Read no part of /src/text: a character of line 1 takes more bytes than may be read]"


@pytest.mark.parametrize("encoding", ["utf8", "bytes"])
def test_a_read_of_no_bytes_gives_no_advice_that_repeats_it(files: Filesystem, encoding: str) -> None:
    tools = toolset(files, Capability(max_read_bytes=0))
    files.write("/src/text", "some text\n")
    result = tools.call("read_file", {"path": "/src/text", "offset_bytes": 2, "encoding": encoding})
    assert result.message == "[Read no part of /src/text: none of its bytes may be read]"


def test_results_are_clamped(files: Filesystem) -> None:
    tools = toolset(files, Capability(max_grep_results=2, max_glob_results=3))
    for limit in (None, 1000):
        found = tools.call("grep", {"pattern": "port", "max_results": limit})
        assert (found.value.match_count, found.value.truncated) == (2, True)  # type: ignore[attr-defined]  # grep's
    paths = tools.call("glob", {"pattern": "**/*"})
    assert (paths.value.count, paths.value.truncated) == (3, True)  # type: ignore[attr-defined]  # the receipt of glob


def test_a_search_scans_a_limited_number_of_files_and_bytes_and_says_so(files: Filesystem) -> None:
    for bound in (Capability(max_scan_files=2), Capability(max_scan_bytes=25)):
        found = toolset(files, bound).call("grep", {"pattern": "port"})
        again = toolset(files, bound).call("grep", {"pattern": "port"})
        assert found.value.truncated  # type: ignore[attr-defined]  # the receipt of grep
        assert found.value.match_count == 2  # type: ignore[attr-defined]  # the receipt of grep
        assert found.message == again.message
    everything = toolset(files, Capability(max_scan_files=1000, max_scan_bytes=1 << 20))
    assert not everything.call("grep", {"pattern": "port"}).value.truncated  # type: ignore[attr-defined]  # grep's


def test_writes_are_bounded(files: Filesystem) -> None:
    tools = toolset(files, Capability(max_write_bytes=10))
    before = files.tree().fingerprint
    for name, arguments in (
        ("write_file", {"path": "/a", "content": "12345678901"}),
        ("write_file", {"path": "/src/app.py", "content": "12345678901", "mode": "append"}),
        ("edit_file", {"path": "/src/app.py", "old_string": "80", "new_string": "12345678901"}),
        ("cp", {"source": "/secrets", "destination": "/copy"}),
    ):
        result = tools.call(name, arguments)
        assert (result.status, result.error_code) == ("forbidden", "limit_exceeded"), name
    assert files.tree().fingerprint == before
    assert tools.call("write_file", {"path": "/a", "content": "1234567890"}).success


@pytest.mark.parametrize("size", [1, 1000])
def test_a_write_limit_does_not_reveal_sizes_of_files_with_hidden_status(files: Filesystem, size: int) -> None:
    files.write("/box/a.key", "x" * size)
    hidden = Policy([PolicyRule(effect="deny", operations=["stat"], paths="*.key", reason="credentials")])
    tools = toolset(files, Capability(max_write_bytes=100), hidden)
    result = tools.call("cp", {"source": "/box", "destination": "/copy"})
    assert (result.status, result.error_code) == ("forbidden", "limit_exceeded")
    assert result.message == (
        "cannot write '/copy': the size of a write is limited, and the size of a file that would be copied may not be "
        "revealed; leave it unchanged"
    )
    assert toolset(files, policy=hidden).call("cp", {"source": "/box", "destination": "/copy"}).success


def test_the_number_of_entries_that_one_call_changes_is_limited(files: Filesystem) -> None:
    def write(count: int) -> ToolResult[object]:
        return handled(
            files,
            lambda fs: [fs.write(f"/n{number % count}", "") for number in range(9)],
            capability=Capability(max_changed_files=3),
        )

    assert write(3).success
    before = files.tree().fingerprint
    assert write(4).error_code == "limit_exceeded"
    tools = toolset(files, Capability(max_changed_files=3))
    assert tools.call("rm", {"path": "/src", "recursive": True}).error_code == "limit_exceeded"
    assert tools.call("mv", {"source": "/src", "destination": "/lib"}).error_code == "limit_exceeded"
    assert files.tree().fingerprint == before
    assert tools.call("rm", {"path": "/secrets", "recursive": True}).success


PATCH = "*** Begin Patch\n*** Update File: /src/app.py\n@@\n-port = 80\n+port = 81\n*** End Patch\n"


def test_patches_are_bounded_in_size_format_files_and_paths(files: Filesystem) -> None:
    before = files.tree().fingerprint
    two = PATCH.replace("*** End Patch", "*** Add File: /src/b.py\n+1\n*** End Patch")
    outside = PATCH.replace("*** End Patch", "*** Add File: /docs/b.md\n+1\n*** End Patch")
    for bounds, patch, code in (
        (Capability(max_patch_bytes=len(PATCH) - 1), PATCH, "limit_exceeded"),
        (Capability(allowed_patch_formats=["unified"]), PATCH, "operation_forbidden"),
        (Capability(max_changed_files=1), two, "limit_exceeded"),
        (Capability(max_write_bytes=5), PATCH, "limit_exceeded"),
        (Capability(fs_roots=["/src"]), outside, "path_forbidden"),
        (Capability(allowed_fs_ops=["read", "write", "edit"]), PATCH, "operation_forbidden"),
    ):
        result = toolset(files, bounds).call("apply_patch", {"patch": patch})
        assert (result.status, result.error_code) == ("forbidden", code), bounds
        assert files.tree().fingerprint == before
    assert toolset(files, policy=SOURCES).call("apply_patch", {"patch": outside}).error_code == "policy_denied"
    assert (
        toolset(files, policy=SECRETS).call("apply_patch", {"patch": PATCH.replace("/src/app.py", "/a.key")}).success
        is False
    )
    assert files.tree().fingerprint == before
    exact = Capability(
        allowed_fs_ops=["patch"],
        fs_roots="/src",
        max_patch_bytes=len(PATCH),
        allowed_patch_formats="v4a",
        max_changed_files=1,
    )
    assert toolset(files, exact).call("apply_patch", {"patch": PATCH}).success


def test_the_number_of_replacements_in_an_edit_is_limited(files: Filesystem) -> None:
    files.write("/src/x.py", "x\n" * 5)
    arguments: dict[str, object] = {"path": "/src/x.py", "old_string": "x", "new_string": "y", "replace_all": True}
    refused = toolset(files, Capability(max_edit_replacements=4)).call("edit_file", arguments)
    assert (refused.status, refused.error_code) == ("forbidden", "limit_exceeded")
    assert files.read("/src/x.py").content == "x\n" * 5
    assert toolset(files, Capability(max_edit_replacements=5)).call("edit_file", arguments).success


def test_replacing_all_files_is_refused_if_changes_are_limited(files: Filesystem) -> None:
    archive, kept = files.export_bytes(), files.snapshot()
    before = files.tree().fingerprint
    for bound in (Capability(max_changed_files=1), Capability(max_write_bytes=1)):
        assert handled(files, lambda fs: fs.import_bytes(archive), capability=bound).error_code == "limit_exceeded"
        assert handled(files, lambda fs: fs.restore(kept), capability=bound).error_code == "limit_exceeded"
    assert files.tree().fingerprint == before
