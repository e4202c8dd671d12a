"""Calls from asyncio: concurrent, cancelled in the middle, and with coroutine functions as handlers."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from tests.tools.commands import TOOLS
from weakfs import (
    DEFAULT_TOOLS,
    Filesystem,
    HostFilesystem,
    InMemoryFilesystem,
    Policy,
    Session,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from weakfs.reducers import FileTree
from weakfs.session import TransactionCancelled
from weakfs.tools import ToolCalls, require_filesystem


@frozen
class Slow:
    path: str


class GuardedPrimitives:
    """A tool that writes a file, says so, waits, and writes another."""

    def __init__(self) -> None:
        self.reached, self.may_go, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.after: BaseException | None = None

    def handle(self, params: Slow, *, context: ToolContext) -> ToolResult[None]:
        fs = require_filesystem(context)
        fs.write(params.path, "half")
        self.reached.set()
        self.may_go.wait(60)
        try:
            fs.write(params.path + ".done", "whole")
        except BaseException as error:
            self.after = error
            raise
        finally:
            self.ended.set()
        return ToolResult("done", None)

    @property
    def tool(self) -> Tool:
        return Tool("slow", "Write slowly.", Slow, self.handle)

    @contextmanager
    def open_at_the_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.may_go.set()
            assert self.ended.wait(60)


@pytest.fixture(params=["memory", "host"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Filesystem:
    session = Session()
    if request.param == "memory":
        return InMemoryFilesystem(session)
    root = tmp_path / "root"
    root.mkdir()
    return HostFilesystem(root, session=session, store=tmp_path / "store")


def session_of(files: Filesystem) -> Session:
    session = files.session  # type: ignore[attr-defined]  # both have one
    assert isinstance(session, Session)
    return session


def test_a_call_can_be_awaited(files: Filesystem) -> None:
    tools = Toolset(session_of(files), files)
    result = asyncio.run(tools.acall("write_file", {"path": "/a", "content": "1\n"}, call_id="c1"))
    assert result.success
    assert files.read("/a").content == "1\n"


def test_a_cancelled_call_is_undone_even_if_its_handler_hangs(files: Filesystem) -> None:
    session, gate = session_of(files), GuardedPrimitives()
    tools = Toolset(session, files, tools=(*DEFAULT_TOOLS, gate.tool))
    files.write("/kept", "1\n")
    before = files.tree().fingerprint

    async def main() -> None:
        call = asyncio.create_task(tools.acall("slow", {"path": "/a"}, call_id="c1"))
        await asyncio.to_thread(gate.reached.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert files.tree().fingerprint == before
        assert (await tools.acall("write_file", {"path": "/b", "content": ""}, call_id="c2")).success
        gate.may_go.set()
        await asyncio.to_thread(gate.ended.wait, 60)

    with gate.open_at_the_end():
        asyncio.run(main())
    assert isinstance(gate.after, TransactionCancelled)
    assert not files.exists("/a")
    assert not files.exists("/a.done")
    calls = session[ToolCalls].all()
    assert [(call.call_id, call.status, call.error_code) for call in calls] == [
        ("c1", "error", "cancelled"),
        ("c2", "ok", None),
    ]


def test_a_cancelled_shell_command_is_ended_and_undone(tmp_path: Path) -> None:
    session = Session()
    (tmp_path / "root").mkdir()
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    tools = Toolset(session, files, tools=TOOLS)
    before = files.tree().fingerprint

    async def main() -> None:
        call = asyncio.create_task(tools.acall("shell", {"command": "echo 1 > made; sleep 60; echo 2 > late"}))
        while not (tmp_path / "root" / "made").exists():
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert files.tree().fingerprint == before

    asyncio.run(main())
    assert session[ToolCalls].all()[-1].error_code == "cancelled"


def test_calls_concurrent_with_a_cancelled_one_are_not_affected(files: Filesystem) -> None:
    session, gate = session_of(files), GuardedPrimitives()
    tools = Toolset(session, files, tools=(*DEFAULT_TOOLS, gate.tool))

    async def main() -> None:
        slow = asyncio.create_task(tools.acall("slow", {"path": "/slow"}))
        await asyncio.to_thread(gate.reached.wait, 60)
        others = [tools.acall("write_file", {"path": f"/{n}", "content": str(n)}) for n in range(10)]
        results = await asyncio.gather(*others)
        assert all(result.success for result in results)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        gate.may_go.set()

    with gate.open_at_the_end():
        asyncio.run(main())
    assert [entry.name for entry in files.list("/")] == [str(n) for n in range(10)]


def test_a_call_waiting_for_a_thread_can_be_cancelled_before_it_starts() -> None:
    session, gate = Session(), GuardedPrimitives()
    tools = Toolset(session, tools=(*DEFAULT_TOOLS, gate.tool))

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        first = asyncio.create_task(tools.acall("slow", {"path": "/a"}))
        while not gate.reached.is_set():
            await asyncio.sleep(0.001)
        second = asyncio.create_task(tools.acall("slow", {"path": "/b"}, call_id="late"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.may_go.set()
        await first

    with gate.open_at_the_end():
        asyncio.run(main())
    assert not tools.filesystem.exists("/b")
    assert session[ToolCalls].where(lambda call: call.call_id == "late")[0].error_code == "cancelled"


async def write_twice(params: Slow, *, context: ToolContext) -> ToolResult[None]:
    fs = require_filesystem(context)
    fs.write(params.path, "half")
    await asyncio.sleep(0.001)
    if "bad" in params.path:
        raise ValueError("no such luck")
    fs.write(params.path, "whole")
    return ToolResult("done", None)


ASYNC = Tool("write_twice", "Write in two steps.", Slow, write_twice)


def test_a_coroutine_function_can_be_a_handler(files: Filesystem) -> None:
    tools = Toolset(session_of(files), files, tools=[ASYNC])

    async def main() -> None:
        results = await asyncio.gather(
            *(tools.acall("write_twice", {"path": f"/{'bad' if n % 3 == 0 else 'good'}{n}"}) for n in range(12))
        )
        assert [result.success for result in results] == [n % 3 != 0 for n in range(12)]

    asyncio.run(main())
    assert {entry.name for entry in files.list("/")} == {f"good{n}" for n in range(12) if n % 3}
    assert all(files.read(entry.path).content == "whole" for entry in files.list("/"))


def test_a_cancelled_coroutine_handler_is_undone_and_recorded() -> None:
    session = Session()
    tools = Toolset(session, tools=[ASYNC])

    async def main() -> None:
        call = asyncio.create_task(tools.acall("write_twice", {"path": "/a"}))
        await asyncio.sleep(0)
        assert not tools.filesystem.exists("/a")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    assert session[FileTree].latest() is None or not tools.filesystem.exists("/a")
    assert [(call.status, call.error_code) for call in session[ToolCalls].all()] == [("error", "cancelled")]


def test_a_coroutine_function_cannot_be_called_without_awaiting() -> None:
    tools = Toolset(Session(), tools=[ASYNC])
    with pytest.raises(TypeError, match="use acall"):
        tools.call("write_twice", {"path": "/a"})


@pytest.mark.parametrize("fails", [False, True])
def test_fifty_tasks_with_some_failures_leave_exactly_the_successful_changes(files: Filesystem, fails: bool) -> None:
    session = session_of(files)

    def handle(params: Slow, *, context: ToolContext) -> ToolResult[None]:
        fs = require_filesystem(context)
        number = int(params.path)
        for step in range(4):
            if number % 3 == 0 and step == number % 4:
                if fails:
                    return ToolResult("refused", None, success=False)
                raise OSError(f"failed in step {step}")
            fs.write(f"/{number}/{step}", str(number))
        return ToolResult("done", None)

    tools = Toolset(session, files, tools=[Tool("steps", "Write four files.", Slow, handle)])

    async def main() -> list[ToolResult[object]]:
        return await asyncio.gather(*(tools.acall("steps", {"path": str(n)}) for n in range(50)))

    results = asyncio.run(main())
    assert [result.success for result in results] == [n % 3 != 0 for n in range(50)]
    expected = {f"/{n}/{step}" for n in range(50) if n % 3 for step in range(4)}
    assert {entry.path for entry in files.walk("/") if entry.is_file} == expected
    assert {entry.path for entry in files.walk("/") if entry.is_directory} == {f"/{n}" for n in range(50) if n % 3}
    assert len(session[ToolCalls].all()) == 50


async def write_in_a_thread(fs: Filesystem, path: str) -> None:
    await asyncio.to_thread(fs.write, path, "trace")


async def write_in_tasks(fs: Filesystem, path: str) -> None:
    async def write(name: str) -> None:
        await asyncio.sleep(0)
        fs.write(name, "trace")

    await asyncio.gather(write(path), write(path + "2"))


async def write_in_time(fs: Filesystem, path: str) -> None:
    await asyncio.wait_for(write_in_tasks(fs, path), 60)


WAYS = [write_in_a_thread, write_in_tasks, write_in_time]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fails", [True, False])
def test_changes_in_tasks_and_threads_of_a_handler_belong_to_its_call(
    files: Filesystem, way: Callable[[Filesystem, str], Awaitable[None]], fails: bool
) -> None:
    async def handle(params: Slow, *, context: ToolContext) -> ToolResult[None]:
        fs = require_filesystem(context)
        fs.write("/first", "trace")
        await way(fs, params.path)
        assert fs.exists(params.path)
        if fails:
            raise ValueError("no such luck")
        return ToolResult("done", None)

    session = session_of(files)
    tools = Toolset(session, files, tools=[Tool("spread", "Write here and there.", Slow, handle)])
    before = files.tree().fingerprint
    result = asyncio.run(tools.acall("spread", {"path": "/x"}))
    assert result.success is not fails
    assert (files.tree().fingerprint == before) is fails
    assert files.exists("/x") is not fails


def test_tasks_and_threads_of_a_cancelled_call_are_refused(files: Filesystem) -> None:
    begun, may_go, refused = asyncio.Event(), threading.Event(), list[BaseException]()

    async def handle(params: Slow, *, context: ToolContext) -> ToolResult[None]:
        fs = require_filesystem(context)
        fs.write("/first", "trace")
        begun.set()

        def late() -> None:
            may_go.wait(60)
            try:
                fs.write("/late", "trace")
            except BaseException as error:
                refused.append(error)

        await asyncio.to_thread(late)
        return ToolResult("done", None)

    session = session_of(files)
    tools = Toolset(session, files, tools=[Tool("late", "Write late.", Slow, handle)])

    async def main() -> None:
        call = asyncio.create_task(tools.acall("late", {"path": "/x"}))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        may_go.set()

    asyncio.run(main())
    assert [type(error) for error in refused] == [TransactionCancelled]
    assert files.list("/") == ()


def test_a_cancelled_call_logs_nothing_to_asyncio(caplog: pytest.LogCaptureFixture) -> None:
    gate = GuardedPrimitives()
    tools = Toolset(Session(), tools=[gate.tool])

    async def main() -> None:
        call = asyncio.create_task(tools.acall("slow", {"path": "/a"}))
        await asyncio.to_thread(gate.reached.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.may_go.set()
        await asyncio.to_thread(gate.ended.wait, 60)
        await asyncio.sleep(0.01)

    asyncio.run(main())
    gc.collect()
    assert caplog.records == []


@frozen
class Nothing:
    """No parameters."""


def _threads_of(tools: Toolset, name: str) -> tuple[object, int]:
    async def main() -> tuple[object, int]:
        return (await tools.acall(name, {})).value, threading.get_ident()

    return asyncio.run(main())


def where(params: Nothing, *, context: ToolContext) -> ToolResult[int]:
    require_filesystem(context).write("/a", "by this call")
    return ToolResult("here", threading.get_ident())


def test_a_quick_tool_on_files_in_memory_runs_in_the_event_loops_thread() -> None:
    tools = Toolset(Session(), tools=[Tool("where", "", Nothing, where, is_quick=True)])
    ran, loop = _threads_of(tools, "where")
    assert ran == loop


def test_a_tool_that_may_take_long_runs_in_its_own_thread() -> None:
    tools = Toolset(Session(), tools=[Tool("where", "", Nothing, where)])
    ran, loop = _threads_of(tools, "where")
    assert ran != loop


def test_a_quick_tool_uses_a_thread_if_a_custom_rule_judges_its_calls() -> None:
    policy = Policy((), check=lambda call, context: None)
    tools = Toolset(Session(), tools=[Tool("where", "", Nothing, where, is_quick=True)], policy=policy)
    ran, loop = _threads_of(tools, "where")
    assert ran != loop


def test_a_quick_tool_uses_a_thread_if_files_are_on_the_host(tmp_path: Path) -> None:
    session = Session()
    (tmp_path / "root").mkdir()
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    ran, loop = _threads_of(Toolset(session, files, tools=[Tool("where", "", Nothing, where, is_quick=True)]), "where")
    assert ran != loop


def test_a_quick_call_does_not_join_the_surrounding_transaction() -> None:
    session = Session()
    tools = Toolset(session, tools=[Tool("where", "", Nothing, where, is_quick=True)])

    async def main() -> None:
        with session.transaction():
            await tools.acall("where", {})
            raise ValueError("undone")

    with pytest.raises(ValueError, match="undone"):
        asyncio.run(main())
    assert tools.filesystem.exists("/a")


def test_quick_calls_of_one_task_let_others_run() -> None:
    tools = Toolset(Session())
    order: list[str] = []

    async def calls(name: str) -> None:
        for _ in range(3):
            await tools.acall("exists", {"path": "/a"})
            order.append(name)

    async def main() -> None:
        await asyncio.gather(calls("one"), calls("two"))

    asyncio.run(main())
    assert order == ["one", "two"] * 3
