"""Context lines that were given without their mark: an indented one loses its first blank to it."""

from __future__ import annotations

import pytest

from tests.editing.patches.patched import filesystem
from weakfs.editing import HunkRejected, PatchReport, apply_patch

FUNCTION = "def f():\n    x = 1\n    return x\n"
NESTED = "def f():\n    x = 1\n    if x:\n        return x\n"
BLOCK = "if a:\n    b\n    if e:\n        c\n"
COMMENT = "/*\n * one\n * two\n */\n"

FORMATS = ("v4a", "unified", "bare")


def patched(patch_format: str, content: str, *lines: str) -> tuple[str, PatchReport]:
    fs = filesystem(content, "/f")
    hunk = "\n".join(lines) + "\n"
    if patch_format == "v4a":
        report = apply_patch(fs, f"*** Begin Patch\n*** Update File: f\n@@\n{hunk}*** End Patch\n")
    else:
        header = "@@" if patch_format == "bare" else f"@@ -1,{len(lines)} +1,{len(lines)} @@"
        report = apply_patch(fs, f"--- a/f\n+++ b/f\n{header}\n{hunk}", patch_format="unified")
    return fs.read_bytes("/f").content.decode(), report


@pytest.mark.parametrize("patch_format", FORMATS)
@pytest.mark.parametrize(
    "lines",
    [
        ("    x = 1", "+    y = 2", "    return x"),
        (" def f():", "    x = 1", "+    y = 2"),
        ("     x = 1", "+    y = 2", "    return x"),
        ("    x = 1", "+    y = 2", "     return x"),
    ],
)
def test_lines_added_below_it_keep_their_indentation(patch_format: str, lines: tuple[str, ...]) -> None:
    changed, report = patched(patch_format, FUNCTION, *lines)

    assert changed == "def f():\n    x = 1\n    y = 2\n    return x\n"
    assert any("its context lines do not start with ' '" in note for note in report.hunks[0].notes)


@pytest.mark.parametrize("patch_format", FORMATS)
def test_new_lines_may_be_deeper(patch_format: str) -> None:
    changed, _ = patched(patch_format, FUNCTION, "    x = 1", "+    if x:", "+        y = 2", "    return x")

    assert changed == "def f():\n    x = 1\n    if x:\n        y = 2\n    return x\n"


@pytest.mark.parametrize("patch_format", FORMATS)
@pytest.mark.parametrize("context", [("    x = 1",), (" def f():", "    x = 1")])
def test_a_removed_line_with_its_indentation_is_replaced(patch_format: str, context: tuple[str, ...]) -> None:
    changed, _ = patched(patch_format, FUNCTION, *context, "-    return x", "+    return x + 1")

    assert changed == "def f():\n    x = 1\n    return x + 1\n"


@pytest.mark.parametrize("patch_format", FORMATS)
@pytest.mark.parametrize(
    ("content", "lines", "expected"),
    [
        (COMMENT, (" * one", "+ * new", " * two"), "/*\n * one\n * new\n * two\n */\n"),
        (COMMENT, (" * one", "+* new", " * two"), "/*\n * one\n * new\n * two\n */\n"),
        (COMMENT, (" * one", "-* two", "+* 2"), "/*\n * one\n * 2\n */\n"),
        (COMMENT, (" * one", "- * two", "+ * 2"), "/*\n * one\n * 2\n */\n"),
        (BLOCK, ("        c", "+   d"), "if a:\n    b\n    if e:\n        c\n    d\n"),
        (FUNCTION, ("    x = 1", "+   y = 2"), "def f():\n    x = 1\n    y = 2\n    return x\n"),
        (FUNCTION, ("    x = 1", "-   return x", "+   if x:", "+       return x"), NESTED),
    ],
)
def test_a_hunk_with_one_blank_too_little_is_not_mistaken_for_it(
    patch_format: str, content: str, lines: tuple[str, ...], expected: str
) -> None:
    assert patched(patch_format, content, *lines)[0] == expected


def test_a_diff_with_another_cause_of_doubt_is_refused() -> None:
    with pytest.raises(HunkRejected):
        patched("unified", FUNCTION, "    x = 1", "-  return x", "+  y = 2", "+    return y")
