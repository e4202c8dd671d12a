"""`process_start` and the other tools for commands that keep running after the call that started them."""

from __future__ import annotations

import signal
from functools import partial
from math import inf

from weakfs.messages import clip, one_line, plural
from weakfs.platforms import require_linux
from weakfs.processes.background import (
    BackgroundProcesses,
    ProcessInfo,
    SupportsProcesses,
    no_processes,
)
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.handlers.output import kept_as_blob, shown
from weakfs.tools.handlers.processes.parameters import (
    ProcessInputParams,
    ProcessListParams,
    ProcessOptions,
    ProcessOutputParams,
    ProcessSignalParams,
    ProcessStartParams,
    ProcessWaitParams,
)
from weakfs.tools.handlers.processes.receipts import (
    ProcessListReceipt,
    ProcessOutputReceipt,
    ProcessReceipt,
    ProcessStartReceipt,
    ProcessWaitReceipt,
)
from weakfs.tools.handlers.shell import UNSANDBOXED, checked_directory, unmounted
from weakfs.tools.permissions.guard import point_of
from weakfs.tools.results import ToolResult, answer, summarize
from weakfs.tools.tool import Tool


def process_start_handler(
    params: ProcessStartParams, *, context: ToolContext, options: ProcessOptions
) -> ToolResult[ProcessStartReceipt]:
    """Start a command that outlives the call.

    It runs once the call's transaction is committed, so a failed call starts nothing.
    """
    require_linux("start a process", "use the other tools, which do not need Linux")
    fs = require_filesystem(context)
    workdir = checked_directory(fs, params.command, params.workdir, "start a process", "a process")
    background = _background(context)
    context.check_deadline()
    process, is_nested = background.start(params.command, workdir, options, options.process_limits)
    because, point = process.unsandboxed_because, point_of(fs)
    if because and point is not None:
        because = unmounted(because, point)
    summary = f"Started {process.process_id}"
    if is_nested:
        summary += "; it runs when the transaction around this call is committed"
    if because:
        summary += f"; not sandboxed: {because}"
    return answer(
        ProcessStartReceipt(
            summary_text=summarize(summary),
            process_id=process.process_id,
            state="held" if is_nested else "running",
            sandboxed=because is None,
            unsandboxed_because=because,
        )
    )


def process_output_handler(
    params: ProcessOutputParams, *, context: ToolContext, options: ProcessOptions
) -> ToolResult[ProcessOutputReceipt]:
    """Return what a process printed."""
    background = _background(context)
    process = background.get(params.process_id)
    with context.cancellation.stopping(process.notify):
        beyond = process.output_size if params.since is None else params.since
        seconds = _bounded(params.timeout, options, context)
        process.wait_for_output(beyond, seconds, lambda: context.cancellation.is_cancelled)
    context.check_deadline()
    background.settle()
    found = process.output(params.since, options.max_output)
    total, info = process.output_size, _info(background, params.process_id)
    kept = kept_as_blob(found.text, "auto", context, "shell")
    dropped = f"; {plural(found.dropped, 'byte')} before that are not kept" if found.dropped else ""
    more = f"; continue with since={found.end}" if found.end < total or info.state == "running" else ""
    summary = f"{_message(info)}; output {found.start} to {found.end} of {plural(total, 'byte')}{dropped}{more}"
    receipt = ProcessOutputReceipt(
        summary_text=summarize(summary),
        process_id=info.process_id,
        state=info.state,
        exit_code=info.exit_code,
        ended_because=info.reason,
        output=found.text if kept is None else kept,
        since=found.start,
        next=found.end,
        total=total,
        dropped=found.dropped,
    )
    text = (
        found.text.removesuffix("\n")
        if kept is None
        else shown(kept, "set since to a later position to get a shorter answer")
    )
    return answer(receipt, f"{text}\n[{receipt.summary_text}]" if text else f"[{receipt.summary_text}]")


def process_input_handler(params: ProcessInputParams, *, context: ToolContext) -> ToolResult[ProcessReceipt]:
    """Write to a process's standard input, all of it or nothing; the process may read it later."""
    background = _background(context)
    process = background.get(params.process_id)
    if not params.text and not params.close:
        raise ToolValidationError("text: it is empty; give some text, or set close")
    data = params.text.encode()
    context.check_deadline()
    process.write(data, close=params.close)
    closed = ", and its input ends there" if params.close else ""
    return _about(background, params.process_id, f"{plural(len(data), 'byte')} for {params.process_id}{closed}")


def process_signal_handler(params: ProcessSignalParams, *, context: ToolContext) -> ToolResult[ProcessReceipt]:
    """Send a signal to a process and the processes in its group."""
    number = _signal(params.signal)
    background = _background(context)
    process = background.get(params.process_id)
    context.check_deadline()
    process.signal(number)
    return _about(background, params.process_id, f"Sent {number.name} to {params.process_id}")


