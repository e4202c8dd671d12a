"""Calls by several callers on one file."""

from __future__ import annotations

import pytest

from tests.tools.conftest import OpenFiles
from weakfs import Session, ToolResult, Toolset

TEXT = "".join(f"line {n}\n" for n in range(1, 21))


@pytest.fixture
def tools(open_files: OpenFiles) -> Toolset:
    session = Session()
    files = open_files(session)
    files.write("/a.txt", TEXT)
    return Toolset(session, files)


def read(tools: Toolset, caller: str, path: str = "/a.txt") -> ToolResult[object]:
    return tools.call("read_file", {"path": path}, caller=caller)


def edit(tools: Toolset, caller: str, old: str, new: str) -> ToolResult[object]:
    arguments = {"path": "/a.txt", "old_string": old, "new_string": new}
    return tools.call("edit_file", arguments, caller=caller, call_id=f"{caller}-edit")


def write(tools: Toolset, caller: str, content: str) -> ToolResult[object]:
    return tools.call("write_file", {"path": "/a.txt", "content": content}, caller=caller)
