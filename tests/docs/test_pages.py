"""The examples of the documentation do what the pages say."""

from __future__ import annotations

import os
import subprocess
import sys
from codeop import compile_command
from pathlib import Path

import pytest

import weakfs
from tests.docs.page import Differs, Page, blocks

DOCS = Path(weakfs.__file__).parent.parent / "docs"
WITH_EXAMPLES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and any(block.language in ("python", "console") for block in blocks(path.read_text()))
)

TUTORIAL = DOCS / "tutorial" / "agent.md"


def needs_fuse(path: Path) -> bool:
    return "weakfs.integrations.mount" in path.read_text()


def run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.syspath_prepend(directory)
    # The modules that a page saves: another page may save one with the same name.
    for block in blocks(path.read_text()):
        monkeypatch.delitem(sys.modules, (block.title or "").removesuffix(".py"), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # A page may run pytest, which removes the directories of old runs.
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))
    return Page(path, directory).run()


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(DOCS).with_suffix("")))
def test_the_examples_of_a_page_print_what_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if needs_fuse(path) and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("FUSE is not available")
    assert run(path, tmp_path, monkeypatch) > 0


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(DOCS).with_suffix("")))
def test_the_blocks_of_a_page_can_be_pasted_into_an_interpreter(path: Path) -> None:
    for block in blocks(path.read_text()):
        if block.language == "python" and block.title is None:
            typed: list[str] = []
            for line in (*block.text.splitlines(), ""):
                typed.append(line)
                # `None` while a statement is incomplete; an error if the interpreter rejects it.
                if compile_command("\n".join(typed)) is not None:
                    typed.clear()
            assert typed == []


def test_a_page_that_says_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```output\n3\n```\n")
    with pytest.raises(Differs, match=r"page.md, line 2: the page says\n    3\n"):
        run(page, tmp_path, monkeypatch)


def test_output_that_a_page_does_not_mention_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint('more')\n```\n")
    with pytest.raises(Differs):
        run(page, tmp_path, monkeypatch)


def test_a_command_that_prints_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\none\n$ echo two\nthree\n```\n")
    with pytest.raises(Differs, match="two"):
        run(page, tmp_path, monkeypatch)


def test_the_tutorial_runs_from_the_first_block_to_the_last() -> None:
    assert TUTORIAL in WITH_EXAMPLES


def test_the_tutorial_can_be_pasted_into_an_interpreter(tmp_path: Path) -> None:
    typed = ""
    for block in blocks(TUTORIAL.read_text()):
        if block.title is not None:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.text)
        elif block.language == "python":
            typed += f"{block.text}\n"
    done = subprocess.run(
        [sys.executable, "-i", "-q"], input=typed, text=True, capture_output=True, cwd=tmp_path, check=True
    )
    assert "Error" not in done.stderr
    assert (tmp_path / "conversation.json").exists()
