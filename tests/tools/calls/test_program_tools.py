"""Tools with `runs_programs`: changes by their programs are part of the call, and undone with it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from attrs import frozen

from tests.tools.calls.failing import last_call
from weakfs import (
    DEFAULT_TOOLS,
    Capability,
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    Policy,
    PolicyRule,
    Session,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from weakfs.backends import MockFilesystem
from weakfs.filesystem import Filesystem, Limits
from weakfs.session import Cancellation, TransactionCancelled
from weakfs.tools import ToolCall

pytestmark = pytest.mark.usefixtures("never_hung")

Make = Callable[..., Toolset]


@frozen
class Params:
    script: str


def run(params: Params, *, context: ToolContext) -> ToolResult[str]:
    """Run a script where the files are; it fails if the script does."""
    assert context.directory is not None
    done = subprocess.run(params.script, shell=True, cwd=context.directory, capture_output=True, text=True)
    return ToolResult(done.stdout or done.stderr, done.stdout, done.returncode == 0)


async def arun(params: Params, *, context: ToolContext) -> ToolResult[str]:
    process = await asyncio.create_subprocess_shell(
        params.script, cwd=context.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        out, _ = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return ToolResult(out.decode(), out.decode(), process.returncode == 0)


def tool(handler: Callable[..., Any] = run, **options: Any) -> Tool:
    return Tool("run", "Run a script.", Params, handler, runs_programs=True, **options)


@pytest.fixture(params=["memory", "host", "mounted"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make a toolset over two files."""

    def made(handler: Callable[..., Any] = run, limits: Limits = Limits(), **options: object) -> Toolset:  # noqa: B008  # frozen
        session = Session(session_id="main")
        files: Filesystem
        if request.param == "memory":
            files = InMemoryFilesystem(session, limits=limits)
        else:
            (tmp_path / "work").mkdir()
            files = HostFilesystem(tmp_path / "work", session=session, store=tmp_path / "store", limits=limits)
        if request.param == "mounted":
            files = MountedFilesystem(files, "/workspace")
        files.write("a.txt", "one\n")
        files.write("dir/b.txt", "two\n")
        return Toolset(session, files, tools=[*DEFAULT_TOOLS, tool(handler)], **options)  # type: ignore[arg-type]

    return made


def call(tools: Toolset, script: str, **options: Any) -> ToolResult[object]:
    is_async = next(one for one in tools.tools if one.name == "run").is_async
    if is_async:
        return asyncio.run(tools.acall("run", {"script": script}, **options))
    return tools.call("run", {"script": script}, **options)


@pytest.fixture(params=[run, arun], ids=["function", "coroutine"])
def handler(request: pytest.FixtureRequest) -> Callable[..., Any]:
    found: Callable[..., Any] = request.param
    return found


def test_changes_by_a_program_are_part_of_the_call(make: Make, handler: Callable[..., Any]) -> None:
    tools = make(handler)
    result = call(tools, "cat a.txt; rm -r dir; echo 2 > a.txt; mkdir new", call_id="c1", caller="ann")
    assert (result.success, result.message) == (True, "one\n")
    files = tools.filesystem
    assert files.read("a.txt").content == "2\n"
    assert files.exists("new")
    assert not files.exists("dir")
    recorded = last_call(tools)
    assert (recorded.call_id, recorded.tool, recorded.caller, recorded.status) == ("c1", "run", "ann", "ok")
    tools.session.undo()
    assert files.read("a.txt").content == "one\n"
    assert files.read("dir/b.txt").content == "two\n"
    assert not files.exists("new")


@pytest.mark.parametrize("failure", ["answer", "error", "bug"])
def test_a_handler_that_fails_is_undone_at_once(make: Make, failure: str) -> None:
    def handle(params: Params, *, context: ToolContext) -> ToolResult[str]:
        result = run(params, context=context)
        if failure == "error":
            raise OSError("the program failed")
        if failure == "bug":
            raise KeyError("a bug")
        return ToolResult("failed", result.value, success=False)

    tools = make(handle)
    before = tools.filesystem.tree().fingerprint
    if failure == "bug":
        with pytest.raises(KeyError):
            call(tools, "rm -r *; touch new")
    else:
        assert not call(tools, "rm -r *; touch new").success
    assert tools.filesystem.tree().fingerprint == before
    assert last_call(tools).status == "error"


def test_a_coroutine_function_that_fails_is_undone_at_once(make: Make) -> None:
    tools = make(arun)
    before = tools.filesystem.tree().fingerprint
    result = call(tools, "rm -r *; echo sorry; exit 3")
    assert (result.success, result.message) == (False, "sorry\n")
    assert tools.filesystem.tree().fingerprint == before


