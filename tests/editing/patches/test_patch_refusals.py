"""What the refusal of a hunk says: the line that differs, the nearest place, the anchors."""

from __future__ import annotations

import pytest

from tests.editing.patches.patched import refused


def test_a_refusal_names_the_first_line_that_differs_and_the_nearest_place() -> None:
    error = refused("one\ntwo\nthree\nfour\n", "@@ one", " two", " thre", "-four", "+x")
    assert str(error) == (
        "cannot apply the patch: /a: hunk 1 ('one'), line 3 of the patch, does not fit: its lines differ "
        "from those in the file; did you mean lines 2-4, in the block of its anchor 'one' (lines 1-4)? Line 3 differs: "
        "the file has 'three', the hunk has 'thre'.\n"
        "Copy the text exactly, without the line numbers:\n2 | two\n3 | three\n4 | four"
    )
    assert error.errors[0].file_lines == (2, 4)
    assert error.line == 3


def test_a_refusal_names_the_nearest_line_if_none_matches() -> None:
    error = refused("a\nport = 80  # default\nb\n", "@@", "-port = 80 # default", "+port = 1")
    assert "Line 2 differs only in white space: the file has 'port = 80  # default'" in str(error)
    assert "read the file again" in str(refused("a\n", "@@", "-something else", "+b"))


def test_a_refusal_names_the_first_line_that_is_not_in_the_file_if_nothing_is_similar() -> None:
    message = str(refused("}\nalpha\n", "@@", " }", "", "     gamma = compute()", "-delta", "+x"))
    assert "its lines differ from those in the file, which has no line 'gamma = compute()'; nothing" in message


@pytest.mark.parametrize(
    ("hunk", "says"),
    [
        (["", " a", "-b"], "begins with a blank line, and the file has none above line 3"),
        ([" y", "-z", "-", "+x"], "ends with a blank line, and the file has none below line 2"),
        ([" ", " ", " c", "-d"], "begins with 2 blank lines, and the file has 1 above line 6"),
        ([" c", "-d", "- "], "ends with a blank line, and the file has none below line 7"),
    ],
)
def test_a_refusal_names_blank_lines_around_a_hunk_that_the_file_does_not_have(hunk: list[str], says: str) -> None:
    message = str(refused("y\nz\na\nb\n\nc\nd\n", "@@", *hunk))

    assert f"The hunk {says}." in message


def test_a_hunk_that_was_already_applied_is_reported_as_such() -> None:
    assert "the new text is already there, on lines 1-2" in str(refused("a\nnew\n", "@@", " a", "-old", "+new"))


def test_all_hunks_that_do_not_fit_are_reported_together_up_to_ten() -> None:
    error = refused("a\n", *(line for number in range(20) for line in ("@@", f"-no {number}", "+x")))
    assert [problem.hunk for problem in error.errors] == list(range(1, 11))


def test_a_refusal_describes_the_last_reading_of_the_hunk() -> None:
    error = refused("1\n2\n3\n", "@@", "-3", "+c", "", "@@", "-1", "+a", "")
    assert "it fits at line 1, above the place of the hunk before it" in str(error)
    error = refused("1\n2\n3\n", "@@", " 1", "-q", "+2", "")
    assert "the new text is already there, on lines 1-2" in str(error)


def test_a_refusal_mentions_an_anchor_below_the_lines() -> None:
    error = refused("a\nx\nb\ndef g\n", "@@ def g", "-x", "+y")
    assert "its lines are at line 2, and its anchor 'def g' is at line 4, below them" in str(error)
    assert error.errors[0].file_lines == (2, 4)


def test_a_refusal_of_added_lines_mentions_only_their_anchors() -> None:
    message = str(refused("class A:\nb\n", "@@ class A:", "@@ def nowhere():", "+x"))
    assert message.endswith(
        "its anchor 'def nowhere():' is not in the file; name lines of the file, each below the one before it"
    )
    message = str(refused("b\nclass A:\n", "@@ class A:", "@@ b", "+x"))
    assert "its anchor 'b' is not in the block of 'class A:', line 2, but at line 1" in message


def test_the_nearest_place_may_differ_in_typographic_characters() -> None:
    error = refused("\u201cx\u201d\nb\n", "@@", "-b", "+c", "@@", '-"x"', "+q")
    assert "it fits at line 1, above the place of the hunk before it" in str(error)
    error = refused("q\n\u201cx\u201d\nb\n", "@@", '-"x"', "-c")
    assert "did you mean lines 2-3? Line 3 differs: the file has 'b', the hunk has 'c'" in str(error)
