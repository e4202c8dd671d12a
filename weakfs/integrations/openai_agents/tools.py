"""The tools of a session for the OpenAI Agents SDK: function tools, a patch editor and a shell."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from secrets import token_hex
from typing import Any, cast

from agents import (
    ApplyPatchOperation,
    ApplyPatchResult,
    FunctionTool,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    Tool,
    ToolOutputImage,
    ToolOutputText,
)
from agents.tool_context import ToolContext

from weakfs.editing import PatchError
from weakfs.editing.patches.apply import paths_in
from weakfs.integrations.command_files import TIMEOUTS
from weakfs.messages import one_line
from weakfs.tools import ToolResult, Toolset
from weakfs.tools.blobs import BlobReference
from weakfs.tools.handlers import ShellReceipt

# The exit code of shells for a command that could not run.
CANNOT_RUN = 126

_HEADERS = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}


def function_tools(toolset: Toolset, *, caller: str | None = None) -> list[Tool]:
    """Return the tools of a toolset as function tools, with the schemas that OpenAI's models know.

    A call that fails has changed nothing; its answer is the text that the model sees. The toolset checks the arguments,
    and wrong ones produce an answer too. `caller` is recorded as the caller, by default the agent's name.
    """
    if toolset.provider is None:
        # OpenAI's defaults, such as images.
        toolset = toolset.bind(toolset.session, provider="openai")
    return [
        FunctionTool(
            name=str(definition["name"]),
            description=str(definition["description"]),
            params_json_schema=cast("dict[str, Any]", definition["parameters"]),
            on_invoke_tool=partial(_invoke, toolset, str(definition["name"]), caller),
            strict_json_schema=bool(definition.get("strict", False)),
        )
        for definition in toolset.definitions("openai", api="responses")
    ]


class SessionEditor:
    """The editor of an `ApplyPatchTool`: each operation is one atomic call of `apply_patch`."""

    def __init__(self, toolset: Toolset, *, caller: str | None = None) -> None:
        self._toolset = _with(toolset, "apply_patch")
        self._caller = caller

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        """Create a file from the added lines of a diff."""
        return await self._apply(operation)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        """Apply a diff to a file, and move the file if the operation asks for it."""
        return await self._apply(operation)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        """Delete a file."""
        return await self._apply(operation)

    async def _apply(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        problem = _problem(operation)
        if problem is not None:
            return ApplyPatchResult(status="failed", output=problem)
        done = await self._toolset.acall(
            "apply_patch",
            {"patch": _patch(operation)},
            call_id=_call_id(operation.ctx_wrapper),
            caller=_caller(operation.ctx_wrapper, self._caller),
        )
        return ApplyPatchResult(status="completed" if done.success else "failed", output=done.message)


class SessionShell:
    """The executor of a `ShellTool`: each command is one call of `shell`.

    A command's changes are kept if it ends, whatever its exit code, and undone if it times out; the commands after one
    that timed out are not run.
    """

    def __init__(self, toolset: Toolset, *, caller: str | None = None) -> None:
        self._toolset = _with(toolset, "shell")
        self._caller = caller

    async def __call__(self, request: ShellCommandRequest) -> ShellResult:
        """Run the commands of one request, one after another."""
        action = request.data.action
        outputs: list[ShellCommandOutput] = []
        for number, command in enumerate(action.commands, 1):
            arguments: dict[str, object] = {"command": command}
            if action.timeout_ms is not None:
                arguments["timeout"] = max(action.timeout_ms, 1) / 1000
            done = await self._toolset.acall(
                "shell",
                arguments,
                call_id=f"{request.data.call_id}.{number}@{token_hex(4)}",
                caller=_caller(request.ctx_wrapper, self._caller),
            )
            outputs.append(self._output(command, done))
            if outputs[-1].outcome.type == "timeout":
                break
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    def _output(self, command: str, done: ToolResult[object]) -> ShellCommandOutput:
        receipt = done.value
        if not isinstance(receipt, ShellReceipt) or receipt.timed_out is None:
            outcome = ShellCallOutcome(type="exit", exit_code=CANNOT_RUN)
            if done.error_code in TIMEOUTS:
                outcome = ShellCallOutcome(type="timeout")
            return ShellCommandOutput(stderr=done.message, outcome=outcome, command=command)
        outcome = ShellCallOutcome(type="exit", exit_code=receipt.exit_code)
        if receipt.timed_out:
            outcome = ShellCallOutcome(type="timeout")
        errors = _printed(receipt.stderr)
        if not done.success:
            errors = "\n".join(filter(None, [errors.rstrip("\n"), done.summary_text]))
        return ShellCommandOutput(_printed(receipt.stdout), errors, outcome, command)


async def _invoke(toolset: Toolset, name: str, caller: str | None, context: ToolContext[Any], arguments: str) -> object:
    done = await toolset.acall(name, arguments, call_id=_call_id(context), caller=_caller(context, caller))
    if not done.images:
        return done.message
    urls = (f"data:{image.media_type};base64,{b64encode(image.data).decode()}" for image in done.images)
    return [ToolOutputText(text=done.message), *(ToolOutputImage(image_url=url) for url in urls)]


def _with(toolset: Toolset, name: str) -> Toolset:
    if all(tool.name != name for tool in toolset.tools):
        raise ValueError(f"the toolset has no tool {name!r}; add it, or use DEFAULT_TOOLS")
    return toolset


def _patch(operation: ApplyPatchOperation) -> str:
    lines = ["*** Begin Patch", f"*** {_HEADERS[operation.type]} File: {operation.path}"]
    if operation.move_to is not None:
        lines.append(f"*** Move to: {operation.move_to}")
    if operation.diff:
        lines.append(operation.diff.removesuffix("\n"))
    return "\n".join([*lines, "*** End Patch", ""])


def _problem(operation: ApplyPatchOperation) -> str | None:
    """Return the problem with an operation whose diff is malformed or names other files; `None` if there is none."""
    named = [path for path in (operation.path, operation.move_to) if path is not None]
    try:
        found = list(paths_in(_patch(operation)))
    except PatchError as error:
        return str(error)
    if found != list(dict.fromkeys(named)):
        return f"the diff of {one_line(operation.path)} names other files: {', '.join(map(one_line, found))}"
    return None


def _call_id(context: object) -> str:
    """Return the id of a call: the model's id, made unique because some models number their calls."""
    return f"{getattr(context, 'tool_call_id', None) or 'call'}@{token_hex(4)}"


def _caller(context: object, caller: str | None) -> str | None:
    agent = getattr(context, "agent", None)
    name = getattr(agent, "name", None)
    return caller or (one_line(name) if isinstance(name, str) and name else None)


def _printed(output: str | BlobReference | None) -> str:
    if isinstance(output, BlobReference):
        return output.preview if isinstance(output.preview, str) else f"[{output.size} bytes]"
    return output or ""
