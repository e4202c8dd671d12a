"""`shell`: runs a command on the files, in a sandbox unless the options allow running it without one."""

from __future__ import annotations

from errno import EACCES
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.filesystem import Filesystem, ReadBack, SupportsCheckout
from weakfs.messages import a_type, plural
from weakfs.platforms import require_linux
from weakfs.processes import (
    CommandOptions,
    CompletedCommand,
    RunsCommands,
    StopEvent,
    check_command,
    host_path,
    run_command,
)
from weakfs.tools.blobs import BlobReference
from weakfs.tools.context import ToolContext, require_checkout, require_filesystem, require_writable
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.handlers.output import kept_as_blob, shown
from weakfs.tools.permissions.guard import point_of
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool

if TYPE_CHECKING:
    from weakfs.backends.mounted.mount_point import MountPoint

DEFAULT_TIMEOUT = 120
MAX_TIMEOUT = 600

# What a model should know about paths in commands without a sandbox.
UNSANDBOXED = " Use relative paths for these files: an absolute one may refer to another file on the machine."

# Reading back the changes may take the rest of the command's time, and in any case this many seconds, so that a command
# that ends just in time is not undone.
READING_BACK = 5.0


@frozen
class ShellParams:
    """The parameters of `shell`. A `timeout` above the tool's maximum is reduced to it."""

    command: str = field(metadata=param("the command, for /bin/sh"))
    timeout: float | None = field(
        default=None, metadata=param(f"seconds until the command is stopped; {DEFAULT_TIMEOUT} by default", at_least=0)
    )
    workdir: str = field(default=".", metadata=param("the directory to run it in"))


@frozen(kw_only=True)
class ShellReceipt(Receipt):
    """How the command ended, what it printed, and what it changed.

    `exit_code` is `None` if the command was killed before it finished, and 128 + n if signal n killed it. The middle of
    long output is left out, and `truncated` is then true; output that is too large for a capability is replaced by a
    reference. `changed_paths` are canonical and sorted; empty if the call failed, whatever the command did until then.
    `unsandboxed_because` says why there was no sandbox. `limits_hit` names the limits of the sandbox that the command
    seems to have reached, each as `name=value`; see `CommandLimits`. `set_id_removed` are the entries from which
    set-uid or set-gid bits left by the command were removed.
    """

    exit_code: int | None = None
    stdout: str | BlobReference | None = None
    stderr: str | BlobReference | None = None
    timed_out: bool | None = None
    sandboxed: bool | None = None
    changed_paths: tuple[str, ...] | None = None
    truncated: bool | None = None
    unsandboxed_because: str | None = None
    limits_hit: tuple[str, ...] | None = None
    set_id_removed: tuple[str, ...] | None = None


@frozen(kw_only=True)
class ShellOptions(CommandOptions):
    """Options for `shell`, set by the runtime and never by a model; see also `CommandOptions`.

    `max_output` bounds each of the two streams, in bytes; times are in seconds. A command may leave `max_new_entries`
    new files and directories, and new and changed files of `max_changed_bytes` in all; a command that leaves more
    fails, and everything that it did is undone.
    """

    timeout: float = DEFAULT_TIMEOUT
    max_timeout: float = MAX_TIMEOUT
    max_output: int = 32 * 1024
    max_new_entries: int | None = 200_000
    max_changed_bytes: int | None = 1 << 30

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for name, seconds in (("timeout", self.timeout), ("max_timeout", self.max_timeout)):
            if not isinstance(seconds, int | float) or not 0 < seconds < inf:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ValueError(f"{name} is {seconds!r}; give a number of seconds above 0")
        if type(self.max_output) is not int or self.max_output < 0:
            raise ValueError(f"max_output is {self.max_output!r}; give a number of at least 0 bytes")
        for name, number in (("max_new_entries", self.max_new_entries), ("max_changed_bytes", self.max_changed_bytes)):
            if number is not None and (type(number) is not int or number < 0):
                raise ValueError(f"{name} is {number!r}; give a whole number of at least 0, or None for no limit")


class _Failed(Exception):
    """Carries a result out of a checkout, so that nothing is read back."""

    def __init__(self, result: ToolResult[ShellReceipt]) -> None:
        self.result = result


