"""Commands of a sandbox that keep running after the call that starts them, with or without a terminal."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from errno import ENOTSUP
from functools import partial
from pathlib import Path
from typing import cast

from agents.sandbox.errors import ExecTimeoutError, ExecTransportError, PtySessionNotFoundError
from agents.sandbox.session import BaseSandboxSession
from agents.sandbox.session.pty_types import (
    PtyExecUpdate,
    clamp_pty_yield_time_ms,
    resolve_pty_write_yield_time_ms,
    truncate_text_by_tokens,
)
from agents.sandbox.types import ExecResult, User
from attrs import evolve

from weakfs.class_decorators import define
from weakfs.errors import fault
from weakfs.integrations.command_files import printed_text
from weakfs.integrations.openai_agents.workspace import NOT_SHOWN, Exchange
from weakfs.processes.background import SupportsProcesses, no_processes
from weakfs.shield import ended, run_in_thread, shielded
from weakfs.tools import Tool, ToolContext, ToolResult, Toolset
from weakfs.tools.handlers import (
    ProcessOptions,
    ProcessOutputParams,
    ProcessOutputReceipt,
    ProcessStartParams,
    ProcessStartReceipt,
    ProcessWaitReceipt,
    process_output_handler,
    process_start_handler,
    process_tools,
)

# How long an answer waits by default, in seconds.
START_YIELD = 10.0
INPUT_YIELD = 0.25

# How long a program may take to react to its input before its output is returned.
_ECHO = 0.1

_ENDING = 60.0

# The exit code if none is known, because the command was killed together with its sandbox.
_UNKNOWN = 137


@define
class _Process:
    """A process that the agent knows: whether it has a terminal, and how much of its output was returned."""

    process_id: str
    has_terminal: bool
    since: int = 0


class Terminals:
    """The running commands of one sandbox, by the numbers that the SDK uses for them.

    Each is a background process of the session, which is the cause of the records of its changes.
    """

    def __init__(self, toolset: Toolset, options: ProcessOptions, caller: str | None) -> None:
        """Raises `OSError` (ENOTSUP) if processes cannot work on the files, for example because they are in memory."""
        files = toolset.filesystem
        if not isinstance(files, SupportsProcesses):
            raise fault(OSError, ENOTSUP, no_processes(files))
        # Mounted files in memory raise the same error here.
        self._background = files.background
        self._toolset = toolset
        self._options = options
        self._caller = caller
        self._processes: dict[int, _Process] = {}

    async def start(self, command: str, environment: dict[str, str], *, tty: bool) -> int:
        """Start a command and return its number. Raises `ExecTransportError`.

        If this is cancelled, the command is terminated: nobody would know its number.
        """
        starting = asyncio.ensure_future(self._start(command, environment, tty=tty))
        cancelled = await ended(starting)
        number = starting.result()
        if cancelled is not None:
            await self.end(number, "its start was cancelled")
            raise cancelled
        return number

    async def _start(self, command: str, environment: dict[str, str], *, tty: bool) -> int:
        options = evolve(self._options, environment={**self._options.environment, **environment})
        line = in_terminal(command, options.shell) if tty else command
        done = await self._call("process_start", {"command": line}, Exchange(options))
        started = done.value
        if not done.success or not isinstance(started, ProcessStartReceipt) or started.process_id is None:
            raise ExecTransportError(
                command=[command], message=done.message, context={"error_code": done.error_code}, retryable=False
            )
        process = _Process(started.process_id, tty)
        # A session never reuses an id, so the number of an ended process never names another one.
        number = int("".join(filter(str.isdigit, process.process_id)))
        self._processes[number] = process
        if not tty:
            await self._call("process_input", {"process_id": process.process_id, "close": True})
        return number

    async def begun(self, number: int, *, seconds: float | None, max_tokens: int | None) -> PtyExecUpdate:
        """Return what a newly started command printed until it ended or the time was up.

        If this is cancelled, the command is terminated: nobody has received its number.
        """
        asked = int((START_YIELD if seconds is None else seconds) * 1000)
        try:
            return await self._update(number, clamp_pty_yield_time_ms(asked) / 1000, max_tokens)
        except BaseException:
            await self.end(number, "its start was cancelled")
            raise

    @property
    def is_running(self) -> bool:
        """Whether any command is running, so that no other can have exclusive use of the files."""
        return any(self._background.get(one.process_id).state != "ended" for one in self._processes.values())

    async def run(self, command: str, environment: dict[str, str], *, timeout: float | None) -> tuple[bytes, int]:
        """Run a command to its end while others are running; return its output and exit code.

        Raises `TimeoutError` if it does not end in time: it is then killed, and its changes stay.
        """
        number = await self.start(command, environment, tty=False)
        process = self._known(number)
        try:
            async with asyncio.timeout(timeout):
                while (end := await self._wait(process, self._options.max_wait)) is None:
                    pass
            output = await self._output(process)
        finally:
            await self.end(number, "it took too long")
        return output.encode("utf-8", "surrogateescape"), _UNKNOWN if end.exit_code is None else end.exit_code

    async def write(self, number: int, chars: str, *, seconds: float | None, max_tokens: int | None) -> PtyExecUpdate:
        """Type into a terminal, and return what was printed since the last answer. Raises `PtySessionNotFoundError`."""
        process = self._known(number)
        if chars:
            if not process.has_terminal:
                raise RuntimeError("stdin is not available for this process")
            done = await self._call("process_input", {"process_id": process.process_id, "text": chars})
            # A program that has just ended is reported below.
            if not done.success and done.error_code != "process_not_running":
                raise RuntimeError(done.message)
            await asyncio.sleep(_ECHO)
        asked = int((INPUT_YIELD if seconds is None else seconds) * 1000)
        wait = resolve_pty_write_yield_time_ms(yield_time_ms=asked, input_empty=not chars) / 1000
        return await self._update(number, wait, max_tokens)

    async def end(self, number: int, reason: str) -> None:
        """Terminate a command if it is still running, and record what it changed."""
        process = self._processes.pop(number, None)
        if process is not None and self._background.get(process.process_id).state != "ended":
            await shielded(run_in_thread(partial(self._end, [process.process_id], reason)))

    async def end_all(self) -> None:
        """Terminate all commands, and record what they changed."""
        processes, self._processes = list(self._processes.values()), {}
        if processes:
            ids = [process.process_id for process in processes]
            await shielded(run_in_thread(partial(self._end, ids, "the sandbox was stopped")))

    def _end(self, process_ids: list[str], reason: str) -> None:
        background = self._background
        processes = [background.get(process_id) for process_id in process_ids]
        for process in processes:
            process.end(reason)
        for process in processes:
            process.wait(_ENDING)
        background.scan_changes()
        background.settle()

    async def _update(self, number: int, seconds: float, max_tokens: int | None) -> PtyExecUpdate:
        process = self._known(number)
        end = await self._wait(process, seconds)
        text = await self._output(process)
        if end is not None:
            self._processes.pop(number, None)
            if end.exit_code is None and end.ended_because:
                text += f"[{end.ended_because}]\n"
        shown, tokens = truncate_text_by_tokens(text, max_tokens)
        return PtyExecUpdate(
            process_id=number if end is None else None,
            output=shown.encode("utf-8", "surrogateescape"),
            exit_code=None if end is None else end.exit_code,
            original_token_count=tokens,
        )

    async def _wait(self, process: _Process, seconds: float) -> ProcessWaitReceipt | None:
        """Return how a process ended, or `None` if it is still running after `seconds`."""
        waited = await self._call("process_wait", {"process_id": process.process_id, "timeout": seconds})
        end = waited.value
        return end if isinstance(end, ProcessWaitReceipt) and end.timed_out is False else None

    async def _output(self, process: _Process) -> str:
        """Return the output since the last answer, or only its newest part if the rest is no longer stored."""
        texts: list[str] = []
        since, is_complete = process.since, False
        while not is_complete:
            exchange = Exchange(self._options)
            done = await self._call("process_output", {"process_id": process.process_id, "since": since}, exchange)
            found = done.value
            if not isinstance(found, ProcessOutputReceipt) or found.next is None:
                break
            texts.append(exchange.result)
            is_complete = found.next in (since, found.total)
            since = found.next
        # Only now: what a cancelled answer has read is part of the next one.
        process.since = since
        return "".join(texts)

    async def _call(
        self, name: str, arguments: dict[str, object], exchange: Exchange | None = None
    ) -> ToolResult[object]:
        return await self._toolset.acall(name, arguments, caller=self._caller, adapter=exchange)

    def _known(self, number: int) -> _Process:
        process = self._processes.get(number)
        if process is None:
            raise PtySessionNotFoundError(session_id=number)
        return process


class TerminalSession(BaseSandboxSession):
    """A sandbox whose commands may keep running after the call, with or without a terminal, if `_terminals` is set."""

    _terminals: Terminals | None
    # Held while files change: a command needs exclusive use of host files, and agents may share a sandbox.
    _turn: asyncio.Lock

    def supports_pty(self) -> bool:
        """Return whether commands may keep running after the call, with or without a terminal."""
        return self._terminals is not None

    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: str | User | None = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        """Start a command, and return what it printed in the first seconds; it may keep running."""
        if self._terminals is None:
            raise NotImplementedError(
                "this sandbox has no terminals; create the client with processes=ProcessOptions()"
            )
        line = shell_line(self._prepare_exec_command(*command, shell=shell, user=user))
        environment = await self.state.manifest.environment.resolve()
        async with self._turn:
            number = await self._terminals.start(line, environment, tty=tty)
        return await self._terminals.begun(number, seconds=yield_time_s, max_tokens=max_output_tokens)

    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        """Type into a terminal, or only return what a command printed since."""
        if self._terminals is None:
            raise PtySessionNotFoundError(session_id=session_id)
        return await self._terminals.write(session_id, chars, seconds=yield_time_s, max_tokens=max_output_tokens)

    async def pty_terminate_all(self) -> None:
        """Terminate all running commands, and record what they changed."""
        if self._terminals is not None:
            await self._terminals.end_all()

    async def _exec_concurrently(
        self, command: Sequence[str | Path], environment: dict[str, str], limit: float
    ) -> ExecResult:
        """Run a command while others are running, so that its changes are not part of a call."""
        assert self._terminals is not None
        try:
            output, exit_code = await self._terminals.run(shell_line(command), environment, timeout=limit)
        except TimeoutError as error:
            raise ExecTimeoutError(command=command, timeout_s=limit, cause=error) from error
        return ExecResult(stdout=output, stderr=b"", exit_code=exit_code)


def shell_line(command: Sequence[str | Path]) -> str:
    """Return a prepared command as a line for a shell."""
    words = [str(word) for word in command]
    return words[2] if words[:2] == ["sh", "-c"] and len(words) == 3 else shlex.join(words)


def in_terminal(command: str, shell: str) -> str:
    """Return a command that runs another one in a terminal, which is created inside the sandbox."""
    words = shlex.join(["script", "--quiet", "--return", "--flush", "--command", command, "/dev/null"])
    return f'TERM="${{TERM:-dumb}}" SHELL={shlex.quote(shell)} exec {words}'


def terminal_tools(options: ProcessOptions) -> tuple[Tool, ...]:
    """Return the tools that `Terminals` calls: those of the library, two of them with data from the sandbox."""
    used = {tool.name: tool for tool in process_tools(options)}
    used["process_start"] = evolve(used["process_start"], handler=_start)
    used["process_output"] = evolve(used["process_output"], handler=_read)
    return tuple(used[name] for name in ("process_start", "process_input", "process_wait", "process_output"))


def _start(params: ProcessStartParams, *, context: ToolContext) -> ToolResult[ProcessStartReceipt]:
    # The environment comes from the manifest, and is not recorded.
    exchange = cast(Exchange, context.adapter)
    return process_start_handler(params, context=context, options=cast(ProcessOptions, exchange.options))


def _read(params: ProcessOutputParams, *, context: ToolContext) -> ToolResult[ProcessOutputReceipt]:
    exchange = cast(Exchange, context.adapter)
    done = process_output_handler(params, context=context, options=cast(ProcessOptions, exchange.options))
    if isinstance(done.value, ProcessOutputReceipt):
        text = printed_text(done.value.output, context)
        exchange.result = NOT_SHOWN if text is None else text
    return done