def test_a_program_that_changes_nothing_adds_only_the_record_of_the_call(
    make: Make, handler: Callable[..., Any]
) -> None:
    tools = make(handler)
    call(tools, "true")
    seq = tools.session.seq
    assert call(tools, "cat a.txt").success
    assert [type(record.event) for record in tools.session.records.since(seq)] == [ToolCall]


def test_a_coroutine_function_that_is_cancelled_is_undone(make: Make) -> None:
    tools = make(arun)
    before = tools.filesystem.tree().fingerprint

    async def cancel() -> None:
        task = asyncio.create_task(tools.acall("run", {"script": "rm -r *; touch started; exec sleep 60"}))
        directory = Path(tools.filesystem.root)
        while directory != Path("/") and not (directory / "started").exists():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert tools.filesystem.tree().fingerprint == before
    assert last_call(tools).error_code == "cancelled"


def test_cancelling_waits_for_the_end_of_the_program(make: Make) -> None:
    began, ended = Event(), Event()

    def handle(params: Params, *, context: ToolContext) -> ToolResult[str]:
        assert context.directory is not None
        Path(context.directory, "new").touch()
        with subprocess.Popen(["sleep", "60"], cwd=context.directory) as process:
            with context.cancellation.stopping(process.kill):
                began.set()
                process.wait()
            Path(context.directory, "last").touch()
        ended.set()
        return ToolResult("done", "")

    tools = make(handle)
    before = tools.filesystem.tree().fingerprint
    cancellation = Cancellation()
    seen: list[bool] = []

    def cancel() -> None:
        began.wait()
        cancellation.cancel("no more")
        seen.append(ended.is_set())

    thread = Thread(target=cancel)
    thread.start()
    with pytest.raises(TransactionCancelled):
        call(tools, "", cancellation=cancellation)
    thread.join()
    assert seen == [True]
    assert tools.filesystem.tree().fingerprint == before


def test_a_tool_that_runs_programs_counts_as_a_command(make: Make) -> None:
    assert tool().operation == "shell"
    assert tool(operation="write").operation == "write"
    result = call(make(capability=Capability(allowed_fs_ops=["read", "write"])), "touch new")
    assert "the allowed operations, which are read, write" in result.message
    assert result.error_code == "operation_forbidden"


def test_changes_forbidden_by_the_policy_are_undone(make: Make) -> None:
    tools = make()
    point = getattr(tools.filesystem, "mounted_at", "")
    rule = PolicyRule(effect="deny", operations=["write"], paths=f"{point}/dir", reason="kept")
    guarded = Toolset(tools.session, tools.filesystem, tools=tools.tools, policy=Policy([rule]))
    result = call(guarded, "touch new; rm -r dir")
    assert (result.success, result.error_code) == (False, "policy_denied")
    assert tools.filesystem.exists("dir/b.txt")
    assert not tools.filesystem.exists("new")


def test_changes_beyond_a_limit_are_undone(make: Make) -> None:
    tools = make(limits=Limits(max_file_size=10))
    result = call(tools, "touch new; seq 100 > big")
    assert not result.success
    assert "big'" in result.message
    assert not tools.filesystem.exists("new")


def test_a_call_that_takes_too_long_is_undone(make: Make, handler: Callable[..., Any]) -> None:
    tools = make(handler)
    result = call(tools, "touch new; sleep 0.3", timeout=0.1)
    assert result.error_code == "deadline_exceeded"
    assert not tools.filesystem.exists("new")


def test_other_tools_have_no_context_directory() -> None:
    seen: list[str | None] = []

    def handle(params: Params, *, context: ToolContext) -> ToolResult[str]:
        seen.append(context.directory)
        return ToolResult("", "")

    Toolset(Session(), tools=[Tool("run", "Run.", Params, handle)]).call("run", {"script": ""})
    assert seen == [None]


def test_filesystems_that_programs_cannot_use_are_refused() -> None:
    session = Session()
    read_only = InMemoryFilesystem(session, read_only=True)
    assert "is read-only" in call(Toolset(session, read_only, tools=[tool()]), "true").message
    mock = MockFilesystem()
    assert "cannot be checked out into a directory" in call(Toolset(session, mock, tools=[tool()]), "true").message


@pytest.mark.parametrize("option", ["read_only", "is_quick"])
def test_a_tool_that_runs_programs_is_neither_quick_nor_read_only(option: str) -> None:
    with pytest.raises(ValueError, match=f"cannot have both {option} and runs_programs"):
        tool(run, **{option: True})
