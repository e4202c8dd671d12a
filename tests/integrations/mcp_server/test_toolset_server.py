"""The server of a toolset, with the SDK's client in the same process, in both generations of the protocol."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from attrs import frozen
from mcp.client.client import Client

from tests.integrations.mcp_server.toolset_client import ERAS, TOOLS, call, served, text_of
from weakfs import (
    DEFAULT_TOOLS,
    Capability,
    HostFilesystem,
    InMemoryFilesystem,
    Session,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
)
from weakfs.processes import Bubblewrap
from weakfs.tools import Receipt, ToolCall
from weakfs.tools.context import require_filesystem
from weakfs.tools.permissions.operations import OPERATIONS
from weakfs.tools.results import answer


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_listed_with_schemas_and_hints(era: str) -> None:
    async def work(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        assert [*tools] == [tool.name for tool in TOOLS]
        for tool in tools.values():
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            assert tool.annotations is not None
        assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint} == {
            "ls",
            "read_file",
            "glob",
            "grep",
            "stat",
            "exists",
            "timeline",
        }

    served(Session(), work, era)


@pytest.mark.parametrize("era", ERAS)
def test_work_is_done_undone_and_named_by_its_call(era: str) -> None:
    session = Session()

    async def work(client: Client) -> None:
        await call(client, "write_file", path="/a.txt", content="one\n")
        second = await call(client, "write_file", path="/b.txt", content="two\n")
        taken = await call(client, "snapshot", tag="both")
        await call(client, "rm", path="/a.txt")
        assert taken.structured_content is not None
        assert taken.structured_content["tag"] == "both"

        rows = (await call(client, "timeline")).structured_content["rows"]
        assert [row["action"] for row in rows if row["kind"] == "call"] == ["write_file"] * 2 + ["snapshot", "rm"]
        assert second.meta is not None
        call_id = second.meta["weakfs/callId"]
        assert call_id in {row["call_id"] for row in rows}

        undone = await call(client, "undo")
        assert "/a.txt" in text_of(undone)
        assert not (await call(client, "revert", call_id=call_id)).is_error
        assert text_of(await call(client, "read_file", path="/a.txt")) == "one\n"
        assert (await call(client, "exists", path="/b.txt")).structured_content["exists"] is False
        assert not (await call(client, "restore", moment="both")).is_error
        assert text_of(await call(client, "read_file", path="/b.txt")) == "two\n"

    served(session, work, era)
    calls = session[ToolCall].all()
    assert all(one.call_id.startswith("rpc-") for one in calls)
    assert {one.caller for one in calls} == {"mcp 0.1.0"}


@pytest.mark.parametrize("era", ERAS)
def test_structured_results_match_their_schemas(era: str) -> None:
    session = Session()
    patch = "*** Begin Patch\n*** Add File: /d/c.txt\n+three\n*** End Patch\n"
    calls: list[tuple[str, dict[str, object]]] = [
        ("write_file", {"path": "/d/a.txt", "content": "one\n"}),
        ("edit_file", {"path": "/d/a.txt", "old_string": "one", "new_string": "two"}),
        ("apply_patch", {"patch": patch}),
        ("mkdir", {"path": "/d/e"}),
        ("cp", {"source": "/d/a.txt", "destination": "/d/b.txt"}),
        ("mv", {"source": "/d/b.txt", "destination": "/d/f.txt"}),
        ("rm", {"path": "/d/f.txt"}),
        ("ls", {"path": "/", "depth": 2, "sizes": True}),
        ("read_file", {"path": "/d/a.txt"}),
        ("read_file", {"path": "/bytes", "encoding": "bytes"}),
        ("read_file", {"path": "/long"}),
        ("glob", {"pattern": "**"}),
        ("grep", {"pattern": "t"}),
        ("grep", {"pattern": "t", "output": "counts"}),
        ("grep", {"pattern": "z", "max_results": 1000}),
        ("stat", {"path": "/d/a.txt"}),
        ("exists", {"path": "/none"}),
        ("snapshot", {}),
        ("timeline", {"path": "/d", "limit": 5}),
        ("undo", {}),
        ("redo", {}),
        ("restore", {"moment": "1", "preview": True}),
    ]
    if Bubblewrap().problem() is None:
        calls.append(("shell", {"command": "printf 'out\\377'; echo err >&2; touch /tmp/x new; exit 3"}))
    files = InMemoryFilesystem(session)
    files.write_bytes("/bytes", b"\xff\x00")
    files.write("/long", "z" * 300_000)
    found: dict[str, Any] = {}

    async def work(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, arguments in calls:
            result = await call(client, name, **arguments)
            assert not result.is_error, text_of(result)
            schema = tools[name].output_schema
            assert schema is not None
            jsonschema.validate(result.structured_content, schema)
            found[f"{name} {arguments.get('path', '')}".strip()] = result.structured_content

    served(session, work, era)
    assert {name for name, _ in calls} >= {tool.name for tool in TOOLS} - {"shell", "revert"}
    assert found["read_file /d/a.txt"]["content"] == "two\n"
    assert found["read_file /bytes"]["content"] == {"base64": "/wA="}
    # What is too large for the message is too large here as well.
    assert found["read_file /long"]["content"]["size_bytes"] == 300_000
    assert {entry["path"] for entry in found["ls /"]["entries"]} >= {"/d", "/d/a.txt", "/d/e"}


@frozen
class Nothing:
    """No parameters."""


@frozen(kw_only=True)
class Own(Receipt):
    """The receipt of a custom tool."""

    count: int


def test_results_of_custom_tools_are_text() -> None:
    def counting(params: Nothing, *, context: ToolContext) -> ToolResult[Own]:
        return answer(Own(count=1, summary_text="one"))

    async def work(client: Client) -> None:
        (tool,) = (await client.list_tools()).tools
        result = await call(client, "counting")
        assert tool.output_schema is None
        assert result.structured_content is None
        assert text_of(result) == "[one]" or text_of(result) == "one"

    served(Session(), work, tools=(Tool("counting", "Count.", Nothing, counting, receipt=Own),))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read_file", {}, "path: missing"),
        ("read_file", {"path": 5}, "path"),
        ("read_file", {"path": "/none"}, "there is no such entry"),
        ("write_file", {"path": "/a", "content": "x", "surprise": 1}, "surprise: no such argument"),
        ("raed_file", {"path": "/a"}, "did you mean read_file?"),
        ("snapshot", {"tag": " "}, "tag: it is blank"),
        ("restore", {"moment": "never"}, "never"),
        ("timeline", {"limit": 0}, "limit"),
    ],
)
def test_bad_arguments_are_errors_that_a_model_can_read(
    era: str, name: str, arguments: dict[str, object], said: str
) -> None:
    async def work(client: Client) -> None:
        result = await client.session.call_tool(name, arguments)

        assert result.is_error
        assert said in text_of(result)
        assert result.meta is not None
        assert result.meta["weakfs/errorCode"]

    session = Session()
    served(session, work, era)
    assert not InMemoryFilesystem(session).list()


def test_a_bug_in_a_tool_is_an_answer_and_undone(caplog: pytest.LogCaptureFixture) -> None:
    def broken(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        require_filesystem(context).write("/half.txt", "half")
        raise RuntimeError("a bug")

    session = Session()

    async def work(client: Client) -> None:
        result = await call(client, "broken")
        assert result.is_error
        assert "RuntimeError: a bug" in text_of(result)
        assert not (await call(client, "ls", path="/")).is_error

    served(session, work, tools=[*DEFAULT_TOOLS, Tool("broken", "Fails.", Nothing, broken)])
    assert not InMemoryFilesystem(session).exists("/half.txt")
    assert "the tool broken failed unexpectedly" in caplog.text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("on_host", [False, True])
def test_a_cancelled_call_is_undone(era: str, on_host: bool, tmp_path: Path) -> None:
    reached, release = threading.Event(), threading.Event()

    def slow(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        require_filesystem(context).write("/half.txt", "half")
        reached.set()
        release.wait(300)
        require_filesystem(context).write("/rest.txt", "rest")
        return ToolResult("done", None)

    (tmp_path / "root").mkdir()
    session = Session()
    files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store") if on_host else None

    async def work(client: Client) -> None:
        making = asyncio.create_task(client.call_tool("slow", {}))
        await asyncio.to_thread(reached.wait, 300)
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
        while not any(one.tool == "slow" for one in session[ToolCall].all()):
            await asyncio.sleep(0.01)
        release.set()
        assert not (await call(client, "ls", path="/")).is_error

    served(session, work, era, filesystem=files, tools=[*DEFAULT_TOOLS, Tool("slow", "Waits.", Nothing, slow)])
    assert [one.error_code for one in session[ToolCall].all() if one.tool == "slow"] == ["cancelled"]
    assert not [*(tmp_path / "root").iterdir()]


@pytest.mark.parametrize("era", ERAS)
def test_calls_may_run_concurrently(era: str) -> None:
    session = Session()

    async def work(client: Client) -> None:
        results = await asyncio.gather(
            *(call(client, "write_file", path=f"/{number}.txt", content=str(number)) for number in range(30)),
            *(call(client, "edit_file", path="/none", old_string="a", new_string="b") for _ in range(5)),
        )
        assert [result.is_error for result in results] == [False] * 30 + [True] * 5

    served(session, work, era)
    assert len(InMemoryFilesystem(session).list()) == 30
    assert len({one.call_id for one in session[ToolCall].all()}) == 35


def test_the_same_request_id_on_another_connection_is_another_call(tmp_path: Path) -> None:
    with Session.open(tmp_path / "sessions", "one") as session:

        async def append(client: Client) -> None:
            await call(client, "write_file", path="/log", content="x", mode="append")

        served(session, append)
        served(session, append)
        assert InMemoryFilesystem(session).read("/log").content == "xx"


@pytest.mark.parametrize(
    ("name", "arguments", "operation"),
    [("timeline", {}, "list"), ("snapshot", {}, "write"), ("restore", {"moment": "0"}, "write"), ("undo", {}, "write")],
)
def test_a_tool_of_the_history_needs_its_operation(name: str, arguments: dict[str, object], operation: str) -> None:
    session = Session()
    others = Capability(allowed_fs_ops=[one for one in OPERATIONS if one != operation])
    tools = Toolset(session, tools=TOOLS, capability=others)

    refused = tools.call(name, arguments)

    assert refused.error_code == "operation_forbidden"
    assert session.snapshots == ()
