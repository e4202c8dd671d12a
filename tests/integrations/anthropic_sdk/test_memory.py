"""The memory tool compared with the SDK's own on a directory: the same commands, answers and files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs import HostFilesystem, InMemoryFilesystem, Session
from weakfs.integrations.anthropic import AsyncMemoryTool, MemoryTool
from weakfs.tools import ToolCall

Command = dict[str, Any]

NAMES = st.sampled_from(
    ["a", "b", "c.txt", ".hidden", "é", "e\u0301", "x y", "\U0001f600", "..", ".", "", "n\nm", "~", "%2e", "*"]
)
PATHS = st.one_of(
    st.lists(NAMES, max_size=4).map(lambda names: "/".join(["/memories", *names])),
    st.sampled_from(["/memories/a", "/memories/b", "/memories/a/b", "/memories/c.txt"]),
    st.sampled_from(["", "/", "memories/a", "/etc/passwd", "/memories/../../memories/a", "/memories/../memories/a"]),
)
TEXTS = st.one_of(
    st.sampled_from(["", "\n", "a", "a\n", "a\nb\na\n", "x\r\ny\r\n", "\u2028", "\ufeffa", "\x00", "aaa", "\n\n\n"]),
    st.text(alphabet="ab\n\r\té\U0001f600", max_size=12),
    st.just("long line\n" * 300),
)
LINES = st.integers(min_value=-2, max_value=6)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS}, optional={"view_range": st.lists(LINES, max_size=3)}
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PATHS, "old_str": TEXTS, "new_str": TEXTS}),
    st.fixed_dictionaries({"command": st.just("insert"), "path": PATHS, "insert_line": LINES, "insert_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


def answer(run: Callable[[], object]) -> tuple[str, str]:
    """Return the result of a command: an answer, an error for the model, or a system error."""
    try:
        return "answer", str(run())
    except ToolError as error:
        return "error", str(error)
    except (OSError, ValueError) as error:
        return "system", str(error)


class Reference:
    """The SDK's tool on a directory. A command that fails is undone, as in weakfs."""

    def __init__(self, directory: Path) -> None:
        self.base = directory / "base"
        self.copy = directory / "copy"
        self.tool = BetaLocalFilesystemMemoryTool(str(self.base))

    def run(self, command: Command) -> tuple[str, str]:
        shutil.copytree(self.base, self.copy)
        kind, text = answer(lambda: self.tool.call(command))
        if kind != "answer":
            shutil.rmtree(self.base)
            self.copy.rename(self.base)
        else:
            shutil.rmtree(self.copy)
        return kind, with_sizes(text)

    def files(self) -> dict[str, bytes | None]:
        root = self.base / "memories"
        return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def with_sizes(text: str) -> str:
    """Return a listing with the sizes that directories have on ext4; other filesystems have others."""
    head, newline, listing = text.partition(", excluding hidden items:\n")
    if not newline:
        return text
    first, *rest = listing.split("\n")
    lines = [f"4K\t{first.partition(chr(9))[2]}"]
    lines += [f"4K\t{line.partition(chr(9))[2]}" if line.endswith("/") else line for line in rest]
    return head + newline + "\n".join(lines)


def files_of(session: Session) -> dict[str, bytes | None]:
    files = InMemoryFilesystem(session)
    if not files.exists("/memories"):
        return {}
    return {
        one.path.removeprefix("/memories/"): files.read_bytes(one.path).content if one.is_file else None
        for one in files.walk("/memories")
    }


@settings(max_examples=share(60))
@given(st.lists(COMMANDS, min_size=1, max_size=10))
def test_answers_and_files_are_those_of_the_tool_on_a_directory(commands: list[Command]) -> None:
    with TemporaryDirectory() as directory:
        reference = Reference(Path(directory))
        session = Session(session_id="main")
        ours = MemoryTool(session)
        for command in commands:
            kind, expected = reference.run(command)
            found, text = answer(partial(ours.call, command))
            if kind == "system":
                # The reference raises the system's own error; ours is an error that the model can read.
                assert found == "error", (command, expected, text)
            else:
                assert (found, with_sizes(text)) == (kind, expected), command
            assert files_of(session) == reference.files()


