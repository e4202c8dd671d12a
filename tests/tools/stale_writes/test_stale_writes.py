"""A caller does not overwrite what another changed since it last read the file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from tests.tools.stale_writes.conftest import TEXT, edit, read, write
from weakfs import Filesystem, InMemoryFilesystem, Policy, PolicyRule, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.tools import require_filesystem
from weakfs.tools.blobs import Blobs


def test_editing_a_file_that_another_caller_changed_is_a_conflict_that_shows_the_change(tools: Toolset) -> None:
    read(tools, "ann")
    assert edit(tools, "bob", "line 7\n", "line seven\n").success
    before = tools.filesystem.tree().fingerprint
    result = edit(tools, "ann", "line 12\n", "line twelve\n")
    assert (result.status, result.error_code) == ("conflict", "changed_by_another")
    assert "'bob'" in result.message
    assert "bob-edit" in result.message
    assert "-line 7\n+line seven\n" in result.message
    assert "read the file again" in result.message
    assert tools.filesystem.tree().fingerprint == before


def test_reading_again_resolves_the_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    assert not edit(tools, "ann", "line 12\n", "line twelve\n").success
    read(tools, "ann")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_writing_the_whole_file_is_refused_as_well(tools: Toolset) -> None:
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    assert write(tools, "ann", "all new\n").status == "conflict"
    assert "line seven" in tools.filesystem.read("/a.txt").content


def test_a_patch_is_refused_as_well(tools: Toolset) -> None:
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-line 12\n+line twelve\n*** End Patch\n"
    assert tools.call("apply_patch", {"patch": patch}, caller="ann").status == "conflict"
    assert tools.call("apply_patch", {"patch": patch}, caller="bob").success


def test_a_callers_own_change_is_not_a_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    read(tools, "bob")
    assert edit(tools, "ann", "line 7\n", "line seven\n").success
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success
    assert write(tools, "ann", TEXT).success


def test_a_change_by_another_caller_before_the_read_is_not_a_conflict(tools: Toolset) -> None:
    edit(tools, "bob", "line 7\n", "line seven\n")
    read(tools, "ann")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_caller_that_never_read_the_file_may_write_it(tools: Toolset) -> None:
    edit(tools, "bob", "line 7\n", "line seven\n")
    assert write(tools, "ann", "all new\n").success


def test_a_failed_change_by_another_caller_is_not_a_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    assert not edit(tools, "bob", "not there", "line seven\n").success
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_change_that_was_undone_is_not_a_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    edit(tools, "bob", "line seven\n", "line 7\n")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_change_that_was_rolled_back_is_not_a_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    tools.session.snapshot("before")
    edit(tools, "bob", "line 7\n", "line seven\n")
    tools.session.rollback("before")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_replacing_a_directory_counts_as_a_change_to_its_files(tools: Toolset) -> None:
    tools.call("write_file", {"path": "/d/a.txt", "content": "1\n"}, caller="ann")
    tools.call("write_file", {"path": "/e/a.txt", "content": "2\n"}, caller="bob")
    tools.call("rm", {"path": "/d", "recursive": True}, caller="bob")
    tools.call("mv", {"source": "/e", "destination": "/d"}, caller="bob")
    result = tools.call("write_file", {"path": "/d/a.txt", "content": "3\n"}, caller="ann")
    assert result.status == "conflict"


def test_the_check_can_be_turned_off(tools: Toolset) -> None:
    free = Toolset(tools.session, tools.filesystem, refuse_stale_writes=False)
    read(free, "ann")
    edit(free, "bob", "line 7\n", "line seven\n")
    assert edit(free, "ann", "line 12\n", "line twelve\n").success


def test_a_change_to_a_huge_file_is_reported_but_not_shown(tools: Toolset) -> None:
    tools.call("write_file", {"path": "/a.txt", "content": TEXT + "x\n" * 200_000}, caller="bob")
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    result = edit(tools, "ann", "line 12\n", "line twelve\n")
    assert result.status == "conflict"
    assert len(result.message) < 300


def test_a_file_that_another_caller_removed_is_not_recreated_unseen(tools: Toolset) -> None:
    read(tools, "ann")
    tools.call("rm", {"path": "/a.txt"}, caller="bob")
    assert write(tools, "ann", "all new\n").status == "conflict"
    tools.call("write_file", {"path": "/b.txt", "content": "1\n"}, caller="ann")
    tools.call("mv", {"source": "/b.txt", "destination": "/c.txt"}, caller="bob")
    assert tools.call("write_file", {"path": "/b.txt", "content": "2\n"}, caller="ann").status == "conflict"


def test_copying_a_file_does_not_count_as_a_change_to_the_source(tools: Toolset) -> None:
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    tools.call("cp", {"source": "/a.txt", "destination": "/bak"}, caller="ann")
    assert write(tools, "ann", "all new\n").status == "conflict"
    tools.call("write_file", {"path": "/large", "content": "x\n" * 200_000}, caller="ann")
    tools.call("cp", {"source": "/large", "destination": "/other"}, caller="bob")
    assert tools.call("write_file", {"path": "/large", "content": ""}, caller="ann").success


def test_a_patch_in_a_blob_is_refused_as_well(tools: Toolset) -> None:
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-line 12\n+line twelve\n*** End Patch\n"
    kept = Blobs(tools.session).keep(patch.encode())
    call = {"patch": {"blob_ref": kept.blob_ref}}
    assert tools.call("apply_patch", call, caller="ann").status == "conflict"
    assert tools.call("apply_patch", call, caller="bob").success


@frozen
class Work:
    """The parameters of a tool that works in the middle of another caller's call."""


