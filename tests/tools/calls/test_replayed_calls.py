"""Sessions of tool calls are replayed from their records: no handler runs, and the result is the same."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from attrs import define, frozen

from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.session import Session as AnySession
from weakfs.session.replay.verification import Comparison, Rebuilding
from weakfs.tools import ToolCalls, require_filesystem
from weakfs.transcripts import read_transcript

FIXTURES = Path(__file__).parents[3] / "fixtures"
THREADS = 6


@frozen
class TouchParams:
    path: str


@define
class Handlers:
    """A tool that counts how often it runs, and fails every third time, after it wrote."""

    ran: int = 0

    def handle(self, params: TouchParams, *, context: ToolContext) -> ToolResult[None]:
        self.ran += 1
        files = require_filesystem(context)
        files.append(params.path, f"{self.ran}\n")
        if self.ran % 3 == 0:
            raise OSError("every third time")
        return ToolResult(message="touched", value=None)


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture
def toolset(handlers: Handlers) -> Toolset:
    touch = Tool("touch", "For tests.", TouchParams, handlers.handle)
    return Toolset(Session(session_id="s"), tools=(*DEFAULT_TOOLS, touch))


def assert_replayed(session: AnySession) -> None:
    """Compare a session with its replay, and each of its states with what its records give."""
    again = session.replayed()
    rules, line, own = session._parts()
    same = Comparison(rules)
    assert same.differing(session._table("state"), again._table("state")) == ()
    assert same.differing(session._table("log"), again._table("log")) == ()
    assert again[ToolCalls].all() == session[ToolCalls].all()
    one, other = InMemoryFilesystem(session).tree(), InMemoryFilesystem(again).tree()
    assert (one.digest, one.fingerprint) == (other.digest, other.fingerprint)
    moments = list(Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments())
    assert [moment for moment in moments if not moment.is_same] == []


def test_a_replay_does_not_perform_calls(toolset: Toolset, handlers: Handlers, tmp_path: Path) -> None:
    for number in range(12):
        toolset.call("touch", {"path": f"/{number % 4}"})
    toolset.session.save(tmp_path / "s.json")

    assert_replayed(toolset.session)
    assert_replayed(Session.load(tmp_path / "s.json"))

    assert handlers.ran == 12


@pytest.mark.parametrize("name", ["shop.jsonl", "shop.anthropic.jsonl", "shop.openai-chat.jsonl"])
def test_a_recorded_session_is_replayed_without_its_workspace(tmp_path: Path, name: str) -> None:
    workspace = tmp_path / "shop"
    shutil.copytree(FIXTURES / "workspaces" / "shop", workspace, symlinks=True)
    session = Session(session_id="shop")
    toolset = Toolset(session, InMemoryFilesystem(session, mounts=[HostMount(str(workspace))]))
    session.snapshot("mounted")
    for number, call in enumerate(read_transcript(FIXTURES / "transcripts" / name).calls):
        toolset.call(call.tool, call.arguments or {}, call_id=call.call_id)
        if number % 20 == 0:
            session.snapshot()
    session.save(tmp_path / "s.json")
    shutil.rmtree(workspace)

    assert_replayed(session)
    loaded = Session.load(tmp_path / "s.json")
    assert_replayed(loaded)

    loaded.replayed().save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "s.json").read_bytes()
    assert not workspace.exists()


@pytest.mark.usefixtures("switching_often")
def test_calls_of_many_threads_are_replayed_in_the_order_of_their_commits(toolset: Toolset, tmp_path: Path) -> None:
    session = toolset.session

    def work(me: int) -> None:
        for turn in range(8):
            toolset.call("touch", {"path": f"/{me}"})
            toolset.call("write_file", {"path": f"/files/{me}/{turn}", "content": f"{turn}\n"})
            session.snapshot(f"{me} {turn}")
            if turn % 4 == 3:
                fork = session.fork()
                InMemoryFilesystem(fork).write(f"/forks/{me}", f"{turn}\n")
                session.merge(fork)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, me) for me in range(THREADS)]:
            done.result()
    session.save(tmp_path / "s.json")

    assert_replayed(session)
    assert_replayed(Session.load(tmp_path / "s.json"))


def test_calls_of_tasks_are_replayed_in_the_order_of_their_commits(toolset: Toolset) -> None:
    async def work(me: int) -> None:
        for turn in range(5):
            await asyncio.to_thread(partial(toolset.call, "touch", {"path": f"/{me}"}))
            with toolset.session.transaction(cause=f"{me}"):
                toolset.filesystem.write(f"/tasks/{me}/{turn}", "x")
                await asyncio.sleep(0)
                fork = toolset.session.fork()
                toolset.filesystem.bind(fork).write(f"/forks/{me}/{turn}", "y")
                await asyncio.sleep(0)
                toolset.session.merge(fork)

    async def together() -> None:
        await asyncio.gather(*(work(me) for me in range(4)))

    asyncio.run(together())

    assert_replayed(toolset.session)
