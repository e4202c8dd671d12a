"""The tool reference: each default tool with its schema, its receipt, and calls made during the build."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

import attrs
from attrs import frozen

from weakfs import DEFAULT_TOOLS, InMemoryFilesystem, Session, Tool, ToolResult, Toolset
from weakfs.tools import HISTORY_TOOLS, PROCESS_TOOLS
from weakfs.tools.handlers import ShellOptions, eval_tool, shell_tool

Arguments = Mapping[str, object]


@frozen
class Example:
    """A tool with one call that succeeds and calls that fail, each for a different reason."""

    tool: str
    call: Arguments
    failures: tuple[Arguments, ...]


FILES = {
    "/README.md": "# Shop\n\nRun `python app.py`.\n",
    "/src/app.py": 'HOST = "localhost"\nPORT = 80\n\n\ndef main():\n    print(HOST, PORT)\n\n\nmain()\n',
    "/src/tax.py": "def tax(net):\n    return net * 0.19\n",
}

_PATCH = """\
*** Begin Patch
*** Update File: /src/app.py
@@
 HOST = "localhost"
-PORT = 80
+PORT = 8080
*** Add File: /docs/ports.md
+8080: the server
*** End Patch
"""
_WITHOUT_END = "*** Begin Patch\n*** Delete File: /README.md\n"
_OTHER_CONTEXT = "*** Begin Patch\n*** Update File: /src/tax.py\n@@\n-    return net\n+    return 0\n*** End Patch\n"
_NO_TARGET = "*** Begin Patch\n*** Update File: /src/cart.py\n@@\n-a\n+b\n*** End Patch\n"
_NOTHING_TO_DELETE = "*** Begin Patch\n*** Delete File: /src/cart.py\n*** End Patch\n"

EXAMPLES: tuple[Example, ...] = (
    Example("ls", {"path": "/src"}, ({"path": "/lib"}, {"path": "/README.md"})),
    Example(
        "read_file",
        {"path": "/src/app.py", "offset": 1, "limit": 2},
        ({"path": "/src/cart.py"}, {"path": "/src"}, {"file": "/src/app.py"}),
    ),
    Example(
        "write_file",
        {"path": "/src/cart.py", "content": "ITEMS = []\n", "mode": "create"},
        (
            {"path": "/README.md", "content": "", "mode": "create"},
            {"path": "/src", "content": ""},
            {"path": "/README.md/more", "content": ""},
            {"path": "/../etc/passwd", "content": ""},
        ),
    ),
    Example(
        "edit_file",
        {"path": "/src/app.py", "old_string": "PORT = 80", "new_string": "PORT = 8080"},
        (
            {"path": "/src/tax.py", "old_string": "return net * 0.17", "new_string": "return net * 0.07"},
            {"path": "/src/app.py", "old_string": "PORT", "new_string": "port"},
            {"path": "/src/app.py", "old_string": "PORT = 80", "new_string": "PORT = 80"},
            {"path": "/src/app.py", "old_string": "", "new_string": "import os\n"},
            {"path": "/src/cart.py", "old_string": "a", "new_string": "b"},
        ),
    ),
    Example(
        "apply_patch",
        {"patch": _PATCH},
        (
            {"patch": _OTHER_CONTEXT},
            {"patch": _WITHOUT_END},
            {"patch": _NO_TARGET},
            {"patch": _NOTHING_TO_DELETE},
        ),
    ),
    Example("glob", {"pattern": "src/*.py"}, ({"pattern": "[a-"}, {"pattern": "*", "path": "/lib"})),
    Example("grep", {"pattern": "PORT", "glob": "*.py"}, ({"pattern": "(?<=a)b"}, {"pattern": "a", "path": "/lib"})),
    Example("rm", {"path": "/README.md"}, ({"path": "/src"}, {"path": "/lib"})),
    Example("mkdir", {"path": "/docs/api"}, ({"path": "/README.md/api"},)),
    Example(
        "mv",
        {"source": "/README.md", "destination": "/docs/README.md"},
        ({"source": "/lib", "destination": "/old"}, {"source": "/src", "destination": "/src/old"}),
    ),
    Example(
        "cp",
        {"source": "/src", "destination": "/backup"},
        ({"source": "/lib", "destination": "/old"}, {"source": "/README.md", "destination": "/src"}),
    ),
    Example("stat", {"path": "/src/app.py"}, ({"path": "/lib"},)),
    Example("exists", {"path": "/src/app.py"}, ({"path": "/../lib"},)),
    Example("shell", {"command": "grep -c PORT src/app.py"}, ({"command": ""}, {"command": "ls", "workdir": "/lib"})),
)


def _tools() -> list[Tool]:
    """Return the default tools; `shell` without a sandbox, so that the pages are the same on every machine."""
    plain = shell_tool(ShellOptions(sandbox="off"))
    return [plain if tool.name == "shell" else tool for tool in DEFAULT_TOOLS]


def _toolset() -> Toolset:
    clock = partial(next, count(1_767_225_600_000_000_000, 1_000_000_000))
    session = Session(session_id="docs", clock=clock)
    files = InMemoryFilesystem(session)
    for path, content in FILES.items():
        files.write(path, content)
    return Toolset(session, files, tools=_tools())


def answer(tool: str, arguments: Arguments) -> ToolResult[Any]:
    """Make one call on a new session that holds `FILES`."""
    return _toolset().call(tool, arguments)


def fenced(text: str, language: str = "text") -> str:
    """Return text as a fenced block, with a fence that the text does not contain."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}\n"


