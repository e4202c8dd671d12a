"""A custom tool in ten lines, in its own section, on another section's files: `python -m examples.own_tool`."""

from __future__ import annotations

import json

from attrs import field, frozen

from weakfs import Session, Tool, ToolContext, ToolResult, param
from weakfs.tools import require_filesystem
from weakfs.tools.sections import Prompt, Section, VfsSection, dispatch_tool_call


@frozen
class Outline:
    path: str = field(metadata=param("the Python file"))


def outline(params: Outline, *, context: ToolContext) -> ToolResult[tuple[str, ...]]:
    lines = require_filesystem(context).read_lines(params.path)
    found = tuple(line.rstrip() for line in lines if line.lstrip().startswith(("def ", "class ")))
    return ToolResult("\n".join(found) or "The file has no classes or functions.", found)


OUTLINE = Tool("outline", "List the classes and functions of a Python file.", Outline, outline, read_only=True)


def main() -> None:
    session = Session()
    advice = Section(title="Reading code", key="code", template="Ask for an outline first.", tools=[OUTLINE])
    prompt = Prompt(sections=[advice, VfsSection(session=session)])
    new_file = {"path": "/a.py", "content": "class A:\n    def b(self):\n        return 1\n"}

    dispatch_tool_call(prompt, "write_file", new_file, session=session)
    print(dispatch_tool_call(prompt, "outline", {"path": "/a.py"}, session=session).message)
    # Errors become answers, without any code for it here.
    print(dispatch_tool_call(prompt, "outline", {"file": "/a.py"}, session=session).message)
    print(dispatch_tool_call(prompt, "outline", {"path": "/b.py"}, session=session).message)
    print(json.dumps(prompt.render().definitions("anthropic")[0]["input_schema"]))


if __name__ == "__main__":
    main()
