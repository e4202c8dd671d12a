"""A deepagents sandbox that uses the files of a session: a backend that also runs commands."""

from __future__ import annotations

from attrs import field
from deepagents.backends.protocol import ExecuteResponse, SandboxBackendProtocol

from weakfs.backends import InMemoryFilesystem
from weakfs.class_decorators import frozen
from weakfs.filesystem import Filesystem
from weakfs.integrations.command_files import TIMED_OUT, TIMEOUTS, mounted_files, printed_text, shell_options
from weakfs.integrations.deepagents.backend import Request, WeakfsBackend
from weakfs.integrations.deepagents.exchange import Dialect, Exchange, exchange_of
from weakfs.session import Session
from weakfs.tools import Capability, Policy, Tool, ToolContext, ToolResult
from weakfs.tools.handlers import ShellOptions, ShellParams, ShellReceipt, shell_handler


@frozen
class ExecuteParams:
    """The parameters of `execute`; a timeout of 0 means the longest one allowed."""

    command: str
    timeout: float | None = field(default=None)


class WeakfsSandbox(WeakfsBackend, SandboxBackendProtocol):
    """The files of a session, and commands on them: files and commands have the same paths, below `mounted_at`.

    A command is one call: its changes can be undone, and are undone immediately if it times out. It runs in the sandbox
    of the tool `shell` with the options `shell`, or, for a `ContainerFilesystem`, in the container with the container's
    own paths. Otherwise it works like `WeakfsBackend`.
    """

    def __init__(
        self,
        session: Session,
        files: Filesystem | None = None,
        *,
        mounted_at: str = "/workspace",
        shell: ShellOptions | None = None,
        capability: Capability | None = None,
        policy: Policy | None = None,
        caller: str | None = None,
        dialect: Dialect = "protocol",
    ) -> None:
        self._shell = shell_options(shell)
        super().__init__(
            session,
            mounted_files(InMemoryFilesystem(session) if files is None else files, mounted_at),
            capability=capability,
            policy=policy,
            caller=caller,
            dialect=dialect,
        )

    def _tools(self) -> tuple[Tool, ...]:
        def execute(params: ExecuteParams, *, context: ToolContext) -> ToolResult[ShellReceipt]:
            return _execute(params, context, self._shell)

        tool = Tool("execute", "Run a command.", ExecuteParams, execute, receipt=ShellReceipt, operation="shell")
        return (*super()._tools(), tool)

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.session.session_id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command; its output is standard output and standard error in the order written."""
        return _response(*self._perform(Request("execute", {"command": command, "timeout": timeout})))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command; if the task is cancelled, the command is killed and its changes are undone."""
        return _response(*await self._aperform(Request("execute", {"command": command, "timeout": timeout})))


def _execute(params: ExecuteParams, context: ToolContext, options: ShellOptions) -> ToolResult[ShellReceipt]:
    timeout = options.max_timeout if params.timeout == 0 else params.timeout
    command = f"exec 2>&1\n{params.command}" if params.command.strip() else params.command
    result = shell_handler(ShellParams(command, timeout), context=context, options=options)
    receipt = result.value
    if isinstance(receipt, ShellReceipt) and receipt.timed_out is not None:
        output = printed_text(receipt.stdout, context)
        is_cut = output is None or bool(receipt.truncated)
        shown = result.message if output is None else output
        exchange_of(context).answer = ExecuteResponse(shown, receipt.exit_code, is_cut)
    return result


def _response(done: ToolResult[object], exchange: Exchange) -> ExecuteResponse:
    given: ExecuteResponse | None = exchange.answer
    if done.success and given is not None:
        return given
    output = "" if given is None or not given.output else given.output.rstrip("\n") + "\n"
    code = TIMED_OUT if done.error_code in TIMEOUTS else None
    return ExecuteResponse(f"{output}Error: {done.summary_text}", code, given is not None and given.truncated)
