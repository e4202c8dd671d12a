"""Where a hunk of a V4A patch goes, and what it leaves of the lines around it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.editing.patched import filesystem, refused, update
from weakfs.backends import InMemoryFilesystem
from weakfs.editing import PatchParseError, UpdateTargetNotText, apply_patch
from weakfs.editing.patches.document import Document

TWICE = "class A:\n    def run(self):\n        x = 1\n\nclass B:\n    def run(self):\n        x = 1\n"


def updated(content: str, *lines: str) -> str:
    fs = filesystem(content)
    update(fs, *lines)
    return fs.read_bytes("/a").content.decode()


# Searching


@pytest.mark.parametrize(
    ("content", "hunk", "expected", "fit"),
    [
        ("a\nb\nc\n", ("@@", " a", "-b", "+x"), "a\nx\nc\n", "exact"),
        ("a  \nb\n", ("@@", " a", "-b", "+x"), "a  \nx\n", "trailing blanks"),
        ("  a\nb\n", ("@@", " a", "-b", "+x"), "  a\nx\n", "indentation"),
        (
            "\u201ca\u201d \u2013 \u2018b\u2019\nc\n",
            ("@@", " \"a\" - 'b'", "-c", "+x"),
            "\u201ca\u201d \u2013 \u2018b\u2019\nx\n",
            "typographic",
        ),
        ("a\u00a0b\nc\n", ("@@", " a b", "-c", "+x"), "a\u00a0b\nx\n", "typographic"),
    ],
)
def test_context_is_found_exactly_or_more_and_more_freely_and_stays_as_it_was(
    content: str, hunk: tuple[str, ...], expected: str, fit: str
) -> None:
    fs = filesystem(content)
    report = update(fs, *hunk)
    assert fs.read("/a").content == expected
    assert [one.fit for one in report.hunks] == [fit]


def test_an_exact_place_comes_before_a_freer_one() -> None:
    assert updated("  a\na\n", "@@", "-a", "+x") == "  a\nx\n"


def test_letters_and_case_never_fold() -> None:
    refused("A\n", "@@", "-a", "+x")


def test_hunks_are_searched_behind_the_one_before() -> None:
    assert updated("a\nb\na\nb\n", "@@", " a", " b", " a", "-b", "+x") == "a\nb\na\nx\n"
    assert updated("h\na\nz\na\n", "@@", " h", "-a", "+1", "@@", "-a", "+2") == "h\n1\nz\n2\n"


def test_a_hunk_out_of_order_is_refused_and_told_where_it_fits() -> None:
    error = refused("a\nb\n", "@@", "-b", "+x", "@@", "-a", "+y")
    assert "hunk 2" in str(error)
    assert "it fits at line 1, above the place of the hunk before it" in str(error)


def test_the_first_hunk_needs_no_marker() -> None:
    assert updated("a\nb\n", " a", "-b", "+c") == "a\nc\n"


def test_an_empty_line_is_blank_context() -> None:
    assert updated("a\n\nb\n", "@@", " a", "", "-b", "+c") == "a\n\nc\n"


def test_an_empty_line_below_a_hunk_may_stand_for_nothing() -> None:
    assert updated("a\nb\n", "@@", "-a", "+c", "", "") == "c\nb\n"
    assert updated("a\n\nb\na\n", "@@", "-a", "+c", "") == "c\n\nb\na\n"


def test_empty_lines_above_the_first_hunk_are_context_where_they_fit() -> None:
    assert updated("x\n\nx\n", "", "-x", "+y") == "x\n\ny\n"
    assert updated("x\n\n\nx\n\nx\n", "", "", "-x", "+y") == "x\n\n\ny\n\nx\n"
    assert updated("a\nx\n", "", "-x", "+y", "") == "a\ny\n"
    assert updated("x\na\n\nx\n", "", "@@ x", "-a", "+y") == "x\ny\n\nx\n"
    assert updated("x\n\na\n", "", "+y") == "x\n\na\ny\n"
    refused("x\nx\n", "", "-x", "+y")


@pytest.mark.parametrize(("hunk", "line"), [(("@@", ""), 3), (("@@ zz", "", ""), 3), (("@@", "-A", "+B", "@@", ""), 6)])
def test_a_hunk_of_empty_lines_that_are_nowhere_has_no_lines(hunk: tuple[str, ...], line: int) -> None:
    fs = filesystem("A\nb\n")
    with pytest.raises(PatchParseError, match="the hunk has no lines") as caught:
        update(fs, *hunk)
    assert caught.value.line == line
    assert fs.read("/a").content == "A\nb\n"


def test_a_hunk_of_empty_lines_may_be_context() -> None:
    assert updated("x\n\nx\n", "@@", "", "@@", "-x", "+y") == "x\n\ny\n"


def test_lines_that_only_come_are_not_drawn_to_a_blank_line() -> None:
    assert updated("a\n\nb\n", "@@ b", "+c", "") == "a\n\nb\nc\n"
    assert updated("a\n\nb\n", "@@", "+c", "") == "a\n\nb\nc\n"


def test_the_end_of_the_file_ties_a_hunk_to_it() -> None:
    assert updated("a\nb\na\n", "@@", "-a", "+x", "*** End of File") == "a\nb\nx\n"
    error = refused("a\nb\n", "@@", "-a", "+x", "*** End of File")
    assert "not the last ones of the file" in str(error)


# Several places


def test_a_hunk_that_fits_in_several_places_is_refused_with_all_of_them() -> None:
    error = refused(TWICE, "@@", "-        x = 1", "+        x = 2")
    assert error.errors[0].file_lines == (3, 7)
    assert "at lines 3, 7" in str(error)


def test_the_first_place_is_taken_where_that_is_asked_for() -> None:
    fs = filesystem(TWICE)
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-        x = 1\n+        x = 2\n*** End Patch"
    apply_patch(fs, patch, on_ambiguous="first")
    assert fs.read("/a").content == TWICE.replace("x = 1", "x = 2", 1)


@pytest.mark.parametrize(
    "anchors", [("@@ class B:",), ("@@ class B:", "@@     def run(self):"), ("@@ class B:", "@@ def run(self):")]
)
def test_an_anchor_chooses_the_place(anchors: tuple[str, ...]) -> None:
    expected = TWICE[::-1].replace("1 = x", "2 = x", 1)[::-1]
    assert updated(TWICE, *anchors, "-        x = 1", "+        x = 2") == expected


def test_an_anchor_that_is_there_several_times_chooses_nothing() -> None:
    error = refused(TWICE, "@@     def run(self):", "-        x = 1", "+        x = 2")
    assert error.errors[0].file_lines == (3, 7)


def test_a_hunk_may_repeat_its_anchor_as_its_first_line() -> None:
    content = "def f():\n    x\ndef g():\n    x\n"
    assert updated(content, "@@ def f():", " def f():", "-    x", "+    y") == content.replace("x", "y", 1)


def test_one_anchor_that_is_not_there_is_only_advice() -> None:
    assert updated("a\nb\n", "@@ nowhere", "-b", "+x") == "a\nx\n"
    refused("a\nb\nb\n", "@@ nowhere", "-b", "+x")


def test_nested_anchors_must_all_be_there() -> None:
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


def test_line_numbers_of_a_unified_diff_are_no_anchor() -> None:
    assert updated("a\nb\n", "@@ -1,2 +1,2 @@", "-b", "+x") == "a\nx\n"
    assert updated("f\na\ng\na\n", "@@ -1,2 +1,2 @@ g", "-a", "+x") == "f\na\ng\nx\n"


def test_an_anchor_with_a_mark_behind_it_is_tried_without_it() -> None:
    content = "def f\n p\ndef g\n p\n"
    assert updated(content, "@@ def g @@", "- p", "+ q") == "def f\n p\ndef g\n q\n"
    assert updated(content, "@@ def f @@", "+ q") == "def f\n q\n p\ndef g\n p\n"
    assert updated("a @@\nb\na\nb\n", "@@ a @@", "+x") == "a @@\nx\nb\na\nb\n"


# Lines that only come


def test_lines_that_only_come_go_behind_their_anchor_else_to_the_end() -> None:
    assert updated("a\nb\nc\n", "@@ a", "+x", "+y") == "a\nx\ny\nb\nc\n"
    assert updated("a\nb\n", "@@", "+x") == "a\nb\nx\n"
    assert "its anchor 'nowhere' is not in the file" in str(refused("a\nb\n", "@@ nowhere", "+x"))
    assert updated("a\nb\n", "@@ nowhere", "+x", "*** End of File") == "a\nb\nx\n"
    assert updated("a\nb\n", "@@ a", "+x", "*** End of File") == "a\nb\nx\n"


def test_lines_at_the_end_do_not_keep_later_hunks_from_their_place() -> None:
    assert updated("a\nb\n", "@@", "+x", "@@", "-a", "+y") == "y\nb\nx\n"


def test_lines_behind_an_anchor_that_is_there_twice_are_refused() -> None:
    error = refused("a\nb\na\n", "@@ a", "+x")
    assert error.errors[0].file_lines == (1, 3)


def test_lines_may_go_behind_an_anchor_above_the_hunk_before() -> None:
    content = "def f\n x\ndef g\n y\n"
    assert updated(content, "@@ def f", "- x", "+ X", "@@ def f", "+ new") == "def f\n new\n X\ndef g\n y\n"
    refused(content, "@@ def f", "- x", "+ X", "@@ deff", "+ new")
    assert updated("a\nb\n", "@@", "-b", "+c", "@@ a", "+x", "*** End of File") == "a\nc\nx\n"


# What a text keeps


@pytest.mark.parametrize(
    ("content", "hunk", "expected"),
    [
        ("a\r\nb\r\n", (" a", "-b", "+c", "+d"), "a\r\nc\r\nd\r\n"),
        ("a\r\nb\nc\r\n", (" a", "-b", "+x"), "a\r\nx\nc\r\n"),
        ("a\nb\r\nc\n", (" a", "-b", "+x"), "a\nx\r\nc\n"),
        ("a\nb\r\nc\n", (" a", " b", "+x", " c"), "a\nb\r\nx\r\nc\n"),
        ("a\r\nb", (" a", " b", "+c"), "a\r\nb\r\nc"),
        ("a\r\nb", (" a", "-b", "+c"), "a\r\nc"),
        ("a\nb", (" a", "-b", "+c"), "a\nc"),
        ("a\nb", ("-a", "-b"), ""),
        ("a\nb", (" a", "-b"), "a"),
        ("", ("+a",), "a\n"),
        ("\ufeffa\nb\n", ("-a", "+x"), "\ufeffx\nb\n"),
        ("\ufeffa\nb\n", ("-a",), "\ufeffb\n"),
        ("\ufeffa\n", ("-\ufeffa", "+\ufeffx"), "\ufeffx\n"),
        ("a\n\n", ("-a", "+b"), "b\n\n"),
        ("a\x0cb\u2028c\x85\n", ("-a\x0cb\u2028c\x85", "+x\x0cy"), "x\x0cy\n"),
    ],
)
def test_line_ends_the_mark_and_the_missing_newline_are_kept(
    content: str, hunk: tuple[str, ...], expected: str
) -> None:
    assert updated(content, "@@", *hunk) == expected


def test_a_patch_with_carriage_returns_is_read_without_them() -> None:
    patch = (
        "*** Begin Patch\r\n*** Update File: a\r\n@@\r\n a\r\n-b\r\n+c\r\n*** Add File: d\r\n+e\r\n*** End Patch\r\n"
    )
    fs = filesystem("a\nb\n")
    apply_patch(fs, patch)
    assert (fs.read("/a").content, fs.read("/d").content) == ("a\nc\n", "e\n")


def test_the_dialects_of_other_runtimes() -> None:
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n*** Add File: n\n+x\n+y\n*** Add File: e\n*** End Patch"
    fs = filesystem("a")
    apply_patch(fs, patch, final_newline="add", added_file_newline=False)
    assert [fs.read(path).content for path in ("/a", "/n", "/e")] == ["b\n", "x\ny", ""]


@pytest.mark.parametrize(
    ("content", "hunk", "expected"),
    [
        ("x\r\ny\r\nz\r\n", ("@@", " x", "-y", "+Y"), "x\r\nY\r\nz\r\n"),
        ("x\r\ny", ("@@", " x", "-y", "+Y"), "x\r\nY\r\n"),
        ("x\ny\n\n", ("@@", "-x", "+X"), "X\ny\n\n"),
        ("A\nB", ("@@ A", "+Z"), "A\nZ\nB\n"),
        ("A\nf\nB\n", ("@@ A", "@@ f", "-B", "+Z"), "A\nf\nZ\n"),
        ("A\nf\nB\n", ("@@ Q", "-B", "+Z"), "A\nf\nZ\n"),
        ("A  \nB\nB", ("@@", " A", "-B", "+Z"), "A  \nZ\nB\n"),
        ("\ufeffA\nB\nA", ("@@", "-A", "+Z"), "\ufeffZ\nB\nA\n"),
    ],
)
def test_the_first_place_and_a_last_newline_do_not_change_one_another(
    content: str, hunk: tuple[str, ...], expected: str
) -> None:
    fs = filesystem(content)
    patch = "\n".join(("*** Begin Patch", "*** Update File: a", *hunk, "*** End Patch"))
    apply_patch(fs, patch, on_ambiguous="first", final_newline="add")
    assert fs.read_bytes("/a").content.decode() == expected


def test_what_is_not_text_is_refused_with_the_offset() -> None:
    fs = filesystem(b"a\xff\n")
    with pytest.raises(UpdateTargetNotText, match="byte at offset 1 is not UTF-8") as caught:
        update(fs, "@@", "-a", "+b")
    assert (caught.value.status, caught.value.error_code) == ("error", "update_target_non_utf8")


@pytest.mark.parametrize("hunk", [("@@", "-a", "+\udc80"), ("@@ a", "+\ud800")])
def test_half_of_a_surrogate_pair_is_refused_with_the_line(hunk: tuple[str, ...]) -> None:
    fs = filesystem("a\n")
    with pytest.raises(PatchParseError, match="half of a surrogate pair into '/a'") as caught:
        update(fs, *hunk)
    assert caught.value.line == 3
    assert fs.read("/a").content == "a\n"
    refused("a\n", "@@", "-\udc80", "+b")


# Blocks

CLASSES = (
    "class A:\n    def start(self):\n        self.open()\n\n    def stop(self):\n        self.close()\n\n\n"
    "class B:\n    def start(self):\n        self.open()\n\n    def stop(self):\n        self.close()\n"
)


def test_a_class_may_be_named_again_for_its_second_method() -> None:
    expected = CLASSES.replace("open()", "open_a()", 1).replace("close()", "close_a()", 1)
    start, stop = (
        ("-        self.open()", "+        self.open_a()"),
        ("-        self.close()", "+        self.close_a()"),
    )
    nested = ("@@ class A:", "@@     def start(self):", *start, "@@ class A:", "@@     def stop(self):", *stop)
    assert updated(CLASSES, *nested) == expected
    context = ("@@ class A:", "     def start(self):", *start, "@@ class A:", "     def stop(self):", *stop)
    assert updated(CLASSES, *context) == expected


def test_a_nearly_equal_place_in_the_block_is_not_passed_over_for_an_equal_one_in_another() -> None:
    content = "def a():\n    x = 2\n    return x\n\ndef b():\n    x = 1\n    return x\n"
    error = refused(content, "@@ def a():", "-    x = 1", "+    x = 3")
    assert "outside the block of its anchor 'def a():' (lines 1-3), in which line 2 is similar" in str(error)
    deeper = "def a():\n    if z:\n        x = 1\n\ndef b():\n    x = 1\n"
    assert updated(deeper, "@@ def a():", "-    x = 1", "+    x = 3") == deeper.replace("x = 1", "x = 3", 1)


def test_the_only_place_may_lie_beyond_the_block_of_its_anchor() -> None:
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
def test_what_is_below_a_line_is_its_block(content: str, anchor: str, expected: str) -> None:
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


def test_hunks_out_of_order_find_their_anchors() -> None:
    patch = ("@@ def b", "- x", "+ B", "@@ def a", "- x", "+ A")
    assert updated("def a\n x\ndef b\n x\n", *patch) == "def a\n A\ndef b\n B\n"


# Neighbours


def test_neighbouring_hunks_may_share_context() -> None:
    content = "".join(f"l{number}\n" for number in range(1, 8))
    hunks = ("@@", " l1", "-l2", "+L2", " l3", " l4", "@@", " l3", " l4", "-l5", "+L5", " l6")
    assert updated(content, *hunks) == content.replace("l2", "L2").replace("l5", "L5")


def test_what_an_earlier_hunk_takes_away_is_no_context() -> None:
    error = refused("a\nb\nc\n", "@@", "-b", "+B", "@@", " b", "-c", "+C")
    assert "it overlaps what an earlier hunk of the patch changes, at line 2; put both in one hunk" in str(error)


# Indentation


@pytest.mark.parametrize(
    ("content", "hunk", "expected"),
    [
        (
            "class A:\n    def f(self):\n        x = 1\n        return x\n",
            (" def f(self):", "-    x = 1", "+    x = 2", "+    if x:", "+        y = 3", "     return x"),
            "class A:\n    def f(self):\n        x = 2\n        if x:\n            y = 3\n        return x\n",
        ),
        (
            "def f():\n\tif a:\n\t\tx = 1\n",
            (" def f():", "     if a:", "-        x = 1", "+        x = 2", "+        y = 3"),
            "def f():\n\tif a:\n\t\tx = 2\n\t\ty = 3\n",
        ),
        (
            "jobs:\n    build:\n        steps:\n            - run: a\n",
            (" jobs:", "   build:", "     steps:", "       - run: a", "+        name: first"),
            "jobs:\n    build:\n        steps:\n            - run: a\n              name: first\n",
        ),
        (
            "    x = foo(a,\n            b)\n",
            (" x = foo(a,", "-        b)", "+        b,", "+        c)"),
            "    x = foo(a,\n            b,\n            c)\n",
        ),
    ],
    ids=["one step out", "spaces for tabs", "a list of YAML", "a continuation line"],
)
def test_lines_that_come_are_indented_like_those_around_them(
    content: str, hunk: tuple[str, ...], expected: str
) -> None:
    fs = filesystem(content)
    report = update(fs, "@@", *hunk)
    assert fs.read("/a").content == expected
    assert report.hunks[0].notes == ("its new lines were indented like the lines around them",)


def test_indentation_that_contradicts_itself_is_refused_with_both_lines() -> None:
    content = "class A:\n    def m(self):\n        x\n\ndef top():\n    y\n"
    error = refused(
        content, "@@", " def m(self):", "     x", " ", " def top():", "     y", "+", "+def new():", "+    z"
    )
    assert error.errors[0].file_lines == (3, 6)
    assert "the block of each new line is ambiguous" in str(error)


def test_lines_below_an_anchor_that_is_indented_otherwise_are_indented_or_refused() -> None:
    content = "class A:\n    def f(self):\n        x = 1\n"
    for added in ("+    y = 2", "+        y = 2"):
        assert updated(content, "@@ def f(self):", added) == content.replace("        x", "        y = 2\n        x")
    assert "lines is ambiguous" in str(refused(content, "@@ def f(self):", "+  y = 2"))


# Lines without a mark


def test_context_without_its_mark_is_taken_where_it_stands_to_the_letter() -> None:
    assert updated("a = 1\nb = 2\nc = 3\n", "@@", "a = 1", "-b = 2", "+b = 5", "c = 3") == "a = 1\nb = 5\nc = 3\n"
    content = "class A:\n    x = 1\n    y = 2\n"
    assert updated(content, "@@ class A:", "    x = 1", "-    y = 2", "+    y = 5") == content.replace("2", "5")
    fs = filesystem("a\nb\n")
    with pytest.raises(PatchParseError, match="'ax' has no mark") as caught:
        update(fs, "@@", "ax", "-b", "+c")
    assert caught.value.line == 4


def test_no_newline_at_end_of_file_means_what_it_means_to_git() -> None:
    unended = "\\ No newline at end of file"
    assert updated("a\nb\n", "@@", "-b", "+c", unended) == "a\nc"
    assert updated("a\nb", "@@", "-b", unended, "+c") == "a\nc\n"
    assert updated("a\nb", "@@", " a", "-b", unended, "+c", unended) == "a\nc"
    fs = filesystem("")
    apply_patch(fs, f"*** Begin Patch\n*** Add File: n\n+x\n{unended}\n*** End Patch")
    assert fs.read("/n").content == "x"


def test_an_underlined_heading_may_begin_with_a_word_of_one_letter() -> None:
    section = "{}\n=========\n\nport = 80\n\n"
    fs = InMemoryFilesystem()
    fs.write("/a", section.format("A guide") + section.format("The other"))
    apply_patch(fs, "*** Begin Patch\n*** Update File: a\n@@ A guide\n-port = 80\n+port = 8080\n*** End Patch\n")
    assert fs.read("/a").content == section.format("A guide").replace("80", "8080") + section.format("The other")
