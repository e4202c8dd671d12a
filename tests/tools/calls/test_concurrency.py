"""Many threads call one toolset: no failure undoes the work of others, and every call is recorded correctly."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import frozen

from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import InMemoryFilesystem
from weakfs.session import RolledBack
from weakfs.session import Session as AnySession
from weakfs.tools import ToolCall, ToolCalls, require_filesystem

THREADS = 8
ROUNDS = 25


pytestmark = pytest.mark.usefixtures("switching_often")


@frozen
class SpoilParams:
    path: str


def spoil(params: SpoilParams, *, context: ToolContext) -> ToolResult[None]:
    """Write, and then fail."""
    fs = require_filesystem(context)
    fs.write(params.path, "spoiled")
    fs.write(params.path + ".more", "spoiled")
    raise OSError("failed on purpose")


def together(*work: Callable[[], object]) -> None:
    """Run all functions concurrently, each in a thread; an exception in one is raised here."""
    barrier = threading.Barrier(len(work))

    def run(one: Callable[[], object]) -> None:
        barrier.wait()
        one()

    with ThreadPoolExecutor(len(work)) as pool:
        for done in [pool.submit(run, one) for one in work]:
            done.result()


def toolset_with_spoil() -> Toolset:
    return Toolset(Session(session_id="s"), tools=(*DEFAULT_TOOLS, Tool("spoil", "For tests.", SpoilParams, spoil)))


@pytest.mark.slow
def test_threads_on_separate_files_all_take_effect_and_failures_leave_nothing() -> None:
    toolset = toolset_with_spoil()

    def work(me: int) -> None:
        for turn in range(ROUNDS):
            path = f"/d{me}/f{turn}"
            assert toolset.call("write_file", {"path": path, "content": "one\ntwo\n"}, call_id=f"w{me}.{turn}").success
            edit = {"path": path, "old_string": "two", "new_string": str(me)}
            assert toolset.call("edit_file", edit, call_id=f"e{me}.{turn}").success
            assert not toolset.call("spoil", {"path": path}, call_id=f"x{me}.{turn}").success
            assert not toolset.call("spoil", {"path": f"/new{me}"}, call_id=f"y{me}.{turn}").success

    together(*[lambda me=me: work(me) for me in range(THREADS)])

    fs = toolset.filesystem
    files = {entry.path: fs.read(entry.path).content for entry in fs.walk() if entry.is_file}
    assert files == {f"/d{me}/f{turn}": f"one\n{me}\n" for me in range(THREADS) for turn in range(ROUNDS)}
    calls = toolset.session[ToolCalls].all()
    assert len({call.call_id for call in calls}) == len(calls) == THREADS * ROUNDS * 4
    _assert_that_the_numbers_are_right(toolset.session, calls)


def _assert_that_the_numbers_are_right(session: AnySession, calls: tuple[ToolCall, ...]) -> None:
    records = tuple(session.records)
    claimed = 0
    for call in calls:
        if call.first_seq is None or call.last_seq is None:
            continue
        made = records[call.first_seq - 1 : call.last_seq]
        assert {record.cause for record in made} == {call.call_id}
        assert [record.seq for record in made] == list(range(call.first_seq, call.last_seq + 1))
        assert isinstance(made[-1].event, RolledBack) == (call.status != "ok")
        claimed += len(made)
    changes = [r for r in records if type(r.event).__name__ not in ("Merged", "ToolCall")]
    assert claimed == len(changes)


def test_threads_on_one_file_take_effect_one_after_another_or_conflict() -> None:
    toolset = toolset_with_spoil()
    toolset.filesystem.write("/log", "")
    added: list[str] = []

    def work(me: int) -> None:
        for turn in range(ROUNDS):
            line = f"{me}.{turn}\n"
            result = toolset.call("write_file", {"path": "/log", "content": line, "mode": "append"})
            assert result.success or result.status == "conflict"
            if result.success:
                added.append(line)

    together(*[lambda me=me: work(me) for me in range(THREADS)])

    assert sorted(toolset.filesystem.read_lines("/log")) == sorted(added)
    assert added
    statuses = [call.status for call in toolset.session[ToolCall].all()]
    assert statuses.count("ok") == len(added)
    assert len(statuses) == THREADS * ROUNDS


def test_every_call_has_its_own_id() -> None:
    toolset = toolset_with_spoil()

    together(*[lambda: [toolset.call("exists", {"path": "/"}) for _ in range(ROUNDS)] for _ in range(THREADS)])

    ids = {call.call_id for call in toolset.session[ToolCall].all()}
    assert ids == {f"s/call{number}" for number in range(1, THREADS * ROUNDS + 1)}


def test_a_session_replayed_from_its_records_holds_the_same_files_and_calls() -> None:
    toolset = toolset_with_spoil()

    def work(me: int) -> None:
        for turn in range(5):
            toolset.call("write_file", {"path": f"/{me}/{turn}", "content": "x"})
            toolset.call("spoil", {"path": f"/{turn}"})

    together(*[lambda me=me: work(me) for me in range(THREADS)])

    again = Session(session_id="s")
    Toolset(again)
    again.replay(toolset.session.records)

    assert InMemoryFilesystem(again).tree().fingerprint == toolset.filesystem.tree().fingerprint
    assert again[ToolCall].all() == toolset.session[ToolCall].all()


def test_calls_of_tasks_are_isolated() -> None:
    toolset = toolset_with_spoil()

    async def task(me: int) -> None:
        for turn in range(3):
            path = f"/{me}/{turn}"
            assert (await asyncio.to_thread(toolset.call, "write_file", {"path": path, "content": "x"})).success
            await asyncio.sleep(0)
            assert not toolset.call("spoil", {"path": path}).success

    async def main() -> None:
        await asyncio.gather(*(task(me) for me in range(THREADS)))

    asyncio.run(main())

    assert toolset.filesystem.statistics().file_count == THREADS * 3
    assert toolset.filesystem.grep("spoiled") == ()
