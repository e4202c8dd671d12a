"""Source files for examples: the standard library, installed packages, `fixtures/code`, given directories."""

from __future__ import annotations

import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random

FIXTURES = Path(__file__).parents[2] / "fixtures" / "code"

LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".h": "c",
    ".c": "c",
    ".css": "css",
    ".html": "html",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".go": "go",
    ".java": "java",
    ".md": "markdown",
    ".rs": "rust",
    ".sh": "shell",
    ".toml": "toml",
    ".ini": "ini",
    ".json": "json",
}

SKIPPED = {"site-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__", "node_modules"}
"""Directories of the standard library that are skipped; a directory given on the command line is read in full."""

FEWEST_LINES, MOST_LINES, LONGEST_LINE = 15, 700, 300


@dataclass(frozen=True)
class Source:
    """A text file: its lines without their ends (each ends with a newline), its language and step of indentation."""

    path: str
    language: str
    lines: tuple[str, ...]
    unit: str

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @cached_property
    def indents(self) -> frozenset[str]:
        """Every indentation of the file."""
        return frozenset(indent_of(line) for line in self.lines if line.strip())

    @cached_property
    def squeezed(self) -> str:
        """The file without any white space."""
        return "".join("".join(line.split()) for line in self.lines)


class Corpus:
    """Files by language and group, read when they are chosen; a group is a package or a directory."""

    def __init__(self, groups: Iterable[Iterable[Path]]) -> None:
        self._groups: dict[str, list[list[Path]]] = {}
        for group in groups:
            by_language: dict[str, list[Path]] = {}
            for path in group:
                by_language.setdefault(LANGUAGES[path.suffix], []).append(path)
            for language, paths in by_language.items():
                self._groups.setdefault(language, []).append(paths)
        if not self._groups:
            raise ValueError("there are no source files to make examples from; name a directory that has some")
        # Python counts three times, because indentation matters most to it.
        self.languages = [*sorted(self._groups), *(["python"] * 2 if "python" in self._groups else [])]
        self._read: dict[Path, Source | None] = {}

    def choose(self, rng: Random) -> Source | None:
        """Return a file, chosen by language, then by group; `None` if the chosen file is unsuitable."""
        path = rng.choice(rng.choice(self._groups[rng.choice(self.languages)]))
        if path not in self._read:
            self._read[path] = read(path)
        return self._read[path]


def default_corpus(directories: Sequence[Path] = ()) -> Corpus:
    """Return a corpus of the fixtures, this interpreter's library and packages, and the given directories."""
    paths = sysconfig.get_paths()
    library = _by_package(Path(paths["stdlib"]), SKIPPED, {".py"})
    installed = _by_package(Path(paths["purelib"]), {"__pycache__"}, {".py"})
    given = [group for directory in directories for group in _by_package(directory, {"__pycache__"}, set(LANGUAGES))]
    return Corpus([[*files(FIXTURES)], *library, *installed, *given])


def small_corpus(modules: Sequence[str] = ()) -> Corpus:
    """Return a corpus of the fixtures and of some modules of the standard library, such as `json/decoder.py`."""
    library = Path(sysconfig.get_paths()["stdlib"])
    return Corpus([[*files(FIXTURES)], *([library / module] for module in modules)])


def _by_package(directory: Path, skipped: Iterable[str], suffixes: set[str]) -> list[list[Path]]:
    """Group files by the directory below the given one; files directly in it form a group of their own."""
    groups: dict[str, list[Path]] = {}
    for path in files(directory, skipped):
        if path.suffix in suffixes:
            parts = path.relative_to(directory).parts
            groups.setdefault(parts[0] if len(parts) > 1 else "", []).append(path)
    return list(groups.values())


def files(directory: Path, skipped: Iterable[str] = ()) -> Iterator[Path]:
    """List the files below a directory in a deterministic order."""
    without = set(skipped)
    for path in sorted(directory.rglob("*")):
        if path.suffix in LANGUAGES and without.isdisjoint(path.relative_to(directory).parts[:-1]) and path.is_file():
            yield path


def read(path: Path) -> Source | None:
    """Read a file, or return `None` if its lines are too few, too many, too long or indented in several ways."""
    try:
        text = path.read_bytes().decode()
    except (UnicodeDecodeError, OSError):
        return None
    return source(path.name, LANGUAGES[path.suffix], text)


def source(path: str, language: str, text: str) -> Source | None:
    """Make a source from a text, or return `None` if it is unsuitable."""
    lines = tuple(text.split("\n")[:-1])
    if not FEWEST_LINES <= len(lines) <= MOST_LINES or not text.endswith("\n") or max(map(len, lines)) > LONGEST_LINE:
        return None
    if text.splitlines() != list(lines) or text.startswith("\ufeff"):
        return None
    unit = unit_of(lines)
    return None if unit is None else Source(path, language, lines, unit)


def unit_of(lines: Sequence[str]) -> str | None:
    """Return one step of indentation: the most common one, `None` if the file is indented in several ways."""
    indents = [indent_of(line) for line in lines if line.strip()]
    tabs = [indent for indent in indents if "\t" in indent]
    if tabs:
        # Spaces may only follow tabs, as those that align a comment do.
        consistent = all(indent.startswith("\t") and "\t" not in indent.lstrip("\t") for indent in tabs)
        spaces = sum(indent.startswith(" ") for indent in indents)
        return "\t" if consistent and spaces == 0 else None
    deeper = Counter(len(after) - len(before) for before, after in pairwise(indents) if len(after) > len(before))
    if not deeper:
        return None
    width, count = max(deeper.items(), key=lambda item: (item[1], -item[0]))
    regular = sum(len(indent) % width == 0 for indent in indents)
    serves = width in (2, 3, 4, 8) and count * 2 > sum(deeper.values()) and regular * 10 >= len(indents) * 9
    return " " * width if serves else None


def indent_of(line: str) -> str:
    """Return the blanks and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]
