"""Blanks and line ends at the border of an inexact match: nothing that was quoted moves or changes its kind."""

from __future__ import annotations

import pytest

from weakfs.editing import replace

# The reason, the file, the old text, the new text, and what the file contains afterwards.
FITTED = [
    (
        "trailing blanks that were quoted go with their line",
        "v = 1\r\nx = 'a'  \n",
        "v = 1\nx = 'a'  ",
        "v = 1\ny = 2\nz = 3",
        "v = 1\r\ny = 2\nz = 3\n",
    ),
    ("also if the file has other ones", "a = 'x' \n", "a = \u2018x\u2019  \n", "b\nc\n", "b\nc\n"),
    ("or if only they change", "v = 1\r\nx = 2  \n", "v = 1\nx = 2  \n", "v = 3\nx = 2\n", "v = 3\r\nx = 2\n"),
    ("those that were not quoted stay", "a = 'x'  \n", "a = \u2018x\u2019", "b = 1", "b = 1  \n"),
    ("and so do those that the new text has", "a = 'x'  \n", "a = \u2018x\u2019  \n", "b = 1  \n", "b = 1  \n"),
    (
        "a blank line between lines stays there",
        "one\r\n\nend\n",
        "one\n\n",
        "one\n\nnew\n",
        "one\r\n\nnew\r\n\nend\n",
    ),
    (
        "the last line's end stays with it if lines follow",
        "a\n}\r\nlast  \r\nz\n",
        "}\nlast  \n",
        "}\nlast  \nnew\n",
        "a\n}\r\nlast  \r\nnew\r\nz\n",
    ),
    ("a blank line that was removed does not stay", "a\nb  b\n\nc\nd\n", "a\nb b\n\nc\nd", "a\nb b\nd", "a\nb  b\nd\n"),
    ("nor do several", "a  a\n\n\nb\nc\n", "a a\n\n\nb\nc\n", "a a\nc\n", "a  a\nc\n"),
    ("a form feed is no blank", "a = 'x'\n\nb\n", "a = \u2018x\u2019\n\nb\n", "a\n\nb\n\x0c\nc\n", "a\n\nb\n\x0c\nc\n"),
]


@pytest.mark.parametrize(("text", "old", "new", "wanted"), [row[1:] for row in FITTED], ids=[row[0] for row in FITTED])
def test_the_border_of_an_inexact_match(text: str, old: str, new: str, wanted: str) -> None:
    assert replace(text, old, new).text == wanted
