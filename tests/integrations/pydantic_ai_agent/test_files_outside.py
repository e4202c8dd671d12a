"""Runs on files outside the session, which are reverted if a run fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integrations.pydantic_ai_agent.conftest import agent, scripted, write
from weakfs import HostFilesystem, Session, Toolset
from weakfs.integrations.pydantic_ai import SessionToolset
from weakfs.processes import Bubblewrap


def on_the_host(tmp_path: Path) -> tuple[Session, SessionToolset[object]]:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/kept").write_text("kept\n")
    session = Session(session_id="main")
    return session, SessionToolset(
        Toolset(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))
    )


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_on_the_host_is_reverted_if_it_fails(tmp_path: Path, fails: bool) -> None:
    _, tools = on_the_host(tmp_path)
    root = tmp_path / "root"
    calls = [write("/a", "1\n"), ("rm", {"path": "/kept"})]
    run = agent(scripted(calls, [write("/a", "2\n")], [("person", {})], [("end", {})]), tools)

    @run.tool_plain
    def person() -> str:
        (root / "mine").write_text("mine\n")
        return "ok"

    @run.tool_plain
    def end() -> str:
        if fails:
            raise ZeroDivisionError
        return "ok"

    if fails:
        with pytest.raises(ZeroDivisionError):
            run.run_sync("go")
    else:
        run.run_sync("go")

    found = {path.name: path.read_text() for path in root.iterdir()}
    assert found == ({"kept": "kept\n", "mine": "mine\n"} if fails else {"a": "2\n", "mine": "mine\n"})


@pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")
def test_a_run_on_the_host_that_is_cancelled_in_a_command_is_reverted(tmp_path: Path) -> None:
    _, tools = on_the_host(tmp_path)
    root = tmp_path / "root"
    command = ("shell", {"command": "touch begun; sleep 60"})

    async def work() -> None:
        run = asyncio.create_task(agent(scripted([write("/a", "1\n")], [command]), tools).run("go"))
        while not (root / "begun").exists():
            assert not run.done(), run.exception()
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(work())
    assert {path.name: path.read_text() for path in root.iterdir()} == {"kept": "kept\n"}


def test_a_nested_run_on_the_host_is_reverted_with_the_outer_run(tmp_path: Path) -> None:
    _, tools = on_the_host(tmp_path)
    inner = agent(scripted([write("/b", "1\n")]), tools)
    outer = agent(scripted([write("/a", "1\n")], [("ask", {})], [("end", {})]), tools)

    @outer.tool_plain
    async def ask() -> str:
        return (await inner.run("go")).output

    @outer.tool_plain
    def end() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        outer.run_sync("go")
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["kept"]
