"""The command `weakfs mcp` as a client starts it: over stdio, over HTTP, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.forked_command import run_command
from weakfs import HostFilesystem, Session, Toolset
from weakfs.integrations.mcp import http_app, toolset_server

WEAKFS = (sys.executable, "-m", "weakfs")
# A client's first message, of the last revision with a handshake.
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def stdio(*arguments: str, mode: str = "auto") -> Client:
    arguments = (*WEAKFS[1:], "mcp", *arguments)
    parameters = StdioServerParameters(command=WEAKFS[0], args=[*arguments], cwd=str(Path.cwd()), env=dict(os.environ))
    return Client(stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr), mode=mode)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_directory_over_stdio_is_changed_and_undone_by_another_process(tmp_path: Path, mode: str) -> None:
    root, store, sessions = tmp_path / "root", str(tmp_path / "store"), str(tmp_path / "sessions")
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    options = (str(root), "--session", sessions, "--store", store)

    async def work() -> None:
        async with stdio(*options, mode=mode) as client:
            edit = {"path": "/a.txt", "old_string": "one", "new_string": "two"}
            assert not (await client.call_tool("edit_file", edit)).is_error
            assert (await client.session.call_tool("edit_file", edit)).is_error

    asyncio.run(work())
    assert (root / "a.txt").read_text() == "two\n"
    rows = [json.loads(line) for line in run_command("timeline", sessions, "--json").stdout.splitlines()]
    assert [row["action"] for row in rows if row["kind"] == "call"] == ["edit_file", "edit_file"]
    undone = run_command("undo", sessions, "--root", str(root), "--store", store)
    assert undone.returncode == 0, undone.stderr
    assert (root / "a.txt").read_text() == "one\n"


@pytest.mark.slow
async def test_the_profile_filesystem_over_stdio(tmp_path: Path) -> None:
    async with stdio(str(tmp_path), "--profile", "filesystem", "--no-history-tools", mode="legacy") as client:
        assert len((await client.list_tools()).tools) == 14
        done = await client.call_tool("write_file", {"path": str(tmp_path / "x"), "content": "x"})
        assert done.structured_content == {"content": f"Successfully wrote to {tmp_path}/x"}


@pytest.mark.slow
def test_a_session_without_a_directory_continues_in_another_server(tmp_path: Path) -> None:
    async def work(name: str, **arguments: str) -> str:
        async with stdio("--session", str(tmp_path / "sessions")) as client:
            done = await client.call_tool(name, arguments)
            assert isinstance(done.content[0], types.TextContent)
            return done.content[0].text

    asyncio.run(work("write_file", path="/a", content="kept"))
    assert asyncio.run(work("read_file", path="/a")) == "kept"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_servers_that_start_at_once_on_an_empty_location_share_a_session(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    location = str(tmp_path / "sessions") if kind == "folder" else f"sqlite:{tmp_path}/sessions.db"
    # The same place, spelled in another way.
    other = "./x/../sessions" if kind == "folder" else "sqlite:sessions.db"

    async def work() -> None:
        async with stdio("--session", location) as one, stdio("--session", other) as two:
            for number, client in enumerate((one, two)):
                written = await client.call_tool("write_file", {"path": f"/{number}", "content": f"from {number}"})
                assert not written.is_error
            done = await two.call_tool("read_file", {"path": "/0"})
            assert isinstance(done.content[0], types.TextContent)
            assert done.content[0].text == "from 0"
        async with stdio("--session", location) as three:
            assert not (await three.call_tool("read_file", {"path": "/1"})).is_error

    (tmp_path / "x").mkdir()
    asyncio.run(work())
    assert len(run_command("sessions", location, "--json").stdout.splitlines()) == 1


@pytest.mark.slow
def test_printed_output_goes_to_standard_error() -> None:
    code = """
import asyncio, os
from attrs import frozen
from weakfs import Session, Tool, ToolResult, Toolset
from weakfs.integrations.mcp import serve_stdio, toolset_server

@frozen
class Nothing: pass

def loud(params, *, context):
    print("printed")
    os.system("echo from a child")
    return ToolResult("done", None)

