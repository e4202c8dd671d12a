"""Where a hunk of a V4A patch goes by its anchors, and by the blocks below them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.editing.patches.patched import TWICE, filesystem, refused, update, updated
from weakfs.backends import InMemoryFilesystem
from weakfs.editing import apply_patch
from weakfs.editing.patches.document import Document

CLASSES = (
    "class A:\n    def start(self):\n        self.open()\n\n    def stop(self):\n        self.close()\n\n\n"
    "class B:\n    def start(self):\n        self.open()\n\n    def stop(self):\n        self.close()\n"
)


@pytest.mark.parametrize(
    "anchors", [("@@ class B:",), ("@@ class B:", "@@     def run(self):"), ("@@ class B:", "@@ def run(self):")]
)
def test_an_anchor_selects_the_place(anchors: tuple[str, ...]) -> None:
    expected = TWICE[::-1].replace("1 = x", "2 = x", 1)[::-1]
    assert updated(TWICE, *anchors, "-        x = 1", "+        x = 2") == expected


def test_an_anchor_that_occurs_several_times_selects_nothing() -> None:
    error = refused(TWICE, "@@     def run(self):", "-        x = 1", "+        x = 2")
    assert error.errors[0].file_lines == (3, 7)


def test_a_hunk_may_repeat_its_anchor_as_its_first_line() -> None:
    content = "def f():\n    x\ndef g():\n    x\n"
    assert updated(content, "@@ def f():", " def f():", "-    x", "+    y") == content.replace("x", "y", 1)


def test_a_missing_anchor_is_ignored_if_only_one_place_fits() -> None:
    assert updated("a\nb\n", "@@ nowhere", "-b", "+x") == "a\nx\n"
    refused("a\nb\nb\n", "@@ nowhere", "-b", "+x")


def test_nested_anchors_must_all_exist() -> None:
    error = refused("class A:\nb\n", "@@ class A:", "@@ def nowhere():", "-b", "+x")
    assert "'def nowhere():' is not in the file" in str(error)


@pytest.mark.slow
def test_many_nested_anchors_are_each_looked_up_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    count, find = 300, Document.find
    looked_up: list[str] = []

    def noted(document: Document, lines: Sequence[str], level: int, start: int) -> int:
        looked_up.extend(lines)
        return find(document, lines, level, start)

    monkeypatch.setattr(Document, "find", noted)
    error = refused("x\n" * (count + 5), *["@@ x"] * count, "@@ y", "-x", "+z")
    assert "'y' is not in the file" in str(error)
    assert len(looked_up) < 10 * count


def test_line_numbers_of_a_unified_diff_are_not_an_anchor() -> None:
    assert updated("a\nb\n", "@@ -1,2 +1,2 @@", "-b", "+x") == "a\nx\n"
    assert updated("f\na\ng\na\n", "@@ -1,2 +1,2 @@ g", "-a", "+x") == "f\na\ng\nx\n"


def test_an_anchor_followed_by_a_mark_is_tried_without_it() -> None:
    content = "def f\n p\ndef g\n p\n"
    assert updated(content, "@@ def g @@", "- p", "+ q") == "def f\n p\ndef g\n q\n"
    assert updated(content, "@@ def f @@", "+ q") == "def f\n q\n p\ndef g\n p\n"
    assert updated("a @@\nb\na\nb\n", "@@ a @@", "+x") == "a @@\nx\nb\na\nb\n"


def test_an_anchor_may_repeat_a_class_for_its_second_method() -> None:
    expected = CLASSES.replace("open()", "open_a()", 1).replace("close()", "close_a()", 1)
    start, stop = (
        ("-        self.open()", "+        self.open_a()"),
        ("-        self.close()", "+        self.close_a()"),
    )
    nested = ("@@ class A:", "@@     def start(self):", *start, "@@ class A:", "@@     def stop(self):", *stop)
    assert updated(CLASSES, *nested) == expected
    context = ("@@ class A:", "     def start(self):", *start, "@@ class A:", "     def stop(self):", *stop)
    assert updated(CLASSES, *context) == expected


def test_a_near_match_in_the_block_is_preferred_to_an_exact_one_in_another_block() -> None:
    content = "def a():\n    x = 2\n    return x\n\ndef b():\n    x = 1\n    return x\n"
    error = refused(content, "@@ def a():", "-    x = 1", "+    x = 3")
    assert "outside the block of its anchor 'def a():' (lines 1-3), in which line 2 is similar" in str(error)
    deeper = "def a():\n    if z:\n        x = 1\n\ndef b():\n    x = 1\n"
    assert updated(deeper, "@@ def a():", "-    x = 1", "+    x = 3") == deeper.replace("x = 1", "x = 3", 1)


def test_the_only_place_may_be_outside_the_block_of_its_anchor() -> None:
    content = "def a():\n    pass\n\ndef b():\n    x = 1\n"
    report = update(filesystem(content), "@@ def a():", "-    x = 1", "+    x = 3")
    assert report.hunks[0].notes == ("its place is outside the block of its anchor 'def a():', and is the only one",)
    refused(content + "\ndef c():\n    x = 1\n", "@@ def a():", "-    x = 1", "+    x = 3")


def test_several_places_in_the_block_of_an_anchor_are_refused_unless_the_first_follows_it() -> None:
    content = "class A:\n    def f(self):\n        x = 1\n        y = 2\n        x = 1\n"
    assert updated(content, "@@     def f(self):", "-        x = 1", "+        x = 3") == content.replace(
        "x = 1", "x = 3", 1
    )
    assert refused(content, "@@ class A:", "-        x = 1", "+        x = 3").errors[0].file_lines == (3, 5)


@pytest.mark.parametrize(
    ("content", "anchor", "expected"),
    [
        ("# A\n\nx\n\n## B\n\nx\n\n# C\n\nx\n", "## B", "# A\n\nx\n\n## B\n\ny\n\n# C\n\nx\n"),
        ("[a]\nz = 1\nx\n\n[b]\nz = 1\nx\n", "[a]", "[a]\nz = 1\ny\n\n[b]\nz = 1\nx\n"),
        ("int f()\n{\n    x\n}\n\nint g()\n{\n    x\n}\n", "int g()", "int f()\n{\n    x\n}\n\nint g()\n{\n    y\n}\n"),
        ("f(\n  a,\n) {\n  x\n}\ng() {\n  x\n}\n", "f(", "f(\n  a,\n) {\n  y\n}\ng() {\n  x\n}\n"),
    ],
    ids=["Markdown", "INI", "a brace below", "a head of several lines"],
)
def test_the_block_of_a_line_is_what_is_indented_below_it(content: str, anchor: str, expected: str) -> None:
    indent = expected.split("y\n")[0].rpartition("\n")[2]
    assert updated(content, f"@@ {anchor}", f"-{indent}x", f"+{indent}y") == expected


def test_an_anchor_may_be_the_beginning_of_one_line() -> None:
    content = "class A:\n    x = 1\n\nclass B(Base):\n    x = 1\n"
    for anchor in ("class B", "class B:", "class B("):
        report = update(fs := filesystem(content), f"@@ {anchor}", "-    x = 1", "+    x = 2")
        assert fs.read("/a").content == content[:-2] + "2\n"
        assert report.hunks[0].notes == (f"its anchor '{anchor}' was taken to mean line 4, 'class B(Base):'",)
    for anchor in ("class", "clas", "B(Base):", "class Base"):
        refused(content, f"@@ {anchor}", "-    x = 1", "+    x = 2")
    several = refused("def run(a):\n x\ndef run(b):\n x\n", "@@ def run", "- x", "+ y")
    assert "is not a whole line of the file, and lines 1, 3 begin with it" in str(several)


def test_hunks_in_another_order_find_their_anchors() -> None:
    patch = ("@@ def b", "- x", "+ B", "@@ def a", "- x", "+ A")
    assert updated("def a\n x\ndef b\n x\n", *patch) == "def a\n A\ndef b\n B\n"


def test_an_underlined_heading_may_begin_with_a_word_of_one_letter() -> None:
    section = "{}\n=========\n\nport = 80\n\n"
    fs = InMemoryFilesystem()
    fs.write("/a", section.format("A guide") + section.format("The other"))
    apply_patch(fs, "*** Begin Patch\n*** Update File: a\n@@ A guide\n-port = 80\n+port = 8080\n*** End Patch\n")
    assert fs.read("/a").content == section.format("A guide").replace("80", "8080") + section.format("The other")