def as_json(value: object) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def page() -> str:
    """Return the reference of all default tools as Markdown."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    schemas = {str(row["name"]): row["inputSchema"] for row in _toolset().definitions("mcp")}
    examples = {example.tool: example for example in EXAMPLES}
    yield "The calls below are made while this page is built, each in a new session that holds these files:\n"
    for path, content in FILES.items():
        yield f"`{path}`\n"
        yield fenced(content)
    for tool in DEFAULT_TOOLS:
        yield from _section(tool, schemas[tool.name], examples[tool.name])
    yield "## Background processes\n"
    yield "`PROCESS_TOOLS` are not default tools; see [Run commands](../howto/commands-and-sandbox.md).\n"
    yield from _more(PROCESS_TOOLS)
    yield "## Python\n"
    yield "`weakfs.tools.handlers.eval_tool` is not a default tool. It runs Python code instead of shell commands.\n"
    yield from _more((eval_tool(),))
    yield "## Undo\n"
    yield "`HISTORY_TOOLS` are not default tools; see [Undo, revert and restore](../howto/undo.md).\n"
    yield from _more(HISTORY_TOOLS)


def _more(tools: tuple[Tool, ...]) -> Iterator[str]:
    for tool, row in zip(tools, Toolset(Session(), tools=tools).definitions("mcp"), strict=True):
        yield from _head(tool, row["inputSchema"], "###")
        yield f"Receipt for the program: `{tool.receipt.__name__}`.\n"


def _section(tool: Tool, schema: object, example: Example) -> Iterator[str]:
    yield from _head(tool, schema, "##")
    done = answer(tool.name, example.call)
    yield "Call:\n"
    yield fenced(as_json(example.call), "json")
    yield "Message for the model:\n"
    yield fenced(done.message)
    yield f"Receipt for the program (`{type(done.value).__name__}`):\n"
    yield fenced(as_json(attrs.asdict(done.value)), "json")
    yield "Calls that fail:\n"
    yield "| arguments | error code | message |\n| --- | --- | --- |"
    for arguments in example.failures:
        failed = answer(tool.name, arguments)
        yield f"| {_cell(json.dumps(arguments))} | `{failed.error_code}` | {_cell(failed.message)} |"
    yield ""


def _head(tool: Tool, schema: object, level: str) -> Iterator[str]:
    yield f"{level} {tool.name}\n"
    yield "Description for the model:\n"
    yield fenced(tool.description)
    kind = "It changes nothing." if tool.read_only else "It changes files."
    yield f"{kind} A [policy](../howto/policies-and-capabilities.md) calls it the operation `{tool.operation}`."
    if tool.aliases:
        names = ", ".join(f"`{alias}` for `{name}`" for alias, name in sorted(tool.aliases.items()))
        yield f"A call may also use {names}."
    yield ""
    yield "JSON schema of the arguments:\n"
    yield fenced(as_json(schema), "json")


def _cell(text: str) -> str:
    """Return text as code in one cell of a table."""
    flat = " ".join(text.split()).replace("|", "\\|")
    fence = "`"
    while fence in flat:
        fence += "`"
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{space}{flat}{space}{fence}"