def process_wait_handler(
    params: ProcessWaitParams, *, context: ToolContext, options: ProcessOptions
) -> ToolResult[ProcessWaitReceipt]:
    """Wait until a process has ended, and find out what it changed."""
    background = _background(context)
    process = background.get(params.process_id)
    with context.cancellation.stopping(process.notify):
        seconds = _bounded(params.timeout, options, context)
        has_ended = process.wait(seconds, lambda: context.cancellation.is_cancelled)
    context.check_deadline()
    changed: tuple[str, ...] = ()
    note = ""
    if has_ended:
        try:
            changed = background.scan_changes()
            note = f"; {plural(len(changed), 'path')} changed"
        except OSError as error:
            # The process has ended nevertheless; its changes are found once the cause is removed.
            note = f"; its changes cannot be determined: {error}"
    background.settle()
    info = _info(background, params.process_id)
    summary = f"{_message(info)}{note}"
    receipt = ProcessWaitReceipt(
        summary_text=summarize(summary),
        process_id=info.process_id,
        state=info.state,
        exit_code=info.exit_code,
        ended_because=info.reason,
        timed_out=not has_ended,
        changed_paths=changed,
    )
    return answer(receipt)


def process_list_handler(params: ProcessListParams, *, context: ToolContext) -> ToolResult[ProcessListReceipt]:
    """List the processes of the session."""
    background = _background(context)
    background.settle()
    infos, now = background.infos(), context.session.now()
    lines = [f"{_message(info)}, started {(now - info.started_at) / 1e9:.0f} s ago: {_short(info)}" for info in infos]
    running = sum(info.state == "running" for info in infos)
    count = f"{len(infos)} processes" if len(infos) != 1 else "1 process"
    receipt = ProcessListReceipt(summary_text=f"{count}, {running} running", processes=infos)
    return answer(receipt, "\n".join([*lines, f"[{receipt.summary_text}]"]))


def process_tools(options: ProcessOptions | None = None) -> tuple[Tool, ...]:
    """Return the tools for background processes, with your own options."""
    options = ProcessOptions() if options is None else options
    return (
        Tool(
            "process_start",
            "Start a shell command that keeps running after the call, such as a server, and return its process_id. "
            "Its changes stay even if later calls fail; restoring a snapshot stops it."
            + ("" if options.sandbox == "required" else UNSANDBOXED),
            ProcessStartParams,
            partial(process_start_handler, options=options),
            aliases={"cmd": "command", "cwd": "workdir"},
            receipt=ProcessStartReceipt,
            operation="shell",
        ),
        Tool(
            "process_output",
            "Return what a process printed. since is the position given in the last answer.",
            ProcessOutputParams,
            partial(process_output_handler, options=options),
            read_only=True,
            receipt=ProcessOutputReceipt,
            operation="shell",
        ),
        Tool(
            "process_input",
            "Write text to a process's standard input. End each line with a line break.",
            ProcessInputParams,
            process_input_handler,
            receipt=ProcessReceipt,
            operation="shell",
        ),
        Tool(
            "process_signal",
            "Send a signal to a process: TERM, KILL, INT, HUP, USR1, STOP, CONT and so on.",
            ProcessSignalParams,
            process_signal_handler,
            receipt=ProcessReceipt,
            operation="shell",
        ),
        Tool(
            "process_wait",
            "Wait for a process to end, and return its exit code and the paths that it changed.",
            ProcessWaitParams,
            partial(process_wait_handler, options=options),
            read_only=True,
            receipt=ProcessWaitReceipt,
            operation="shell",
        ),
        Tool(
            "process_list",
            "List the processes with their state, age and exit code.",
            ProcessListParams,
            process_list_handler,
            read_only=True,
            receipt=ProcessListReceipt,
            operation="shell",
        ),
    )


def _background(context: ToolContext) -> BackgroundProcesses:
    fs = require_filesystem(context)
    if not isinstance(fs, SupportsProcesses):
        raise ToolValidationError(no_processes(fs))
    return fs.background


def _bounded(timeout: float, options: ProcessOptions, context: ToolContext) -> float:
    """Return how long to wait: no longer than the tool allows, and not past the call's deadline."""
    context.check_deadline()
    left = inf if context.deadline is None else (context.deadline - context.session.now()) / 1e9
    return max(min(timeout, options.max_wait, left), 0)


def _info(background: BackgroundProcesses, process_id: str) -> ProcessInfo:
    return next(info for info in background.infos() if info.process_id == process_id)


def _about(background: BackgroundProcesses, process_id: str, summary: str) -> ToolResult[ProcessReceipt]:
    info = _info(background, process_id)
    return answer(
        ProcessReceipt(
            summary_text=summarize(summary),
            process_id=process_id,
            state=info.state,
            exit_code=info.exit_code,
            ended_because=info.reason,
        )
    )


def _message(info: ProcessInfo) -> str:
    """Return a process's state in words."""
    if info.state != "ended":
        return f"{info.process_id} {'is ' if info.state != 'running' else ''}{info.state}"
    code = "no exit code" if info.exit_code is None else f"exit code {info.exit_code}"
    return f"{info.process_id} ended, {code}" + (f" ({info.reason})" if info.reason else "")


def _short(info: ProcessInfo) -> str:
    where = "" if info.workdir == "/" else f" (in {info.workdir})"
    return one_line(clip(info.command, 200) + where)


def _signal(name: str) -> signal.Signals:
    known = {one.name: one for one in signal.Signals}
    upper = name.upper()
    number = known.get(upper if upper.startswith("SIG") else f"SIG{upper}")
    if number is None:
        raise ToolValidationError(
            f"signal: no signal is called {clip(name, 40)!r}; use TERM, KILL, INT, HUP, QUIT, USR1, USR2, STOP or CONT"
        )
    return number


# For commands that keep running after the call, on a filesystem that supports them: `tools=[*DEFAULT_TOOLS,
# *PROCESS_TOOLS]`, or `process_tools(options)` for your own options.
PROCESS_TOOLS: tuple[Tool, ...] = process_tools()