asyncio.run(serve_stdio(toolset_server(Toolset(Session(), tools=[Tool("loud", "Prints.", Nothing, loud)]))))
"""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "loud", "arguments": {}}}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    for message in (INITIALIZE, ready, call):
        process.stdin.write(f"{json.dumps(message)}\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.stdin.close()
    assert process.wait(300) == 0
    assert [one["id"] for one in answers] == [0, 1]
    assert process.stdout.read() == ""
    errors = process.stderr.read()
    assert "printed" in errors
    assert "from a child" in errors
    process.stdout.close()
    process.stderr.close()


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [*WEAKFS, "mcp", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(INITIALIZE)}\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        # Its input is still open.
        assert process.wait(300) == 130
        _, errors = process.communicate()
    assert "Traceback" not in errors
    assert "Fatal" not in errors


@contextmanager
def http(*arguments: str) -> Iterator[str]:
    with subprocess.Popen(
        [*WEAKFS, "mcp", *arguments, "--http", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said, _, url = process.stdout.readline().strip().partition(" ")
            assert said == "serving", process.communicate()
            yield url
        finally:
            process.terminate()
            printed, errors = process.communicate(timeout=300)
        assert printed == ""
        assert "Traceback" not in errors


@pytest.mark.slow
def test_several_clients_over_http_in_both_eras(tmp_path: Path) -> None:
    async def work(url: str) -> None:
        async with Client(url, mode="legacy") as one, Client(url) as other:
            await asyncio.gather(
                *(
                    client.call_tool("write_file", {"path": f"/{name}{number}", "content": name})
                    for number in range(5)
                    for name, client in (("one", one), ("other", other))
                )
            )
            rows = (await other.call_tool("timeline", {})).structured_content["rows"]
            assert len({row["caller"] for row in rows}) == 2

    with http(str(tmp_path / "."), "--store", f"{tmp_path}-store") as url:
        asyncio.run(work(url))
        for header, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
            request = urllib.request.Request(
                url,
                json.dumps(INITIALIZE).encode(),
                {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", header: value},
            )
            with pytest.raises(urllib.error.HTTPError, match=r"403|421"):
                urllib.request.urlopen(request, timeout=300)
    assert len([*tmp_path.iterdir()]) == 10


@pytest.mark.slow
def test_a_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    store = ("--store", str(tmp_path / "store"))
    with http(str(tmp_path / "root"), *store) as url:
        port = url.removeprefix("http://127.0.0.1:").removesuffix("/mcp")
        run = run_command("mcp", str(tmp_path / "root"), "--http", port, *store)
    assert run.returncode == 1
    assert run.stderr == (
        f"weakfs: cannot serve on '127.0.0.1', port {port}: another program uses the port; name another port, or 0 for "
        "any free one\n"
    )


def test_http_serves_this_machine_only_unless_hosts_are_named() -> None:
    server = toolset_server(Toolset(Session()))

    with pytest.raises(ValueError, match=r"cannot serve on '0\.0\.0\.0': anyone who can reach it"):
        http_app(server, host="0.0.0.0")
    assert http_app(server, host="0.0.0.0", allowed_hosts=["files.example.com"])


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        ((), "there is nothing to serve; name a directory", 2),
        (("a", "b"), "cannot serve 2 directories with --profile weakfs", 2),
        (("none",), "cannot open 'none'", 1),
        (("none", "--profile", "filesystem"), "cannot serve the directories", 1),
        (("--session", "pyproject.toml"), "copy it into storage: weakfs import pyproject.toml FOLDER", 1),
        ((".", "--http", "0", "--host", "0.0.0.0"), "anyone who can reach it", 1),
    ],
)
def test_invalid_arguments_are_refused_with_a_remedy(arguments: tuple[str, ...], message: str, status: int) -> None:
    done = run_command("mcp", *arguments)

    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_session_that_worked_in_a_directory_needs_it(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with Session.open(tmp_path / "sessions", "one") as session:
        HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store").write("/a", "x")

    done = run_command("mcp", "--session", str(tmp_path / "sessions"))

    assert done.returncode == 2
    assert re.search(r"without its directory: the session worked in host:.*; name DIR too", done.stderr)


def test_without_its_extra_the_module_names_the_extra() -> None:
    code = """
import sys
sys.modules["mcp"] = None
try:
    import weakfs.integrations.mcp
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "run: pip install 'weakfs[mcp]'" in done.stdout


@pytest.mark.slow
async def test_another_process_undoes_while_the_server_runs(tmp_path: Path) -> None:
    root, store, sessions = tmp_path / "root", str(tmp_path / "store"), str(tmp_path / "sessions")
    root.mkdir()
    options = (str(root), "--profile", "filesystem", "--session", sessions, "--store", store)

    async with stdio(*options, mode="legacy") as client:

        async def write(name: str) -> None:
            assert not (await client.call_tool("write_file", {"path": str(root / name), "content": name})).is_error

        await asyncio.gather(*(write(f"file{number}") for number in range(10)))
        await write("last")
        undo = [*WEAKFS, "undo", sessions, "--root", str(root), "--store", store]
        undone = await asyncio.to_thread(subprocess.run, undo, capture_output=True, text=True, check=False)
        assert undone.returncode == 0, undone.stderr
        assert not (root / "last").exists()
        await write("after")
        assert not (await client.call_tool("undo", {})).is_error
        assert len([*root.iterdir()]) == 10
