"""Where a hunk of a V4A patch goes: the lines that it quotes, and lines that it only adds."""

from __future__ import annotations

import pytest

from tests.editing.patches.patched import TWICE, filesystem, refused, update, updated
from weakfs.editing import PatchParseError, apply_patch


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
def test_context_is_matched_more_and_more_loosely_and_stays_unchanged(
    content: str, hunk: tuple[str, ...], expected: str, fit: str
) -> None:
    fs = filesystem(content)
    report = update(fs, *hunk)
    assert fs.read("/a").content == expected
    assert [one.fit for one in report.hunks] == [fit]


def test_an_exact_match_is_preferred_to_a_looser_one() -> None:
    assert updated("  a\na\n", "@@", "-a", "+x") == "  a\nx\n"


def test_letters_and_case_are_never_folded() -> None:
    refused("A\n", "@@", "-a", "+x")


def test_hunks_are_searched_after_the_previous_one() -> None:
    assert updated("a\nb\na\nb\n", "@@", " a", " b", " a", "-b", "+x") == "a\nb\na\nx\n"
    assert updated("h\na\nz\na\n", "@@", " h", "-a", "+1", "@@", "-a", "+2") == "h\n1\nz\n2\n"


def test_a_hunk_out_of_order_is_refused_with_the_place_where_it_fits() -> None:
    error = refused("a\nb\n", "@@", "-b", "+x", "@@", "-a", "+y")
    assert "hunk 2" in str(error)
    assert "it fits at line 1, above the place of the hunk before it" in str(error)


def test_the_first_hunk_needs_no_marker() -> None:
    assert updated("a\nb\n", " a", "-b", "+c") == "a\nc\n"


def test_an_empty_line_is_blank_context() -> None:
    assert updated("a\n\nb\n", "@@", " a", "", "-b", "+c") == "a\n\nc\n"


def test_an_empty_line_below_a_hunk_may_be_ignored() -> None:
    assert updated("a\nb\n", "@@", "-a", "+c", "", "") == "c\nb\n"
    assert updated("a\n\nb\na\n", "@@", "-a", "+c", "") == "c\n\nb\na\n"


def test_empty_lines_above_the_first_hunk_are_context_if_they_fit() -> None:
    assert updated("x\n\nx\n", "", "-x", "+y") == "x\n\ny\n"
    assert updated("x\n\n\nx\n\nx\n", "", "", "-x", "+y") == "x\n\n\ny\n\nx\n"
    assert updated("a\nx\n", "", "-x", "+y", "") == "a\ny\n"
    assert updated("x\na\n\nx\n", "", "@@ x", "-a", "+y") == "x\ny\n\nx\n"
    assert updated("x\n\na\n", "", "+y") == "x\n\na\ny\n"
    refused("x\nx\n", "", "-x", "+y")


@pytest.mark.parametrize(("hunk", "line"), [(("@@", ""), 3), (("@@ zz", "", ""), 3), (("@@", "-A", "+B", "@@", ""), 6)])
def test_a_hunk_of_empty_lines_without_a_match_has_no_lines(hunk: tuple[str, ...], line: int) -> None:
    fs = filesystem("A\nb\n")
    with pytest.raises(PatchParseError, match="the hunk has no lines") as caught:
        update(fs, *hunk)
    assert caught.value.line == line
    assert fs.read("/a").content == "A\nb\n"


def test_a_hunk_of_empty_lines_may_be_context() -> None:
    assert updated("x\n\nx\n", "@@", "", "@@", "-x", "+y") == "x\n\ny\n"


def test_added_lines_are_not_attracted_by_a_blank_line() -> None:
    assert updated("a\n\nb\n", "@@ b", "+c", "") == "a\n\nb\nc\n"
    assert updated("a\n\nb\n", "@@", "+c", "") == "a\n\nb\nc\n"


def test_an_end_of_file_marker_ties_a_hunk_to_the_end() -> None:
    assert updated("a\nb\na\n", "@@", "-a", "+x", "*** End of File") == "a\nb\nx\n"
    error = refused("a\nb\n", "@@", "-a", "+x", "*** End of File")
    assert "not the last ones of the file" in str(error)


def test_a_hunk_that_fits_in_several_places_is_refused_with_all_of_them() -> None:
    error = refused(TWICE, "@@", "-        x = 1", "+        x = 2")
    assert error.errors[0].file_lines == (3, 7)
    assert "at lines 3, 7" in str(error)


def test_the_first_place_is_used_on_request() -> None:
    fs = filesystem(TWICE)
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-        x = 1\n+        x = 2\n*** End Patch"
    apply_patch(fs, patch, on_ambiguous="first")
    assert fs.read("/a").content == TWICE.replace("x = 1", "x = 2", 1)


def test_added_lines_go_after_their_anchor_or_to_the_end() -> None:
    assert updated("a\nb\nc\n", "@@ a", "+x", "+y") == "a\nx\ny\nb\nc\n"
    assert updated("a\nb\n", "@@", "+x") == "a\nb\nx\n"
    assert "its anchor 'nowhere' is not in the file" in str(refused("a\nb\n", "@@ nowhere", "+x"))
    assert updated("a\nb\n", "@@ nowhere", "+x", "*** End of File") == "a\nb\nx\n"
    assert updated("a\nb\n", "@@ a", "+x", "*** End of File") == "a\nb\nx\n"


def test_lines_added_at_the_end_do_not_prevent_later_hunks_from_matching() -> None:
    assert updated("a\nb\n", "@@", "+x", "@@", "-a", "+y") == "y\nb\nx\n"


def test_lines_added_after_an_ambiguous_anchor_are_refused() -> None:
    error = refused("a\nb\na\n", "@@ a", "+x")
    assert error.errors[0].file_lines == (1, 3)


def test_lines_may_be_added_after_an_anchor_above_the_previous_hunk() -> None:
    content = "def f\n x\ndef g\n y\n"
    assert updated(content, "@@ def f", "- x", "+ X", "@@ def f", "+ new") == "def f\n new\n X\ndef g\n y\n"
    refused(content, "@@ def f", "- x", "+ X", "@@ deff", "+ new")
    assert updated("a\nb\n", "@@", "-b", "+c", "@@ a", "+x", "*** End of File") == "a\nc\nx\n"


def test_neighboring_hunks_may_share_context() -> None:
    content = "".join(f"l{number}\n" for number in range(1, 8))
    hunks = ("@@", " l1", "-l2", "+L2", " l3", " l4", "@@", " l3", " l4", "-l5", "+L5", " l6")
    assert updated(content, *hunks) == content.replace("l2", "L2").replace("l5", "L5")


def test_lines_that_an_earlier_hunk_removes_are_not_context() -> None:
    error = refused("a\nb\nc\n", "@@", "-b", "+B", "@@", " b", "-c", "+C")
    assert "it overlaps what an earlier hunk of the patch changes, at line 2; put both in one hunk" in str(error)