def during(tools: Toolset, work: Callable[[Filesystem], None], meanwhile: Callable[[], None]) -> ToolResult[object]:
    """Make a call by ann that does some work, while a thread does something else."""

    def handle(params: Work, *, context: ToolContext) -> ToolResult[None]:
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()
        work(require_filesystem(context))
        return ToolResult("done", None)

    own = Tool("own", "For tests.", Work, handle)
    beside = Toolset(tools.session, tools.filesystem, tools=[*tools.tools, own])
    return beside.call("own", {}, caller="ann")


def test_concurrent_changes_by_two_callers_were_seen_by_neither(tmp_path: Path) -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session))
    tools.filesystem.write("/a.txt", TEXT)
    read(tools, "ann")

    def change_the_end() -> None:
        assert edit(tools, "bob", "line 19\n", "line nineteen\n").success

    def change_the_start(fs: Filesystem) -> None:
        fs.splice("/a.txt", [(0, 6, b"LINE 1")])

    assert during(tools, change_the_start, change_the_end).success
    assert tools.filesystem.read("/a.txt").content.count("nineteen") == 1
    assert write(tools, "ann", TEXT).status == "conflict"


def test_a_call_that_ends_in_a_conflict_counts_as_having_read_nothing(tmp_path: Path) -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session))
    tools.filesystem.write("/a.txt", TEXT)
    read(tools, "ann")

    def change() -> None:
        assert edit(tools, "bob", "line 7\n", "line seven\n").success

    def change_the_same(fs: Filesystem) -> None:
        fs.write("/a.txt", TEXT.replace("line 7\n", "LINE 7\n"))

    assert during(tools, change_the_same, change).error_code == "merge_conflict"
    assert write(tools, "ann", TEXT).status == "conflict"
    assert "line seven" in tools.filesystem.read("/a.txt").content


def test_a_refusal_quotes_nothing_that_its_caller_may_not_read(tools: Toolset) -> None:
    hidden = PolicyRule(effect="deny", operations=["read", "search"], paths="/a.txt", reason="hidden")
    guarded = Toolset(tools.session, tools.filesystem, policy=Policy([hidden]))
    write(guarded, "ann", "one\n")
    write(guarded, "bob", "secret of bob\n")
    result = write(guarded, "ann", "two\n")
    assert result.status == "conflict"
    assert "secret" not in result.message


def test_an_unread_file_is_not_overwritten_if_reading_is_required(tools: Toolset) -> None:
    strict = Toolset(tools.session, tools.filesystem, require_read=True)
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-line 12\n+line twelve\n*** End Patch\n"
    for result in (
        write(strict, "ann", "all new\n"),
        edit(strict, "ann", "line 7\n", "line seven\n"),
        strict.call("apply_patch", {"patch": patch}, caller="ann"),
    ):
        assert (result.status, result.error_code) == ("conflict", "not_read")
        assert "you have not read it; read it first" in result.message
    assert tools.filesystem.read("/a.txt").content == TEXT
    read(strict, "bob")
    assert write(strict, "ann", "all new\n").error_code == "not_read"
    read(strict, "ann")
    assert edit(strict, "ann", "line 7\n", "line seven\n").success


def test_creating_files_and_calls_without_a_caller_need_no_prior_read(tools: Toolset) -> None:
    strict = Toolset(tools.session, tools.filesystem, require_read=True)
    new = {"path": "/new.txt", "content": "1\n"}
    assert strict.call("write_file", new, caller="ann").success
    assert strict.call("write_file", new, caller="ann").success
    assert strict.call("write_file", {"path": "/a.txt", "content": ""}).success


def test_reading_cannot_be_required_if_stale_writes_are_allowed() -> None:
    with pytest.raises(ValueError, match="require_read needs refuse_stale_writes"):
        Toolset(Session(), require_read=True, refuse_stale_writes=False)
