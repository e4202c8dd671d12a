"""A caller does not overwrite what another changed since it last read the file."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from attrs import frozen

from tests.tools.conftest import OpenFiles
from weakfs import (
    Filesystem,
    HostFilesystem,
    InMemoryFilesystem,
    Policy,
    PolicyRule,
    Session,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from weakfs.session.blobs.blob import digest_of
from weakfs.tools import require_filesystem
from weakfs.tools.blobs import Blobs
from weakfs.tools.slices import FilesSeen

if TYPE_CHECKING:
    from _typeshed import TraceFunction

TEXT = "".join(f"line {n}\n" for n in range(1, 21))


@pytest.fixture
def tools(open_files: OpenFiles) -> Toolset:
    session = Session()
    files = open_files(session)
    files.write("/a.txt", TEXT)
    return Toolset(session, files)


def read(tools: Toolset, caller: str, path: str = "/a.txt") -> ToolResult[object]:
    return tools.call("read_file", {"path": path}, caller=caller)


def edit(tools: Toolset, caller: str, old: str, new: str) -> ToolResult[object]:
    arguments = {"path": "/a.txt", "old_string": old, "new_string": new}
    return tools.call("edit_file", arguments, caller=caller, call_id=f"{caller}-edit")


def write(tools: Toolset, caller: str, content: str) -> ToolResult[object]:
    return tools.call("write_file", {"path": "/a.txt", "content": content}, caller=caller)


def test_an_edit_of_what_another_caller_changed_is_a_conflict_that_shows_the_change(tools: Toolset) -> None:
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


def test_reading_again_settles_the_conflict(tools: Toolset) -> None:
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


def test_what_a_caller_changed_itself_is_no_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    read(tools, "bob")
    assert edit(tools, "ann", "line 7\n", "line seven\n").success
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success
    assert write(tools, "ann", TEXT).success


def test_what_another_caller_changed_before_the_reading_is_no_conflict(tools: Toolset) -> None:
    edit(tools, "bob", "line 7\n", "line seven\n")
    read(tools, "ann")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_caller_that_never_read_the_file_may_write_it(tools: Toolset) -> None:
    edit(tools, "bob", "line 7\n", "line seven\n")
    assert write(tools, "ann", "all new\n").success


def test_a_change_of_another_that_failed_is_no_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    assert not edit(tools, "bob", "not there", "line seven\n").success
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_change_that_was_taken_back_is_no_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    edit(tools, "bob", "line seven\n", "line 7\n")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_rollback_of_the_change_is_no_conflict(tools: Toolset) -> None:
    read(tools, "ann")
    tools.session.snapshot("before")
    edit(tools, "bob", "line 7\n", "line seven\n")
    tools.session.rollback("before")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_directory_that_another_replaced_counts_for_what_is_in_it(tools: Toolset) -> None:
    tools.call("write_file", {"path": "/d/a.txt", "content": "1\n"}, caller="ann")
    tools.call("write_file", {"path": "/e/a.txt", "content": "2\n"}, caller="bob")
    tools.call("rm", {"path": "/d", "recursive": True}, caller="bob")
    tools.call("mv", {"source": "/e", "destination": "/d"}, caller="bob")
    result = tools.call("write_file", {"path": "/d/a.txt", "content": "3\n"}, caller="ann")
    assert result.status == "conflict"


def test_one_flag_turns_it_off(tools: Toolset) -> None:
    free = Toolset(tools.session, tools.filesystem, refuse_stale_writes=False)
    read(free, "ann")
    edit(free, "bob", "line 7\n", "line seven\n")
    assert edit(free, "ann", "line 12\n", "line twelve\n").success


def test_of_a_huge_file_the_change_is_told_and_not_shown(tools: Toolset) -> None:
    tools.call("write_file", {"path": "/a.txt", "content": TEXT + "x\n" * 200_000}, caller="bob")
    read(tools, "ann")
    edit(tools, "bob", "line 7\n", "line seven\n")
    result = edit(tools, "ann", "line 12\n", "line twelve\n")
    assert result.status == "conflict"
    assert len(result.message) < 300


def test_a_file_that_another_removed_is_not_made_again_unseen(tools: Toolset) -> None:
    read(tools, "ann")
    tools.call("rm", {"path": "/a.txt"}, caller="bob")
    assert write(tools, "ann", "all new\n").status == "conflict"
    tools.call("write_file", {"path": "/b.txt", "content": "1\n"}, caller="ann")
    tools.call("mv", {"source": "/b.txt", "destination": "/c.txt"}, caller="bob")
    assert tools.call("write_file", {"path": "/b.txt", "content": "2\n"}, caller="ann").status == "conflict"


def test_a_copy_changes_nothing_where_it_comes_from(tools: Toolset) -> None:
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
    """What a tool takes whose work is done in the middle of a call of another."""


def during(tools: Toolset, work: Callable[[Filesystem], None], meanwhile: Callable[[], None]) -> ToolResult[object]:
    """Make a call of ann's that does some work, while a thread does something meanwhile."""

    def handle(params: Work, *, context: ToolContext) -> ToolResult[None]:
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()
        work(require_filesystem(context))
        return ToolResult("done", None)

    own = Tool("own", "For tests.", Work, handle)
    beside = Toolset(tools.session, tools.filesystem, tools=[*tools.tools, own])
    return beside.call("own", {}, caller="ann")


