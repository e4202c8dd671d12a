"""`eval`: runs Python code on the files, as a command."""

from __future__ import annotations

import shlex
from functools import partial

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.tools.context import ToolContext
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.handlers.shell import DEFAULT_TIMEOUT, ShellOptions, ShellParams, ShellReceipt, shell_handler
from weakfs.tools.results import ToolResult
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool

# Runs the code in its first argument, and prints the value of its last expression as an interactive session would.
RUN = """\
import ast, sys
tree = ast.parse(sys.argv.pop(1), "<eval>")
last = ast.Interactive([tree.body.pop()]) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
scope = {"__name__": "__main__"}
exec(compile(tree, "<eval>", "exec"), scope)
if last is not None:
    exec(compile(last, "<eval>", "single"), scope)
"""


@frozen
class EvalParams:
    """The parameters of `eval`."""

    code: str = field(metadata=param("the Python code; the value of an expression at its end is printed"))
    timeout: float | None = field(
        default=None, metadata=param(f"seconds until the code is stopped; {DEFAULT_TIMEOUT} by default", at_least=0)
    )
    workdir: str = field(default=".", metadata=param("the directory to run it in"))


def eval_handler(
    params: EvalParams, *, context: ToolContext, options: ShellOptions | None = None, python: str = "python3"
) -> ToolResult[ShellReceipt]:
    """Run Python code on the files and read back what it changed; otherwise like `shell_handler`."""
    if not params.code.strip():
        raise ToolValidationError("code: it is empty; give Python code to run")
    command = shlex.join((python, "-c", RUN, params.code))
    return shell_handler(ShellParams(command, params.timeout, params.workdir), context=context, options=options)


def eval_tool(options: ShellOptions | None = None, *, name: str = "eval", python: str = "python3") -> Tool:
    """Return the tool that runs Python code; `python` is the interpreter, as a command in the sandbox would name it."""
    options = ShellOptions() if options is None else options
    return Tool(
        name,
        "Run Python code on the files and return its exit code and output. It gets no input, and "
        "neither its processes nor its variables survive the call.",
        EvalParams,
        partial(eval_handler, options=options, python=python),
        receipt=ShellReceipt,
        operation="shell",
    )
