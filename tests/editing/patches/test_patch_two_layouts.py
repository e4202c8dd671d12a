"""Added lines with the file's indentation beside context that has another one: their depth is ambiguous."""

from __future__ import annotations

import pytest

from weakfs import InMemoryFilesystem
from weakfs.editing import HunkRejected, apply_patch

CONTENT = "class A:\n    def f():\n        a()\n        b()\n        if c:\n            d()\n"


def patched(*lines: str, content: str = CONTENT) -> str:
    fs = InMemoryFilesystem()
    fs.write("/f.py", content)
    apply_patch(fs, "\n".join(("*** Begin Patch", "*** Update File: f.py", "@@", *lines, "*** End Patch")))
    return fs.read("/f.py").content


@pytest.mark.parametrize(
    "lines",
    [
        (" a()", "+        e()", " b()"),
        (" a()", "-b()", "+        e()", " if c:"),
        ("-a()", "-b()", "+        if e:", "+            a()"),
        (" if c:", "-  d()", "+    if e:", "+        d()"),
        (" b()", " if c:", "-  d()", "+    e()"),
        ("             a()", "+        e()", "             b()"),
    ],
)
def test_added_lines_with_the_indentation_of_the_file_alone_are_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(HunkRejected):
        patched(*lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((" if c:", "-    d()", "+    e()"), CONTENT.replace("d()", "e()")),
        (
            (" b()", "+if e:", "+    g()", " if c:"),
            CONTENT.replace("        if c", "        if e:\n            g()\n        if c"),
        ),
        ((" if c:", "+    e()", "     d()"), CONTENT.replace("            d", "            e()\n            d")),
    ],
)
def test_added_lines_like_the_context_are_indented_with_it(lines: tuple[str, ...], expected: str) -> None:
    assert patched(*lines) == expected


@pytest.mark.parametrize(
    ("content", "lines", "expected"),
    [
        ("- x\n    - a\n    - b\n", (" - a", "+    - c", " - b"), "- x\n    - a\n        - c\n    - b\n"),
        ("<p>\n    <b>\n    </b>\n</p>\n", (" <b>", "+    c", " </b>"), "<p>\n    <b>\n        c\n    </b>\n</p>\n"),
    ],
)
def test_lines_below_an_item_or_a_tag_may_be_deeper(content: str, lines: tuple[str, ...], expected: str) -> None:
    assert patched(*lines, content=content) == expected