def shell_handler(
    params: ShellParams, *, context: ToolContext, options: ShellOptions | None = None
) -> ToolResult[ShellReceipt]:
    """Run a command on the files and read back what it changed.

    A command that ends by itself counts as a success, whatever its exit code: its effects stay, and the code is in the
    receipt. A failing test run is an ordinary answer, and the model expects to find the reports, caches and partial
    builds that it left, as in any terminal; for `grep`, `diff` and `test`, an exit code of 1 only means "no". The call
    fails, and everything that the command changed is undone, if the command did not finish: the command or the call
    timed out, it could not be started, its supervisor was killed, or what it left exceeds a quota or a limit.
    """
    options = ShellOptions() if options is None else options
    require_linux("run a command", "use the other tools, which do not need Linux")
    fs = require_filesystem(context)
    if params.timeout is not None and not params.timeout > 0:
        raise ToolValidationError(f"timeout: expected a number above 0, got {params.timeout}")
    workdir = checked_directory(fs, params.command, params.workdir, "run a command", "a command")
    files = require_checkout(fs, f"run a command on {a_type(fs)}")
    try:
        # A cancellation waits until the command has ended and its changes are undone.
        with StopEvent() as stop, context.cancellation.stopping(stop.set):
            return _run(files, params, workdir, context, options, stop)
    except _Failed as failure:
        return failure.result


def shell_tool(options: ShellOptions | None = None, *, name: str = "shell") -> Tool:
    """Return the tool that runs commands, with your own options, to replace the one in `DEFAULT_TOOLS`."""
    options = ShellOptions() if options is None else options
    if not isinstance(options, ShellOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"options is {a_type(options)}; give ShellOptions, such as ShellOptions(timeout=60)")
    return Tool(
        name,
        "Run a shell command on the files and return its exit code and output. The command gets no input, and nothing "
        "keeps running in the background. There may be no network access, and no files except these and the system's."
        + ("" if options.sandbox == "required" else UNSANDBOXED),
        ShellParams,
        partial(shell_handler, options=options),
        aliases={"cmd": "command", "cwd": "workdir"},
        receipt=ShellReceipt,
        operation="shell",
    )


def _run(
    fs: SupportsCheckout,
    params: ShellParams,
    workdir: str,
    context: ToolContext,
    options: ShellOptions,
    stop: StopEvent,
) -> ToolResult[ShellReceipt]:
    timeout = min(options.timeout if params.timeout is None else params.timeout, options.max_timeout)
    until = inf
    done: CompletedCommand | None = None

    def check() -> None:
        context.check_deadline()
        if done is not None and monotonic() > until:
            raise _Failed(_read_back_too_long(done, timeout, context))

    read_back = ReadBack(max_entries=options.max_new_entries, max_bytes=options.max_changed_bytes, check=check)
    with fs.checkout(read_back=read_back) as work:
        context.check_deadline()
        begun = monotonic()
        left = None if context.deadline is None else (context.deadline - context.session.now()) / 1e9
        late = left is not None and left <= timeout
        seconds = timeout if left is None else max(min(timeout, left), 1e-3)
        done = (
            _run_inside(work, params.command, workdir, seconds, options, stop)
            if isinstance(work, RunsCommands)
            else _run_on_host(work.directory, params.command, workdir, seconds, options, stop, point_of(fs))
        )
        context.cancellation.check()
        if done.timed_out:
            raise _Failed(_timed_out(done, timeout, context, late=late))
        until = max(begun + timeout, monotonic() + READING_BACK)
    summary = f"Exit code {done.exit_code}, {plural(len(work.changed), 'path')} changed"
    if work.set_id_removed:
        what = plural(len(work.set_id_removed), "entry")
        summary += f"; set-uid and set-gid bits were removed from {what}: {', '.join(work.set_id_removed)}"
    return _answered(done, summary, "ok", None, work.changed, context, work.set_id_removed)


def _run_inside(
    place: RunsCommands, command: str, workdir: str, timeout: float, options: ShellOptions, stop: StopEvent
) -> CompletedCommand:
    return place.run_command(
        command,
        workdir=workdir,
        timeout=timeout,
        max_output=options.max_output,
        environment_allow=options.environment_allow,
        environment=options.environment,
        limits=options.limits,
        stop=stop,
    )