def test_each_command_is_one_call_that_can_be_undone() -> None:
    session = Session(session_id="main")
    memory = MemoryTool(session)
    memory.call({"command": "create", "path": "/memories/a/b", "file_text": "1\n"})
    memory.call({"command": "insert", "path": "/memories/a/b", "insert_line": 1, "insert_text": "2"})
    memory.call({"command": "delete", "path": "/memories/a"})

    assert [call.tool for call in session[ToolCall].all()] == ["memory"] * 3
    session.undo()
    assert files_of(session) == {"a": None, "a/b": b"1\n2\n"}
    session.revert(session[ToolCall].all()[1].call_id)
    assert files_of(session) == {"a": None, "a/b": b"1\n"}


def test_clearing_can_be_undone() -> None:
    session = Session(session_id="main")
    memory = MemoryTool(session)
    memory.call({"command": "create", "path": "/memories/a", "file_text": "1\n"})
    assert memory.clear_all_memory() == "All memory cleared"
    assert files_of(session) == {}
    session.undo()
    assert files_of(session) == {"a": b"1\n"}


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ({"command": "view", "path": "/memoriesX"}, "must start with /memories"),
        ({"command": "view", "path": "/memories/a\\b"}, "not allowed"),
        ({"command": "view", "path": "/memories/a\0b"}, "not allowed"),
        ({"command": "view"}, "needs the argument `path`"),
        ({"command": "look", "path": "/memories"}, "look"),
        ({"command": "view", "path": 3}, "path: expected text"),
        ({"command": "insert", "path": "/memories/a", "insert_line": "1", "insert_text": ""}, "insert_line: expected"),
        ({"command": "create", "path": "/memories/s", "file_text": "\ud800"}, "surrogate"),
        ({"command": "create", "path": "/memories/" + "n" * 300, "file_text": ""}, "255"),
        ({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/a/b"}, "inside it"),
        ("view", "not valid JSON"),
        (None, "expected an object"),
    ],
)
def test_commands_that_differ_from_the_local_tool_are_refused(command: Any, text: str) -> None:
    session = Session(session_id="main")
    memory = MemoryTool(session)
    memory.call({"command": "create", "path": "/memories/a", "file_text": "1\n"})
    with pytest.raises(ToolError, match=text):
        memory.call(command)
    assert files_of(session) == {"a": b"1\n"}


def test_files_that_are_not_text_are_refused() -> None:
    session = Session(session_id="main")
    InMemoryFilesystem(session).write_bytes("/memories/a", b"\xff")
    with pytest.raises(ToolError, match="not UTF-8"):
        MemoryTool(session).call({"command": "view", "path": "/memories/a"})


def test_many_places_are_found_in_linear_time_and_not_all_listed() -> None:
    session = Session(session_id="main")
    InMemoryFilesystem(session).write("/memories/a", "x\n" * 200_000)
    with pytest.raises(ToolError) as caught:
        MemoryTool(session).call({"command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "y"})
    assert ", 1000, .... Please" in str(caught.value)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root/memories").mkdir(parents=True)
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "root/memories/link").symlink_to(tmp_path / "outside")
    session = Session(session_id="main")
    memory = MemoryTool(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))

    for command in ("view", "delete"):
        kind, text = answer(partial(memory.call, {"command": command, "path": "/memories/link/x"}))
        assert kind == "error"
        assert "secret" not in text
    assert "link" not in answer(lambda: memory.call({"command": "view", "path": "/memories"}))[1]


async def test_the_async_tool_gives_the_same_answers() -> None:
    session = Session(session_id="main")

    memory = AsyncMemoryTool(session)
    created = await memory.call({"command": "create", "path": "/memories/a", "file_text": "1\n"})
    assert created == "File created successfully at: /memories/a"
    with pytest.raises(ToolError, match="already exists"):
        await memory.call({"command": "create", "path": "/memories/a", "file_text": "1\n"})
    assert await memory.clear_all_memory() == "All memory cleared"
    assert memory.to_dict() == {"type": "memory_20250818", "name": "memory"}
