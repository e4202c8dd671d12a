"""What a V4A patch preserves in a text: line endings, the last newline, indentation and byte order marks."""

from __future__ import annotations

import pytest

from tests.editing.patches.patched import filesystem, refused, update, updated
from weakfs.editing import PatchParseError, UpdateTargetNotText, apply_patch


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
def test_line_endings_the_byte_order_mark_and_a_missing_newline_are_kept(
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
def test_using_the_first_place_does_not_affect_the_final_newline(
    content: str, hunk: tuple[str, ...], expected: str
) -> None:
    fs = filesystem(content)
    patch = "\n".join(("*** Begin Patch", "*** Update File: a", *hunk, "*** End Patch"))
    apply_patch(fs, patch, on_ambiguous="first", final_newline="add")
    assert fs.read_bytes("/a").content.decode() == expected


def test_a_file_that_is_not_text_is_refused_with_the_offset() -> None:
    fs = filesystem(b"a\xff\n")
    with pytest.raises(UpdateTargetNotText, match="byte at offset 1 is not UTF-8") as caught:
        update(fs, "@@", "-a", "+b")
    assert (caught.value.status, caught.value.error_code) == ("error", "update_target_non_utf8")


@pytest.mark.parametrize("hunk", [("@@", "-a", "+\udc80"), ("@@ a", "+\ud800")])
def test_a_lone_surrogate_is_refused_with_the_line(hunk: tuple[str, ...]) -> None:
    fs = filesystem("a\n")
    with pytest.raises(PatchParseError, match="half of a surrogate pair into '/a'") as caught:
        update(fs, *hunk)
    assert caught.value.line == 3
    assert fs.read("/a").content == "a\n"
    refused("a\n", "@@", "-\udc80", "+b")


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
    ids=["one step further out", "spaces for tabs", "a list of YAML", "a continuation line"],
)
def test_added_lines_are_indented_like_their_surroundings(content: str, hunk: tuple[str, ...], expected: str) -> None:
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


def test_lines_below_an_anchor_with_other_indentation_are_indented_or_refused() -> None:
    content = "class A:\n    def f(self):\n        x = 1\n"
    for added in ("+    y = 2", "+        y = 2"):
        assert updated(content, "@@ def f(self):", added) == content.replace("        x", "        y = 2\n        x")
    assert "lines is ambiguous" in str(refused(content, "@@ def f(self):", "+  y = 2"))


def test_context_without_its_mark_is_accepted_if_it_matches_exactly() -> None:
    assert updated("a = 1\nb = 2\nc = 3\n", "@@", "a = 1", "-b = 2", "+b = 5", "c = 3") == "a = 1\nb = 5\nc = 3\n"
    content = "class A:\n    x = 1\n    y = 2\n"
    assert updated(content, "@@ class A:", "    x = 1", "-    y = 2", "+    y = 5") == content.replace("2", "5")
    fs = filesystem("a\nb\n")
    with pytest.raises(PatchParseError, match="'ax' has no mark") as caught:
        update(fs, "@@", "ax", "-b", "+c")
    assert caught.value.line == 4


def test_no_newline_at_end_of_file_has_the_meaning_of_git() -> None:
    unended = "\\ No newline at end of file"
    assert updated("a\nb\n", "@@", "-b", "+c", unended) == "a\nc"
    assert updated("a\nb", "@@", "-b", unended, "+c") == "a\nc\n"
    assert updated("a\nb", "@@", " a", "-b", unended, "+c", unended) == "a\nc"
    fs = filesystem("")
    apply_patch(fs, f"*** Begin Patch\n*** Add File: n\n+x\n{unended}\n*** End Patch")
    assert fs.read("/n").content == "x"


def test_only_the_last_line_of_a_hunk_can_lack_a_newline() -> None:
    unended = "\\ No newline at end of file"
    assert updated("a\nb\nc\n", "@@", "-b", "+B", unended, " c") == "a\nB\nc\n"
    assert updated("a\nb\nc\nd\n", "@@", "-b", unended, "+B", " c") == "a\nB\nc\nd\n"
    assert updated("a\nb\nc", "@@", " b", unended, "+B", "-c") == "a\nb\nB"
