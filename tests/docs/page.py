"""Runs the examples of a page: its code blocks in order, in an empty directory, each compared with its output.

- `python` blocks run one after another in one namespace; an `output` block after one is what it prints.
- A block with `title=NAME`, in any language, is saved as that file and not run.
- `console` blocks contain commands after `$`, each with its output below it.

In an output, `...` matches any text, as in doctest. Times, durations, digests, sizes and shortened paths may differ
from those on the page. Other blocks are only shown.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType

from attrs import frozen

from tests.forked_command import start_command, wait_for

_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)

# A command without any of these is run without a shell.
_SHELL = frozenset("$`&|;<>()*?[]{}~#!\\\n")

_VARYING = (
    (re.compile(r"\b\d{2}-\d{2} \d{2}:\d{2}:\d{2}\b"), "<time>"),
    (re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z"), "<time>"),
    (re.compile(r"\b\d+\.\d+ ?s\b"), "<seconds>"),
    (re.compile(r"\b[0-9a-f]{8,64}\b"), "<digest>"),
    (re.compile(r"/…\S+ *"), "<path> "),
    (re.compile(r"\b\d{1,3},\d{3}\b"), "<number>"),
    (re.compile(r"\b\d+ (passed|deselected)\b"), r"<number> \1"),
)


@frozen
class Block:
    """One fenced block: the language, the file that it is saved as if there is one, its text, and its line."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page that are saved, run or compared."""
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        language, *words = match["info"].split() or [""]
        title = next((word.partition("=")[2] for word in words if word.startswith("title=")), None)
        if title is not None or language in ("python", "output", "console"):
            found.append(Block(language, title, match["body"], text.count("\n", 0, match.start()) + 2))
    return found


def matches(expected: str, printed: str) -> bool:
    """Return whether the printed text matches a page."""
    for pattern, name in _VARYING:
        expected, printed = pattern.sub(name, expected), pattern.sub(name, printed)
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)


class Differs(AssertionError):
    """An example printed something other than its page says."""


class Page:
    """A page whose examples are run in a directory."""

    def __init__(self, path: Path, directory: Path) -> None:
        self._path = path
        self._directory = directory
        self._module = ModuleType(f"page_{re.sub(r'[^a-z]', '_', path.stem)}")
        # Types are resolved through the module that they are defined in.
        sys.modules[self._module.__name__] = self._module

    def run(self) -> int:
        """Run all examples; return how many there were. Raises `Differs` at the first one whose output differs."""
        count = 0
        found = blocks(self._path.read_text(encoding="utf-8"))
        for block, after in zip(found, [*found[1:], None], strict=True):
            if block.title is not None:
                target = self._directory / block.title
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                expected = after.text if after is not None and after.language == "output" else ""
                self._compare(expected, self._printed(block), block.line)
                count += 1
            elif block.language == "console":
                for command, output in _commands(block):
                    self._compare(output, self._shown(command), block.line)
                    count += 1
        return count

    def _printed(self, block: Block) -> str:
        # Tracebacks name the page's own line.
        code = compile("\n" * (block.line - 1) + block.text, str(self._path), "exec")
        out = StringIO()
        with redirect_stdout(out):
            exec(code, vars(self._module))
        return out.getvalue()

    def _shown(self, command: str) -> str:
        return self._output(command).replace(str(self._directory), "/home/me")

    def _output(self, command: str) -> str:
        if command.startswith("weakfs ") and not set(command) & _SHELL:
            with TemporaryFile() as output:
                where = output.fileno()
                words = shlex.split(command)[1:]
                environment = self._environment()
                wait_for(
                    start_command(words, stdout=where, stderr=where, environment=environment, directory=self._directory)
                )
                output.seek(0)
                return output.read().decode()
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._directory,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """Return an environment in which `python` and `weakfs` are those of this checkout."""
        programs = self._directory.parent / f"{self._directory.name}.bin"
        if not programs.exists():
            programs.mkdir()
            for name, words in (("python", ""), ("weakfs", "-m weakfs")):
                script = programs / name
                script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
                script.chmod(0o755)
        root = Path(__file__).parent.parent.parent
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "PATH": path, "PYTHONPATH": str(root), "COLUMNS": "100", "TZ": "UTC", "NO_COLOR": "1"}

    def _compare(self, expected: str, printed: str, line: int) -> None:
        if not matches(expected, printed):
            said, got = textwrap.indent(expected, "    "), textwrap.indent(printed, "    ")
            raise Differs(f"{self._path.name}, line {line}: the page says\n{said}\nand this is printed\n{got}")


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    yield from _COMMAND.findall(block.text)
