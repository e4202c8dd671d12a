"""Generators of patches that turn one set of files into another, in every format, and diffs made by git itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path

from hypothesis import strategies as st

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem

# Paths and the texts there.
Files = Mapping[str, str]

NAMES = ("a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "Ä b.txt")

line = st.sampled_from(("x", "y", "", "  z", "-", "+a", "@@ b", "*** End Patch", "\\ No", "--- q", "é")) | st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\ufeff"), max_size=6
)
text = st.builds(
    lambda lines, end: "\n".join(lines) + end if lines else "",
    st.lists(line, max_size=12),
    st.sampled_from(("\n", "")),
)
files = st.dictionaries(st.sampled_from(NAMES), text, max_size=4)

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def filesystem_of(given: Files) -> InMemoryFilesystem:
    fs = InMemoryFilesystem()
    for path, content in given.items():
        fs.write_bytes(path, content.encode())
    return fs


def files_of(fs: Filesystem) -> dict[str, str]:
    return {entry.path[1:]: fs.read_bytes(entry.path).content.decode() for entry in fs.walk() if not entry.is_directory}


def lines_of(content: str) -> list[str]:
    lines = content.split("\n")
    return lines[:-1] if not lines[-1] else lines


def v4a(old: Files, new: Files) -> str:
    """Make a V4A patch that contains every line of the files it updates, so that it fits only one place."""
    made = ["*** Begin Patch"]
    for path in sorted({*old, *new}):
        if path not in new:
            made.append(f"*** Delete File: {path}")
        elif path not in old:
            made += [f"*** Add File: {path}", *("+" + line for line in lines_of(new[path]))]
        elif old[path] != new[path]:
            made += [f"*** Update File: {path}", "@@", *_marked(lines_of(old[path]), lines_of(new[path]))]
    return "\n".join([*made, "*** End Patch"])


def _marked(old: list[str], new: list[str]) -> list[str]:
    made: list[str] = []
    for kind, start, stop, new_start, new_stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            made += [" " + line for line in old[start:stop]]
        else:
            made += ["-" + line for line in old[start:stop]] + ["+" + line for line in new[new_start:new_stop]]
    return made


def search_replace(path: str, old: str, new: str) -> str:
    """Make blocks that turn one text into another, each with enough context to be unique.

    One of the texts must have a line that is not blank, because blocks need one.
    """
    now, wanted = lines_of(old), lines_of(new)
    blocks: list[str] = []
    for kind, start, stop, new_start, new_stop in SequenceMatcher(None, now, wanted, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        before = wanted[:new_start] + lines_of(old)[start:]
        end = new_start + stop - start
        above, below = _context(before, new_start, end)
        found = before[above:below]
        if old and not any(map(str.strip, found)):
            return f"`{path}`\n" + _block(lines_of(old), wanted)
        blocks.append(_block(found, before[above:new_start] + wanted[new_start:new_stop] + before[end:below]))
    return f"`{path}`\n" + "".join(blocks)


def _context(lines: list[str], start: int, stop: int) -> tuple[int, int]:
    """Widen a range of lines until they have text and occur nowhere else."""
    while start > 0 or stop < len(lines):
        part = lines[start:stop]
        places = [at for at in range(len(lines) - len(part) + 1) if lines[at : at + len(part)] == part]
        if any(map(str.strip, part)) and len(places) == 1:
            break
        start, stop = max(0, start - 1), min(len(lines), stop + 1)
    return start, stop


def _block(search: list[str], replacement: list[str]) -> str:
    taken = {len(line.split(" ")[0]) for line in (*search, *replacement) if line[:1] in ("=", ">")}
    signs = next(signs for signs in (7, 5, 6, 8, 9) if signs not in taken)
    lines = ["<" * signs + " SEARCH", *search, "=" * signs, *replacement, ">" * signs + " REPLACE"]
    return "\n".join(lines) + "\n"


def git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=root, env=CLEAN, capture_output=True, check=True)
    return done.stdout


def lay_out(root: Path, given: Files) -> None:
    """Make a git work tree contain exactly these files, and stage them."""
    for path in sorted(root.rglob("*"), reverse=True):
        if ".git" not in path.relative_to(root).parts:
            path.rmdir() if path.is_dir() else path.unlink()
    for name, content in given.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    git(root, "add", "-A")


def git_diff(root: Path, old: Files, new: Files, *options: str) -> str:
    """Return git's difference between two sets of files."""
    lay_out(root, old)
    first = git(root, "write-tree").decode().strip()
    lay_out(root, new)
    second = git(root, "write-tree").decode().strip()
    return git(root, "diff", "--no-color", *options, first, second).decode()