def _run_on_host(
    directory: str,
    command: str,
    workdir: str,
    timeout: float,
    options: ShellOptions,
    stop: StopEvent,
    point: MountPoint | None,
) -> CompletedCommand:
    below = workdir if point is None else point.own(workdir) or "/"
    done = run_command(
        command,
        directory,
        workdir=host_path(directory, below),
        timeout=timeout,
        max_output=options.max_output,
        environment_allow=options.environment_allow,
        environment=options.environment,
        sandbox=options.sandbox,
        bubblewrap=options.bubblewrap,
        limits=options.limits,
        readable=options.readable,
        shell=options.shell,
        stop=stop,
        mounted_at=None if point is None else point.path,
    )
    if point is None or done.unsandboxed_because is None:
        return done
    return evolve(done, unsandboxed_because=unmounted(done.unsandboxed_because, point))


def unmounted(because: str, point: MountPoint) -> str:
    """Return a message that says why there is no sandbox, and that nothing is mounted without one."""
    return f"{because}, so {point.path} does not exist for the command; use relative paths"


def _read_back_too_long(done: CompletedCommand, timeout: float, context: ToolContext) -> ToolResult[ShellReceipt]:
    summary = (
        f"The command ended, but its changes could not be read back within the {timeout:g} s of the call; all of them "
        f"were undone. Change fewer files, or allow more time"
    )
    return _answered(done, summary, "error", "timed_out", (), context)


def _timed_out(done: CompletedCommand, timeout: float, context: ToolContext, *, late: bool) -> ToolResult[ShellReceipt]:
    if late:
        code, why = "deadline_exceeded", "the call's deadline passed"
    else:
        code, why = "timed_out", f"it ran for {timeout:g} s"
    summary = f"The command was stopped because {why}; its changes were undone"
    return _answered(done, summary, "error", code, (), context)


def _answered(
    done: CompletedCommand,
    summary: str,
    status: str,
    code: str | None,
    changed: tuple[str, ...],
    context: ToolContext,
    set_id_removed: tuple[str, ...] = (),
) -> ToolResult[ShellReceipt]:
    if done.unsandboxed_because:
        summary += f"; not sandboxed: {done.unsandboxed_because}"
    if done.limits_hit:
        summary += f"; limits that may have been reached: {', '.join(done.limits_hit)}"
    kept = [kept_as_blob(text, "auto", context, "shell") for text in (done.stdout, done.stderr)]
    receipt = ShellReceipt(
        status=status,
        error_code=code,
        summary_text=summarize(summary),
        exit_code=done.exit_code,
        stdout=done.stdout if kept[0] is None else kept[0],
        stderr=done.stderr if kept[1] is None else kept[1],
        timed_out=done.timed_out,
        sandboxed=done.sandboxed,
        changed_paths=changed,
        truncated=done.truncated,
        unsandboxed_because=done.unsandboxed_because,
        limits_hit=done.limits_hit,
        set_id_removed=set_id_removed,
    )
    out, err = (
        text if reference is None else shown(reference, "print less to see all of the output")
        for text, reference in zip((done.stdout, done.stderr), kept, strict=True)
    )
    parts = [out, f"[stderr]\n{err}" if err else "", f"[{receipt.summary_text}]"]
    return answer(receipt, "\n".join(part.removesuffix("\n") for part in parts if part))


def checked_directory(fs: Filesystem, command: str, path: str, doing: str, who: str) -> str:
    """Return the canonical path of the directory for a command; raise if the command cannot run there."""
    if not command.strip():
        raise ToolValidationError("command: it is empty; name a command to run")
    check_command(command)
    place, point = fs.stat(path), point_of(fs)
    if not place.is_directory:
        # Raises the error of `ls`.
        fs.list(path)
    found = place.path
    if point is not None and point.own(found) is None:
        raise fault(
            PermissionError,
            EACCES,
            f"cannot run a command in {found!r}: the files are below {point.path!r}; use a directory there",
        )
    require_writable(fs, doing, who)
    return found


# To leave the tool out: `tools=[tool for tool in DEFAULT_TOOLS if tool.name != "shell"]`.
TOOLS = (shell_tool(),)
