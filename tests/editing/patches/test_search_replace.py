"""Reading SEARCH/REPLACE patches: file names, markers, and which line is at fault."""

from __future__ import annotations

import pytest

from tests.editing.patches.search_replace import PATCH, applied, block, filesystem, refused, text
from weakfs.backends import InMemoryFilesystem
from weakfs.editing import HunkFit, HunkRejected, PatchOps, PatchParseError, apply_patch
from weakfs.editing.patches.formats.search_replace import looks_like_search_replace


def test_blocks_change_several_files_and_the_report_says_how_each_matched() -> None:
    fs = filesystem(a="a\nb\nc\n", d="d\n")
    report = applied(fs, "a.txt\n" + block("b\n", "B\n") + block("c  \n", "C\n") + "d.txt\n" + block("d\n", "D\n"))

    assert (text(fs), text(fs, "/d.txt")) == ("a\nB\nC\n", "D\n")
    assert report.changed_paths == ("/a.txt", "/d.txt")
    assert report.ops == PatchOps(update=2)
    assert [(fit.path, fit.hunk, fit.line) for fit in report.hunks] == [
        ("/a.txt", 1, 2),
        ("/a.txt", 2, 7),
        ("/d.txt", 1, 13),
    ]
    assert [fit.fit == "exact" for fit in report.hunks] == [True, False, True]


@pytest.mark.parametrize(
    "name",
    [
        "a.txt",
        "./a.txt",
        "/a.txt",
        "`a.txt`",
        "**a.txt**",
        "**`a.txt`**",
        "**a.txt:**",
        "# a.txt",
        "### a.txt",
        "### `a.txt`:",
        "a.txt:",
        "`a.txt`:",
        "  a.txt  ",
        "a.txt\n",
        "a.txt\n\n```text\n",
        "```\na.txt",
        "Here is the change:\n\na.txt\n~~~",
        "---\n\na.txt\n---",
    ],
)
def test_a_file_name_may_be_written_as_models_write_it(name: str) -> None:
    fs = filesystem(a="b\n")
    applied(fs, f"{name}\n" + block("b\n", "B\n") + "```\nThat is all.\n")
    assert text(fs) == "B\n"


@pytest.mark.parametrize("name", ["my file.txt", "Then:", "ends with a dot."])
def test_a_name_in_backticks_is_taken_as_it_is(name: str) -> None:
    fs = InMemoryFilesystem()
    applied(fs, f"`{name}`\n" + block("", "x\n"))
    assert text(fs, f"/{name}") == "x\n"


@pytest.mark.parametrize(
    "line", ["Change a.txt as follows", "Done.", "Then:", "Now `a.txt`:", "```a.txt", "src/", "**"]
)
def test_text_above_a_block_that_may_be_prose_is_not_a_file_name(line: str) -> None:
    fs = filesystem(a="b\n")
    error = refused(fs, PATCH + f"{line}\n" + block("B\n", "C\n"))

    assert isinstance(error, PatchParseError)
    assert error.line == 7
    assert "put the file name on a line of its own" in str(error)


@pytest.mark.parametrize(
    "patch",
    [
        PATCH.replace("<<<<<<< SEARCH", "<<<<<<< ORIGINAL").replace(">>>>>>> REPLACE", ">>>>>>> UPDATED"),
        "a.txt\n" + block("b\n", "B\n", signs=5),
        "a.txt\n" + block("b\n", "B\n", signs=9),
        PATCH.replace("SEARCH\n", "SEARCH \t\n").replace("=======\n", "=======  \n").replace("REPLACE\n", "REPLACE "),
        PATCH.replace("=======", "======"),
        PATCH.replace("\n", "\r\n"),
        "\ufeff" + PATCH,
        PATCH.removesuffix("\n"),
    ],
)
def test_markers_may_be_written_in_other_ways(patch: str) -> None:
    fs = filesystem(a="a\nb\n")
    applied(fs, patch)
    assert text(fs) == "a\nB\n"


def test_a_block_is_applied_to_the_result_of_the_blocks_above_it() -> None:
    fs = filesystem(a="a\nb\n", d="d\n")
    blocks = ("a.txt\n" + block("b\n", "c\nd\n"), "d.txt\n" + block("d\n", "D\n"), "a.txt\n" + block("c\n", "b\n"))
    report = applied(fs, "".join(blocks))

    assert text(fs) == "a\nb\nd\n"
    assert [fit.hunk for fit in report.hunks] == [1, 2, 1]


def test_an_empty_replacement_removes_lines_with_their_line_endings() -> None:
    fs = filesystem(a="a\nb\nc\n", d="  d \ne\n", e="e")
    applied(fs, "a.txt\n" + block("b\n", "") + "d.txt\n" + block("d\n", "") + "e.txt\n" + block("e\n", ""))
    assert (text(fs), text(fs, "/d.txt"), text(fs, "/e.txt")) == ("a\nc\n", "e\n", "")