def test_what_two_callers_changed_at_once_was_seen_by_neither(tmp_path: Path) -> None:
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


def test_a_call_that_ended_in_a_conflict_has_seen_nothing(tmp_path: Path) -> None:
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


# What callers saw is part of the session


def test_what_a_caller_saw_outlives_saving_and_loading(tmp_path: Path) -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session))
    tools.filesystem.write("/a.txt", TEXT)
    read(tools, "ann")
    session.save(tmp_path / "session.json")

    loaded = Session.load(tmp_path / "session.json")
    again = Toolset(loaded, InMemoryFilesystem(loaded))
    edit(again, "bob", "line 7\n", "line seven\n")

    result = edit(again, "ann", "line 12\n", "line twelve\n")
    assert result.error_code == "changed_by_another"
    assert "-line 7\n+line seven\n" in result.message


def test_two_toolsets_of_one_session_know_the_same(tools: Toolset) -> None:
    other = Toolset(tools.session, tools.filesystem)
    read(tools, "ann")
    edit(other, "bob", "line 7\n", "line seven\n")

    assert edit(other, "ann", "line 12\n", "line twelve\n").status == "conflict"
    read(other, "ann")
    assert edit(tools, "ann", "line 12\n", "line twelve\n").success


def test_a_file_that_another_program_changed_is_not_overwritten(tmp_path: Path) -> None:
    session = Session()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text(TEXT)
    tools = Toolset(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))
    read(tools, "ann")
    (tmp_path / "root" / "a.txt").write_text("of another program\n")

    result = write(tools, "ann", "all new\n")

    assert (result.status, result.error_code) == ("conflict", "changed_by_another")
    assert "it changed since you last read it" in result.message
    assert (tmp_path / "root" / "a.txt").read_text() == "of another program\n"


def test_a_rollback_makes_what_a_caller_read_stale(tools: Toolset) -> None:
    tools.session.snapshot("before")
    edit(tools, "ann", "line 7\n", "line seven\n")
    tools.session.rollback("before")

    assert write(tools, "ann", "all new\n").status == "conflict"
    read(tools, "ann")
    assert write(tools, "ann", "all new\n").success


def test_a_file_that_a_rollback_removed_may_be_made_again(tools: Toolset) -> None:
    tools.session.snapshot("before")
    new = {"path": "/new.txt", "content": "1\n"}
    tools.call("write_file", new, caller="ann")
    tools.session.rollback("before")
    assert tools.call("write_file", new, caller="ann").success


def test_a_rollback_leaves_a_caller_what_it_read_and_what_did_not_change() -> None:
    session = Session()
    tools = Toolset(session, InMemoryFilesystem(session), require_read=True)
    tools.filesystem.write("/a.txt", TEXT)
    session.snapshot("before")
    read(tools, "ann")
    session.rollback("before")

    assert write(tools, "ann", "all new\n").success


def test_a_call_without_a_caller_is_only_kept_from_undoing_what_a_caller_changed(tools: Toolset) -> None:
    tools.call("read_file", {"path": "/a.txt"})
    tools.filesystem.write("/a.txt", "by the runtime\n")
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    assert tools.call("write_file", arguments).success
    write(tools, "bob", "2\n")
    assert tools.call("write_file", arguments).status == "conflict"


def test_only_a_digest_of_what_was_read_is_kept_and_once(tools: Toolset) -> None:
    read(tools, "ann")
    read(tools, "ann")

    (seen,) = tools.session[FilesSeen].all()
    filesystem = getattr(tools.filesystem, "filesystem_id", "")
    assert seen.paths(filesystem, "ann") == ["/a.txt"]
    sight = seen.sight(filesystem, "ann", "/a.txt")
    assert sight is not None
    assert sight[0] == digest_of(TEXT.encode()).hex()


