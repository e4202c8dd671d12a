"""Parts of a diff in other formats than the unified one: recognized, so that no change of a patch is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

_REMEDY = "send a unified diff, as git diff and diff -u write it"
_CONTEXT = f"it is a context diff; {_REMEDY}"
_NORMAL = f"it is a diff without context lines and names, as diff writes it without options; {_REMEDY}"
_SCRIPT = f"it is a script for ed, which does not show the lines that it changes; {_REMEDY}"
COMBINED = "a combined diff of a merge cannot be applied; diff against one parent"
SUBMODULE_CHANGED = "it changes a submodule, which is not a file; leave it out"
BINARY = "it changes a binary file, and only text can be patched; write that file whole"
_COLORED = "it contains the codes of terminal colors; write it without them, as git diff --no-color does"
_NAMES_ONLY = "it only names files that differ, without their lines; send a unified diff, as diff -ruN writes it"

_CONTEXT_RANGE = re.compile(r"\*\*\* \d+(?:,\d+)? \*\*\*\*")
_NORMAL_RANGE = re.compile(r"\d+(?:,\d+)?[acd]\d+(?:,\d+)?")
_COMMAND = re.compile(r"\d+(?:,\d+)?[acd]|[ad]\d+ \d+")
_COMBINED_RANGES = re.compile(r"@@@+ -\d")
_SUBMODULE_LOG = re.compile(r"Submodule .+ (?:[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,}|\(submodule [a-z ]+\)).*")
_NAMES = re.compile(r"Only in [^:]+: .+|Files .+ and .+ differ")


def why_not_unified(lines: Sequence[str], at: int) -> str | None:
    """Return why the part of a diff that begins at a line cannot be applied; `None` if the line begins none. O(1)."""
    line = lines[at].rstrip()
    if not line:
        return None
    below = "".join(lines[at + 1 : at + 2]).rstrip()
    if line.startswith("***"):
        begins = line.startswith("*** ") and below.startswith("--- ") and _is_separator(lines, at + 2)
        return _CONTEXT if begins or (_is_separator(lines, at) and _CONTEXT_RANGE.fullmatch(below)) else None
    if line.startswith("Submodule "):
        is_shown = below.startswith("diff ")
        return SUBMODULE_CHANGED if _SUBMODULE_LOG.fullmatch(line) and not is_shown else None
    if line.startswith("diff -"):
        if line.startswith(("diff --cc ", "diff --combined ")):
            return COMBINED
        return _SCRIPT if _COMMAND.fullmatch(below) else None
    if is_combined(line):
        return COMBINED
    if _is_binary(line):
        return BINARY
    return _NORMAL if below.startswith(("< ", "> ")) and _NORMAL_RANGE.fullmatch(line) else None


def why_no_diff(lines: Sequence[str]) -> tuple[int, str] | None:
    """Return the line (from 1) that shows what a patch is in which there is no unified diff, and why it is refused."""
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "***************":
            return 1, _CONTEXT
        if "\x1b[" in line:
            return number, _COLORED
        if _NAMES.fullmatch(line.rstrip()):
            return number, _NAMES_ONLY
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    return (first + 1, _SCRIPT) if first is not None and _COMMAND.fullmatch(lines[first].rstrip()) else None


def is_combined(line: str) -> bool:
    """Return whether a line is the header of a hunk with several old files."""
    return _COMBINED_RANGES.match(line) is not None


def _is_separator(lines: Sequence[str], at: int) -> bool:
    return "".join(lines[at : at + 1]).startswith("***************")


def _is_binary(line: str) -> bool:
    if line.startswith("Binary file"):
        return line.endswith((" differ", " has changed"))
    return line.startswith("Cannot display: file marked as a binary type")