def test_an_empty_search_creates_a_file_that_later_blocks_can_change() -> None:
    fs = InMemoryFilesystem()
    report = applied(fs, "d/n.txt\n" + block("", "a\n\nb\n") + block("b\n", "c\n"))

    assert text(fs, "/d/n.txt") == "a\n\nc\n"
    assert report.hunks == (HunkFit("/d/n.txt", 2, 8, "exact"),)


@pytest.mark.parametrize("search", ["", "\n", "  \n"])
def test_an_empty_search_fills_an_empty_file_but_replaces_no_other(search: str) -> None:
    fs = filesystem(a="", d="\n")
    fs.chmod("/a.txt", 0o755)
    applied(fs, "a.txt\n" + block(search, "x\n"))
    assert (text(fs), fs.stat("/a.txt").mode) == ("x\n", 0o755)

    for name in ("a.txt", "d.txt"):
        error = refused(fs, f"{name}\n" + block(search, "y\n"))
        assert isinstance(error, HunkRejected)
        assert "give the lines to replace in SEARCH, or write the whole file with write_file" in str(error)


def test_an_empty_search_never_replaces_the_result_of_an_earlier_block() -> None:
    error = refused(InMemoryFilesystem(), "n\n" + block("", "x\n") + block("", "y\n"))
    assert isinstance(error, HunkRejected)
    assert error.line == 6


def test_an_empty_file_is_not_filled_if_nothing_may_be_replaced() -> None:
    fs = filesystem(a="")
    with pytest.raises(HunkRejected, match="must not be replaced"):
        apply_patch(fs, "a.txt\n" + block("", "x\n"), patch_format="search_replace", on_existing="reject")


def test_heading_underlines_with_another_number_of_signs_are_content() -> None:
    fs = filesystem(a="Title\n=====\n\ntext\n")
    applied(fs, "a.txt\n" + block("Title\n=====\n", "Heading\n=========\n"))
    assert text(fs) == "Heading\n=========\n\ntext\n"


def test_a_block_with_longer_markers_may_contain_blocks() -> None:
    inner = block("x\n", "y\n")
    fs = filesystem(a=f"example:\n{inner}")
    applied(fs, "a.txt\n" + block(inner, inner.replace("y", "z"), signs=9) + block("example:\n", "Example\n=====\n"))
    assert text(fs) == "Example\n=====\n" + inner.replace("y", "z")


def test_a_closing_marker_that_would_end_no_block_is_content() -> None:
    fs = filesystem(a="b\n")
    applied(fs, "a.txt\n" + block("b\n", "B\n>>>>>>> REPLACE\n", signs=5) + block("B\n", "=======\n", signs=6))
    assert text(fs) == "=======\n>>>>>>> REPLACE\n"


def test_markers_with_miscounted_signs_are_read() -> None:
    fs = filesystem(a="b\nc\n")
    patch = "a.txt\n" + block("b\n", "B\n").replace(">>>>>>>", ">>>>>>>>") + block("c\n", "C\n")
    applied(fs, patch.replace("=======", "======", 1))
    assert text(fs) == "B\nC\n"


def test_an_underline_outside_a_block_is_ignored() -> None:
    fs = filesystem(a="b\n")
    applied(fs, "Changes\n=======\n\n" + PATCH + "\nNotes\n=======\n")
    assert text(fs) == "B\n"


@pytest.mark.parametrize(
    ("patch", "line", "message"),
    [
        ("", 1, "there is no block in it"),
        ("some words\n", 1, "there is no block in it"),
        ("*** Begin Patch\n*** End Patch\n", 1, "it looks like a V4A patch: apply it with patch_format='v4a'"),
        ("\ndiff --git a/x b/x\n", 2, "it looks like a unified diff: apply it with patch_format='unified'"),
        ("--- a/x\n+++ b/x\n", 1, "it looks like a unified diff: apply it with patch_format='unified'"),
        (block("a\n", "b\n"), 1, "there is no file name above the first block"),
        ("```\n" + block("a\n", "b\n"), 2, "there is no file name above the first block"),
        ("a.txt\n" + block("b\n", "b\n"), 2, "SEARCH and REPLACE are the same"),
        ("a.txt\n" + block("b\r\n", "b\n"), 2, "SEARCH and REPLACE are the same"),
        ("a.txt\n" + block("", ""), 2, "the block has no text"),
        ("a.txt\n" + block("\n", "\n\n"), 2, "the block has no text"),
        ("a.txt\n<<<<<<< SEARCH\nb\n>>>>>>> REPLACE\n", 2, "has no '======='"),
        ("a.txt\n<<<<<<< SEARCH\nb\n", 2, "'=======' is missing: the patch was cut off"),
        ("a.txt\n<<<<<<< SEARCH\nb\n=======\nc\n", 2, "'>>>>>>> REPLACE' is missing: the patch was cut off"),
        ("a.txt\n<<<<<<< SEARCH\nb\n=======\nc\n" + PATCH, 2, "above the next one, on line 7"),
        ("a.txt\n<<<<<<< SEARCH\nb\n" + block("c\n", "d\n"), 2, "above the next one, on line 4"),
        ("a.txt\nb\n=======\nc\n>>>>>>> REPLACE\n", 5, "without a block that it ends"),
        (PATCH + ">>>>>>> REPLACE\n", 7, "without a block that it ends"),
        ("a.txt\n" + block("b\n=======\n", "c\n"), 2, "lines 4 and 5 of the patch may all divide the block"),
        ("a.txt\n" + block("b\n=====\nd\n=====\n", "c\n").replace("\n=======", ""), 2, "lines 4 and 6 of the patch"),
        (
            "a.txt\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>>> REPLACE\n<<<<< SEARCH\nd\n=====\n>>>>>>> REPLACE\n",
            2,
            "may end at line 6 or at line 10 of the patch",
        ),
    ],
)
def test_unreadable_patches_are_reported_with_the_line(patch: str, line: int, message: str) -> None:
    error = refused(filesystem(a="b\n"), patch)

    assert isinstance(error, PatchParseError)
    assert error.line == line
    assert f"line {line} of the patch: " in str(error)
    assert message in str(error)