def test_a_directory_that_a_caller_moved_itself_is_no_conflict(tools: Toolset) -> None:
    tools.call("write_file", {"path": "/d/a.txt", "content": "1\n"}, caller="ann")
    tools.call("mv", {"source": "/d", "destination": "/e"}, caller="ann")
    assert tools.call("write_file", {"path": "/d/a.txt", "content": "2\n"}, caller="ann").success


# Files must be read first


def test_a_file_that_a_caller_never_read_is_not_overwritten_where_reading_is_required(tools: Toolset) -> None:
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


def test_creating_a_file_and_calls_without_a_caller_need_no_reading(tools: Toolset) -> None:
    strict = Toolset(tools.session, tools.filesystem, require_read=True)
    new = {"path": "/new.txt", "content": "1\n"}
    assert strict.call("write_file", new, caller="ann").success
    assert strict.call("write_file", new, caller="ann").success
    assert strict.call("write_file", {"path": "/a.txt", "content": ""}).success


def test_reading_cannot_be_required_where_stale_writes_are_allowed() -> None:
    with pytest.raises(ValueError, match="require_read needs refuse_stale_writes"):
        Toolset(Session(), require_read=True, refuse_stale_writes=False)


def lines_run(work: Callable[[], object]) -> int:
    """Count the lines of Python that run."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_calls_with_and_without_a_caller_cost_the_same_in_a_long_history() -> None:
    # Every write by "ann" makes what the calls without a caller saw of the file another version.
    tools = Toolset(Session())

    def write_as(caller: str | None, path: str) -> bool:
        return tools.call("write_file", {"path": path, "content": f"{caller}\n"}, caller=caller).success

    def pair(path: str) -> None:
        assert write_as("ann", path)
        assert not write_as(None, path)
        tools.call("read_file", {"path": path})
        assert write_as(None, path)
        tools.call("read_file", {"path": path}, caller="ann")

    for path in ("/now.txt", "/then.txt"):
        assert write_as(None, path)
        pair(path)
    early = lines_run(lambda: pair("/now.txt"))
    assert write_as("ann", "/then.txt")
    tools.filesystem.write("/by_the_runtime.txt", "1\n")
    assert write_as(None, "/by_the_runtime.txt")
    tools.filesystem.write("/by_the_runtime.txt", "2\n")
    for number in range(400):
        tools.filesystem.write("/other.txt", f"{number}\n")
        if number % 4 == 0:
            assert write_as("bob" if number % 8 else None, f"/{number}.txt")
    # What one call takes over from the records since the last such call is not counted: each is taken over once.
    assert write_as(None, "/last.txt")

    assert lines_run(lambda: pair("/now.txt")) < early * 1.3
    assert lines_run(lambda: write_as(None, "/then.txt")) < early
    assert lines_run(lambda: write_as(None, "/by_the_runtime.txt")) < early
    assert not write_as(None, "/then.txt")


def test_changes_inside_an_open_transaction_count() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    tools.call("write_file", arguments)
    with tools.session.transaction():
        assert write(tools, "ann", "2\n").success
        assert tools.call("write_file", arguments).status == "conflict"
    assert tools.call("write_file", arguments).status == "conflict"


def test_a_change_before_a_transaction_that_was_rolled_back_counts() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    tools.call("write_file", arguments)
    with suppress(KeyError), tools.session.transaction():
        write(tools, "ann", "2\n")
        tools.call("write_file", {"path": "/b.txt", "content": "1\n"})
        raise KeyError
    assert tools.call("write_file", arguments).success
    assert write(tools, "bob", "3\n").success
    assert tools.call("write_file", arguments).status == "conflict"


def test_a_change_by_another_thread_during_a_transaction_counts() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    tools.call("write_file", arguments)
    with tools.session.transaction():
        for number in range(10):
            tools.call("write_file", {"path": f"/{number}.txt", "content": "1\n"})
        other = threading.Thread(target=write, args=(tools, "ann", "2\n"))
        other.start()
        other.join()
        tools.call("write_file", {"path": "/b.txt", "content": "1\n"})
    assert tools.call("write_file", arguments).status == "conflict"


def test_a_change_counts_after_compaction() -> None:
    tools = Toolset(Session())
    arguments: dict[str, object] = {"path": "/a.txt", "content": "1\n"}
    for _ in range(20):
        tools.call("write_file", arguments)
    tools.session.compact(keep=1, keep_calls=1)
    assert write(tools, "ann", "2\n").success
    assert tools.call("write_file", arguments).status == "conflict"
