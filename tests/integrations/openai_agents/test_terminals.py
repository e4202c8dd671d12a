"""Commands of a sandbox that keep running: terminals, input, signals, their end, and what they changed."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from tests.models.cancellation_points import Point
from tests.storage.servers import free_port
from weakfs import HostFilesystem, Session
from weakfs.processes import Bubblewrap
from weakfs.processes.background import ProcessLimits
from weakfs.tools import Capability, ToolCall
from weakfs.tools.handlers import ProcessOptions

if TYPE_CHECKING:
    from agents.sandbox.session import SandboxSession
    from agents.sandbox.session.pty_types import PtyExecUpdate

pytestmark = [
    pytest.mark.usefixtures("never_hung"),
    pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox"),
    pytest.mark.skipif(shutil.which("script") is None, reason="there is no program script"),
]

Act = Callable[["SandboxSession", Session], Awaitable[None]]


def drive(
    act: Act,
    directory: Path,
    *,
    processes: ProcessOptions | None = ProcessOptions(),  # noqa: B008  # frozen
    ports: tuple[int, ...] = (),
    capability: Capability | None = None,
) -> None:
    """Make a sandbox over a directory whose commands may keep running, and act in it."""
    from agents.sandbox.manifest import Manifest

    from weakfs.integrations.openai_agents import WeakfsSandboxClient, WeakfsSandboxOptions

    client = WeakfsSandboxClient(
        files=lambda session: HostFilesystem(directory, session=session), processes=processes, capability=capability
    )

    async def run() -> None:
        sandbox = await client.create(
            manifest=Manifest(environment={"value": {"COLOR": "red"}}),  # type: ignore[arg-type]
            options=WeakfsSandboxOptions(exposed_ports=ports),
        )
        async with sandbox:
            await act(sandbox, client.session_of(sandbox))
        await client.delete(sandbox)

    asyncio.run(run())


async def printed(sandbox: SandboxSession, started: PtyExecUpdate, end: bytes) -> bytes:
    """Return what a command that keeps running has printed once it has printed `end`."""
    assert started.process_id is not None
    output = started.output
    while not output.endswith(end):
        more = await sandbox.pty_write_stdin(session_id=started.process_id, chars="", yield_time_s=0.25)
        assert more.process_id is not None
        output += more.output
    return output


async def last_answer(sandbox: SandboxSession, started: PtyExecUpdate, chars: str) -> PtyExecUpdate:
    """Type into a terminal, and return the last answer with all output once the command has ended."""
    assert started.process_id is not None
    answer = await sandbox.pty_write_stdin(session_id=started.process_id, chars=chars, yield_time_s=20)
    output = answer.output
    while answer.process_id is not None:
        answer = await sandbox.pty_write_stdin(session_id=started.process_id, chars="", yield_time_s=20)
        output += answer.output
    return replace(answer, output=output)


def test_a_command_in_a_terminal_reads_typed_input_and_its_changes_are_undone(tmp_path: Path) -> None:
    from agents.sandbox.errors import PtySessionNotFoundError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        await sandbox.write(Path("old"), io.BytesIO(b"old\n"))
        started = await sandbox.pty_exec_start(
            "rm old; tty; echo $COLOR $TERM; pwd; read name; echo hello $name > new; exit 3", tty=True, yield_time_s=0.5
        )
        assert (started.exit_code, started.process_id is None) == (None, False)
        output = await printed(sandbox, started, b"/workspace\r\n")
        assert re.fullmatch(rb"/dev/pts/\d+\r\nred \S+\r\n/workspace\r\n", output)
        assert started.process_id is not None
        ended = await last_answer(sandbox, started, "Ann\n")
        assert (ended.process_id, ended.exit_code, ended.output) == (None, 3, b"Ann\r\n")
        assert (await sandbox.read(Path("new"))).read() == b"hello Ann\n"
        with pytest.raises(PtySessionNotFoundError):
            await sandbox.pty_write_stdin(session_id=started.process_id, chars="")
        assert session.undo().paths == ("/new", "/old")
        assert (await sandbox.read(Path("old"))).read() == b"old\n"

    drive(act, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize(("key", "number"), [("\x03", 2), ("\x1c", 3)])
def test_keys_of_a_terminal_send_their_signals(tmp_path: Path, key: str, number: int) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        words = ("sh", "-c", "echo ready; exec sleep 1000")
        started = await sandbox.pty_exec_start(*words, shell=False, tty=True, yield_time_s=0.25)
        assert started.process_id is not None
        await printed(sandbox, started, b"ready\r\n")
        ended = await last_answer(sandbox, started, key)
        assert (ended.process_id, ended.exit_code) == (None, 128 + number)

    drive(act, tmp_path)


def test_a_command_without_a_terminal_keeps_running_and_has_no_input(tmp_path: Path) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        started = await sandbox.pty_exec_start(
            "cat; tty; echo out; echo error >&2; until [ -e beside ]; do sleep 0.05; done; echo late",
            yield_time_s=0.25,
        )
        assert started.process_id is not None
        assert await printed(sandbox, started, b"error\n") == b"not a tty\nout\nerror\n"
        with pytest.raises(RuntimeError, match="stdin is not available"):
            await sandbox.pty_write_stdin(session_id=started.process_id, chars="x")
        # Files are read and written meanwhile.
        await sandbox.write(Path("beside"), io.BytesIO(b"1"))
        ended = await last_answer(sandbox, started, "")
        assert (ended.process_id, ended.exit_code, ended.output) == (None, 0, b"late\n")
        assert session.undo().paths == ("/beside",)

    drive(act, tmp_path)


def test_all_of_a_large_output_is_returned(tmp_path: Path) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        done = await sandbox.pty_exec_start("seq 1 30000", yield_time_s=20)
        assert done.output.split() == [str(number).encode() for number in range(1, 30001)]
        cut = await sandbox.pty_exec_start("seq 1 30000", yield_time_s=20, max_output_tokens=10)
        assert len(cut.output) < 500
        assert cut.original_token_count is not None
        assert cut.original_token_count > 10_000

    drive(act, tmp_path)


def test_commands_still_running_are_ended_with_the_sandbox_and_their_changes_recorded(tmp_path: Path) -> None:
    held: list[Session] = []

    async def act(sandbox: SandboxSession, session: Session) -> None:
        held.append(session)
        for number in range(3):
            command = f"echo {number} > f{number}; echo made; sleep 600"
            await printed(sandbox, await sandbox.pty_exec_start(command, tty=True, yield_time_s=0.5), b"made\r\n")
        await sandbox.stop()
        paths = {getattr(record.event, "path", None) for record in session.records}
        assert paths >= {"/f0", "/f1", "/f2"}
        states = {info.state for info in HostFilesystem(tmp_path, session=session).background.infos()}
        assert states == {"ended"}

    drive(act, tmp_path)


def test_excess_and_forbidden_commands_are_refused(tmp_path: Path) -> None:
    from agents.sandbox.errors import ExecTransportError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        assert (await sandbox.pty_exec_start("sleep 60", yield_time_s=0.25)).process_id is not None
        with pytest.raises(ExecTransportError, match="1 are running and 1 are allowed"):
            await sandbox.pty_exec_start("sleep 60", yield_time_s=0.25)

    drive(act, tmp_path, processes=ProcessOptions(process_limits=ProcessLimits(max_running=1)))

    async def refused(sandbox: SandboxSession, session: Session) -> None:
        with pytest.raises(ExecTransportError):
            await sandbox.pty_exec_start("touch x", tty=True)
        assert not (tmp_path / "x").exists()

    drive(refused, tmp_path, capability=Capability(allowed_fs_ops=frozenset({"read", "write", "list"})))


def test_commands_run_while_others_keep_running(tmp_path: Path) -> None:
    from agents.sandbox.errors import ExecTimeoutError

    async def act(sandbox: SandboxSession, session: Session) -> None:
        server = await sandbox.pty_exec_start("cat", tty=True, yield_time_s=0.25)
        assert server.process_id is not None
        done = await sandbox.exec("echo $COLOR; echo error >&2; touch made; exit 3")
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"red\nerror\n", b"")
        with pytest.raises(ExecTimeoutError):
            await sandbox.exec("sleep 60", timeout=0.3)
        both = await asyncio.gather(sandbox.exec("echo 1"), sandbox.exec("echo 2"))
        assert [one.stdout for one in both] == [b"1\n", b"2\n"]
        states = [info.state for info in HostFilesystem(tmp_path, session=session).background.infos()]
        assert states == ["running", *["ended"] * 4]
        assert (await sandbox.ls("."))[0].path == "/workspace/made"
        assert session.undo().paths == ("/made",)
        await last_answer(sandbox, server, "\x04")
        # When it has the files to itself again, a command that times out is undone.
        with pytest.raises(ExecTimeoutError):
            await sandbox.exec("touch half; sleep 60", timeout=0.5)
        assert not (tmp_path / "half").exists()

    drive(act, tmp_path)


@pytest.mark.parametrize(("key", "number"), [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_keys_send_signals_that_the_program_itself_ignores(tmp_path: Path, key: str, number: signal.Signals) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        # A shell may lose SIGINT between forking and executing a program, so it must not fork after "ready".
        started = await sandbox.pty_exec_start("echo ready; exec sleep 1000", tty=True, yield_time_s=0.25)
        assert started.process_id is not None
        await printed(sandbox, started, b"ready\r\n")
        ended = await last_answer(sandbox, started, key)
        assert (ended.process_id, ended.exit_code) == (None, 128 + number)

    before = signal.signal(number, signal.SIG_IGN)
    try:
        drive(act, tmp_path)
    finally:
        signal.signal(number, before)


def test_a_cancelled_answer_leaves_the_command_running(tmp_path: Path) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        started = await sandbox.pty_exec_start("until [ -e go ]; do sleep 0.05; done; echo done", yield_time_s=0.25)
        assert started.process_id is not None
        waiting = asyncio.create_task(sandbox.pty_write_stdin(session_id=started.process_id, chars="", yield_time_s=30))
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await sandbox.write(Path("go"), io.BytesIO())
        ended = await last_answer(sandbox, started, "")
        assert (ended.exit_code, ended.output) == (0, b"done\n")

    drive(act, tmp_path)


def running(session: Session, directory: Path) -> list[str]:
    """Return the commands that are running in a directory, or are going to."""
    infos = HostFilesystem(directory, session=session).background.infos()
    return [info.command for info in infos if info.state not in ("ended", "lost")]


@pytest.mark.parametrize("tty", [False, True])
def test_a_command_whose_first_answer_is_cancelled_is_ended(tmp_path: Path, tty: bool) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        starting = asyncio.create_task(sandbox.pty_exec_start("touch begun; sleep 1000", tty=tty, yield_time_s=30))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        # Nobody knows its number.
        assert running(session, tmp_path) == []
        assert session.undo().paths == ("/begun",)

    drive(act, tmp_path)


@pytest.mark.slow
def test_a_command_whose_start_is_cancelled_anywhere_is_ended(tmp_path: Path) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        number, point = 0, None
        while point is None or point.was_reached:
            point = Point(number, is_late=number % 2 == 1, again=number % 3)
            result = await point.cancels(sandbox.pty_exec_start("sleep 1000", yield_time_s=0.25))
            number += 1
            if point.was_reached:
                assert isinstance(result, asyncio.CancelledError)
                assert running(session, tmp_path) == []
        assert number > 3
        await sandbox.pty_terminate_all()
        assert running(session, tmp_path) == []

    drive(act, tmp_path)


@pytest.mark.slow
def test_output_that_a_cancelled_answer_has_read_is_part_of_the_next_one(tmp_path: Path) -> None:
    async def act(sandbox: SandboxSession, session: Session) -> None:
        started = await sandbox.pty_exec_start(
            "stty -echo; echo ready; read line; seq 20000; read line", tty=True, yield_time_s=0.25
        )
        output = await printed(sandbox, started, b"ready\r\n")
        assert started.process_id is not None
        # After the input, a pause, the wait and the first part of the output.
        point = Point(4, is_late=False, again=0)
        answer = sandbox.pty_write_stdin(session_id=started.process_id, chars="\n", yield_time_s=0.25)
        assert isinstance(await point.cancels(answer), asyncio.CancelledError)
        while not output.endswith(b"20000\r\n"):
            more = await sandbox.pty_write_stdin(session_id=started.process_id, chars="", yield_time_s=0.25)
            output += more.output
        assert output.split() == [b"ready", *(str(number).encode() for number in range(1, 20_001))]

    drive(act, tmp_path)


async def test_terminals_need_files_in_a_directory() -> None:
    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    with pytest.raises(OSError, match="cannot start a process on an InMemoryFilesystem"):
        await WeakfsSandboxClient(processes=ProcessOptions()).create()
    sandbox = await WeakfsSandboxClient().create()
    assert not sandbox.supports_pty()


def test_a_port_is_exposed_only_if_commands_share_the_network(tmp_path: Path) -> None:
    from agents.sandbox.errors import ExposedPortUnavailableError

    port = free_port()

    async def confined(sandbox: SandboxSession, session: Session) -> None:
        with pytest.raises(ExposedPortUnavailableError) as refusal:
            await sandbox.resolve_exposed_port(port)
        assert refusal.value.context["reason"] == "backend_unavailable"

    drive(confined, tmp_path, ports=(port,))

    async def shared(sandbox: SandboxSession, session: Session) -> None:
        await sandbox.write(Path("index.html"), io.BytesIO(b"served"))
        started = await sandbox.pty_exec_start(
            f"exec python3 -u -m http.server {port} --bind 127.0.0.1", tty=True, yield_time_s=2
        )
        await printed(sandbox, started, b" ...\r\n")
        endpoint = await sandbox.resolve_exposed_port(port)
        page = await asyncio.to_thread(lambda: urlopen(endpoint.url_for("http"), timeout=120).read())
        assert page == b"served"
        with pytest.raises(ExposedPortUnavailableError) as refusal:
            await sandbox.resolve_exposed_port(9)
        assert refusal.value.context["reason"] == "not_configured"

    drive(shared, tmp_path, ports=(port,), processes=ProcessOptions(sandbox="off"))


def test_an_agent_starts_a_server_and_types_to_a_program(tmp_path: Path) -> None:
    from agents import ModelResponse, RunConfig, Runner
    from agents.run_config import SandboxRunConfig
    from agents.sandbox import SandboxAgent
    from agents.testing import ScriptedModel, assistant_message, function_call
    from openai.types.responses import ResponseFunctionToolCall

    from weakfs.integrations.openai_agents import WeakfsSandboxClient

    sessions: list[Session] = []

    def files(session: Session) -> HostFilesystem:
        sessions.append(session)
        return HostFilesystem(tmp_path, session=session)

    class Typist(ScriptedModel):
        """Types to the command that the last answer named."""

        async def get_response(self, *arguments: Any, **options: Any) -> ModelResponse:
            response = await super().get_response(*arguments, **options)
            for item in response.output:
                if isinstance(item, ResponseFunctionToolCall) and item.name == "write_stdin":
                    found = re.search(r"session ID (\d+)", str(arguments) + str(options))
                    assert found is not None
                    item.arguments = json.dumps({**json.loads(item.arguments), "session_id": int(found[1])})
            return response

    start = {"cmd": "read x; echo $x > typed", "tty": True, "yield_time_ms": 300}
    model = Typist(
        [
            [function_call("exec_command", start, call_id="call-1")],
            [function_call("write_stdin", {"chars": "words\n", "yield_time_ms": 9000}, call_id="call-2")],
            [assistant_message("done")],
        ]
    )
    agent = SandboxAgent(name="coder", model=model)
    client = WeakfsSandboxClient(files=files, processes=ProcessOptions())
    config = RunConfig(tracing_disabled=True, sandbox=SandboxRunConfig(client=client))
    asyncio.run(Runner.run(agent, "Type.", run_config=config))

    assert (tmp_path / "typed").read_text() == "words\n"
    tools = [call.tool for call in sessions[0][ToolCall].all()]
    assert [name for name in tools if name.startswith("process")] == [
        *("process_start", "process_wait", "process_output", "process_input", "process_wait", "process_output")
    ]