def test_a_lone_surrogate_is_not_text() -> None:
    for patch in ("a.txt\n" + block("b\n", "\ud800\n"), "n\n" + block("", "\ud800\n")):
        assert isinstance(refused(filesystem(a="b\n"), patch), PatchParseError)
    assert isinstance(refused(filesystem(a="b\n"), "a.txt\n" + block("\ud800\n", "c\n")), HunkRejected)


def test_the_format_is_recognized_by_the_opening_line_of_a_block() -> None:
    assert looks_like_search_replace(PATCH)
    assert looks_like_search_replace(PATCH.replace("\n", "\r\n"))
    assert not looks_like_search_replace("+<<<<<<< SEARCH\n<<<<<<< HEAD\n=======\n>>>>>>> REPLACE\n")


@pytest.mark.parametrize(
    "patch",
    [
        "a.txt\n" + "<<<<<<< SEARCH\nb\n=======\n" * 20_000,
        "a.txt\n" + "=======\n" * 100_000,
        "a.txt\n" + "<<<<<<< SEARCH" + " " * 200_000 + "x\n",
        "```" + " " * 200_000 + ".\n" + block("b\n", "c\n"),
        "#" + " " * 200_000 + "\n" + block("b\n", "c\n"),
        "x" * 200_000 + ".\n" + block("b\n", "c\n"),
    ],
)
def test_a_long_text_that_is_not_a_patch_is_refused(patch: str) -> None:
    assert len(str(refused(filesystem(a="b\n"), patch))) < 2000


def test_many_blocks_are_applied_one_after_another() -> None:
    fs = filesystem(a="".join(f"{number}\n" for number in range(3000)))
    applied(fs, "a.txt\n" + "".join(block(f"{number}\n", f"x{number}\n") for number in range(0, 3000, 2)))
    assert text(fs).startswith("x0\n1\nx2\n3\n")
    assert text(fs).count("x") == 1500


@pytest.mark.parametrize(
    ("second", "line"),
    [
        ("<<<<<<< search\nc\n=======\nC\n>>>>>>> replace\n", 7),
        ("  <<<<<<< SEARCH\n  c\n  =======\n  C\n  >>>>>>> REPLACE\n", 7),
        ("> <<<<<<< SEARCH\n> c\n> =======\n> C\n> >>>>>>> REPLACE\n", 7),
        ("\na.txt\n<<<< SEARCH\nc\n====\nC\n>>>> REPLACE\n", 9),
        ("<<<<<<<<<< SEARCH\nc\n==========\nC\n>>>>>>>>>> REPLACE\n", 7),
        ("<<<<<<< HEAD\nc\n=======\nC\n>>>>>>> main\n", 7),
        ("<<<<<<< SEARCH:\nc\n=======\nC\n>>>>>>> REPLACE:\n", 7),
        ("c\n=======\nC\n>>>>>>> REPLACE!\n", 10),
        ("*** Begin Patch\n*** Update File: a.txt\n@@\n-c\n+C\n*** End Patch\n", 7),
        ("--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-c\n+C\n", 9),
    ],
)
def test_a_block_with_other_markers_is_not_left_out(second: str, line: int) -> None:
    error = refused(filesystem(a="b\nc\n"), PATCH + second)

    assert error.line == line
    assert "is in no block; begin each block with '<<<<<<< SEARCH'" in str(error)


def test_prose_with_signs_between_blocks_is_skipped() -> None:
    fs = filesystem(a="b\nc\n")

    applied(fs, f"{PATCH}\nSecond\n======\n>>> run()\n> as they said\n\na.txt\n" + block("c\n", "C\n"))

    assert text(fs) == "B\nC\n"
