"""An environment of Google's ADK that uses the files of a session: each operation is one recorded call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from google.adk.environment import BaseEnvironment, ExecutionResult

from weakfs.backends import InMemoryFilesystem
from weakfs.class_decorators import define, frozen
from weakfs.filesystem import Filesystem
from weakfs.integrations.command_files import TIMED_OUT, TIMEOUTS, mounted_files, printed_text, shell_options
from weakfs.session import Session
from weakfs.tools import Capability, Policy, Receipt, Tool, ToolContext, ToolResult, Toolset, require_filesystem
from weakfs.tools.blobs import BlobReference
from weakfs.tools.handlers import ShellOptions, ShellParams, ShellReceipt, shell_handler
from weakfs.tools.permissions import check_fits_inline, read_shown
from weakfs.tools.results import answer, summarize

# The exit code of shells for commands that cannot run.
CANNOT_RUN = 126

# The exceptions that an environment's methods raise, by error code; `OSError` for all other codes.
_ERRORS: Mapping[str, type[Exception]] = {
    "invalid_arguments": ValueError,
    "invalid_input": ValueError,
    "is_directory": IsADirectoryError,
    "not_a_directory": NotADirectoryError,
    "not_found": FileNotFoundError,
    "operation_forbidden": PermissionError,
    "path_forbidden": PermissionError,
    "policy_denied": PermissionError,
    "read_only": PermissionError,
}


@frozen
class ExecuteParams:
    """The parameters of `execute`; the default timeout is the longest one allowed."""

    command: str
    timeout: float | None = None


@frozen
class FileParams:
    """The recorded arguments of the other operations: the path, and the size of the content."""

    path: str
    size: int | None = None


@define
class _Exchange:
    """The exchange between an environment and a handler, apart from what is recorded of a call."""

    shell: ShellOptions
    content: bytes = b""
    executed: ExecutionResult | None = None


class WeakfsEnvironment(BaseEnvironment):
    """The files of a session, and commands on them, for `EnvironmentToolset(environment=...)`.

    By default the files are the session's own, in memory. Files have the same paths in commands: below `working_dir`,
    where relative paths start, or the container's own paths for a `ContainerFilesystem`. A command's changes are kept
    if it ends, whatever its exit code, and undone if it times out or is cancelled. Commands run in the sandbox of the
    tool `shell` with the options `shell`. `capability` and `policy` restrict operations, and `caller` is recorded as
    their caller. The session stays open when the environment is closed.
    """

    def __init__(
        self,
        session: Session,
        files: Filesystem | None = None,
        *,
        working_dir: str = "/workspace",
        shell: ShellOptions | None = None,
        capability: Capability | None = None,
        policy: Policy | None = None,
        caller: str | None = None,
    ) -> None:
        given = mounted_files(InMemoryFilesystem(session) if files is None else files, working_dir)
        self._working_dir = Path(given.stat(".").path)
        self._shell = shell_options(shell)
        self._caller = caller
        self._toolset = Toolset(session, given, tools=TOOLS, capability=capability, policy=policy)

    def __repr__(self) -> str:
        return f"<WeakfsEnvironment of {self._toolset.session!r} at {self._working_dir}>"

    @property
    def session(self) -> Session:
        """The session that records the calls."""
        return self._toolset.session

    @property
    def files(self) -> Filesystem:
        """The files, with the paths that the agent uses."""
        return self._toolset.filesystem

    @property
    def working_dir(self) -> Path:
        """The directory in which commands run and relative paths start."""
        return self._working_dir

    async def initialize(self) -> None:
        """Mark the environment as ready; there is nothing else to do."""
        self.is_initialized = True

    async def close(self) -> None:
        """Mark the environment as closed; the session stays open."""
        self.is_initialized = False

    async def execute(self, command: str, *, timeout: float | None = None) -> ExecutionResult:
        """Run a shell command in the working directory.

        The exit code is 126 for a command that could not run and 124 for one that timed out; in both cases `stderr`
        ends with the reason.
        """
        done, exchange = await self._call("execute", {"command": command, "timeout": timeout})
        result = exchange.executed or ExecutionResult(exit_code=CANNOT_RUN)
        if not done.success:
            late = result.timed_out or done.error_code in TIMEOUTS
            printed = result.stderr and result.stderr.rstrip("\n") + "\n"
            return ExecutionResult(
                exit_code=TIMED_OUT if late else CANNOT_RUN,
                stdout=result.stdout,
                stderr=f"{printed}{done.summary_text}\n",
                timed_out=late,
            )
        return result

    async def read_file(self, path: str | Path) -> bytes:
        """Return the content of a file; raises `FileNotFoundError` if it does not exist."""
        done, exchange = await self._call("read_file", {"path": self._path(path)})
        _raise_failure(done)
        return exchange.content

    async def write_file(self, path: str | Path, content: str | bytes) -> None:
        """Write a whole file; missing parent directories are created."""
        data = content.encode() if isinstance(content, str) else content
        done, _ = await self._call("write_file", {"path": self._path(path), "size": len(data)}, data)
        _raise_failure(done)

    async def _call(
        self, name: str, arguments: dict[str, object], content: bytes = b""
    ) -> tuple[ToolResult[Receipt], _Exchange]:
        exchange = _Exchange(self._shell, content)
        done = await self._toolset.acall(name, arguments, caller=self._caller, adapter=exchange)
        return cast("ToolResult[Receipt]", done), exchange

    def _path(self, path: str | Path) -> str:
        return str(self._working_dir / path)


def execute(params: ExecuteParams, *, context: ToolContext) -> ToolResult[ShellReceipt]:
    """Run a command."""
    exchange = _exchange(context)
    timeout = exchange.shell.max_timeout if params.timeout is None else params.timeout
    result = shell_handler(ShellParams(params.command, timeout), context=context, options=exchange.shell)
    receipt = result.value
    if isinstance(receipt, ShellReceipt) and receipt.timed_out is not None:
        exchange.executed = ExecutionResult(
            exit_code=CANNOT_RUN if receipt.exit_code is None else receipt.exit_code,
            stdout=_printed(receipt.stdout, context),
            stderr=_printed(receipt.stderr, context),
            timed_out=receipt.timed_out,
        )
    return result


def read_file(params: FileParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Read a whole file."""
    files = require_filesystem(context)
    found = read_shown(files, params.path)
    check_fits_inline(files, found.path, found.content)
    _exchange(context).content = found.content
    return answer(Receipt(summary_text=summarize(f"read {params.path}")))


def write_file(params: FileParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Write a whole file."""
    done = require_filesystem(context).write_bytes(params.path, _exchange(context).content, mode="overwrite")
    return answer(Receipt(summary_text=summarize(f"wrote {done.path}")))


TOOLS = (
    Tool("execute", "Run a command.", ExecuteParams, execute, receipt=ShellReceipt, operation="shell"),
    Tool("read_file", "Read a file.", FileParams, read_file, operation="read", is_quick=True),
    Tool("write_file", "Write a file.", FileParams, write_file, operation="write", is_quick=True),
)


def _exchange(context: ToolContext) -> _Exchange:
    return cast(_Exchange, context.adapter)


def _printed(output: str | BlobReference | None, context: ToolContext) -> str:
    text = printed_text(output, context)
    return "[more than the capability shows]\n" if text is None else text


def _raise_failure(done: ToolResult[Any]) -> None:
    if not done.success:
        raise _ERRORS.get(done.error_code or "", OSError)(done.message)
