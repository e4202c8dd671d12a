"""The place nearest to a quote: where it is found, how wide it is, and how the first difference is described."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.editing.hints.alignment import SLACK, Aligner, Alignment
from weakfs.editing.hints.diagnosis import Diagnosis, QuotedFile, Subject
from weakfs.editing.hints.similarity import loose

NUMBERED = [f"value_{number} = compute({number})" for number in range(400)]


def nearest(lines: list[str], old: list[str], near: int = 0, within: tuple[tuple[int, int], ...] = ()) -> Alignment:
    rows, quoted = (loose("\n".join(text)).split("\n") for text in (lines, old))
    found = Aligner(lines, rows, old, quoted, near).nearest(within)
    assert found is not None
    return found


def diagnosis(lines: list[str], old: list[str], new: str = "") -> Diagnosis:
    return QuotedFile("\n".join(lines)).diagnose(Subject("\n".join(old), new, "the hunk", counts_blanks=True))


def test_omitted_lines_do_not_shift_the_rest() -> None:
    old = [*NUMBERED[100:103], *NUMBERED[106:109], "value_109 = other(109)", *NUMBERED[110:112]]

    found = nearest(NUMBERED, old)

    assert (found.start, found.stop) == (100, 112)
    assert found.pairs == tuple(zip([*range(100, 103), *range(106, 112)], range(9), strict=True))


def test_a_distant_line_does_not_widen_the_place() -> None:
    found = nearest(NUMBERED, [*NUMBERED[10:14], NUMBERED[390], *NUMBERED[15:17]])

    assert (found.start, found.stop) == (10, 17)


def test_a_rare_line_counts_for_more_than_common_ones() -> None:
    common = ["    }", "  }", "}", ""] * 50
    lines = [*common, "the only line of its kind", "}", *common]

    found = nearest(lines, ["    }", "the only line of its kind", "  }"])

    assert found.start <= lines.index("the only line of its kind") < found.stop <= found.start + 2 * 3 + SLACK


def test_the_place_begins_and_ends_with_lines_of_the_quote() -> None:
    lines = [*NUMBERED[:20], "alpha()", "unrelated text", "omega()", *NUMBERED[20:]]

    found = nearest(lines, ["zzz qqq", "alpha()", "??", "omega()", "xxx"])

    assert (lines[found.start], lines[found.stop - 1]) == ("alpha()", "omega()")


def test_among_equal_places_those_in_the_block_come_first_and_then_the_nearest() -> None:
    lines = ["def a():", "    x = 1", "    y = 2"] * 5
    old = ["    x = 1", "    y = 3"]

    assert nearest(lines, old).start == 1
    assert nearest(lines, old, near=9).start == 10
    assert nearest(lines, old, near=9, within=((3, 6),)).start == 4


words = st.sampled_from(["alpha()", "beta = 1", "}", "", "    return beta", "gamma", "value_1", "value_2"])


@settings(max_examples=share(200))
@given(st.lists(words, min_size=1, max_size=60), st.lists(words, min_size=1, max_size=12), st.integers(0, 60))
def test_a_place_is_narrow_and_its_pairs_increase_on_both_sides(lines: list[str], old: list[str], near: int) -> None:
    rows, quoted = (loose("\n".join(text)).split("\n") for text in (lines, old))

    found = Aligner(lines, rows, old, quoted, near).nearest()

    if found is not None:
        assert 0 <= found.start < found.stop <= len(lines)
        assert found.stop - found.start <= 2 * len(old) + SLACK
        assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(found.pairs))
        assert all(found.start <= line < found.stop and place < len(old) for line, place in found.pairs)


def test_a_line_that_is_elsewhere_is_not_reported_as_missing() -> None:
    said = diagnosis(["alpha = 1", "beta = 2", "gamma = 3", "omega = 4"], ["alpha = 1", "omega = 4", "gamma = 3"])

    assert "'omega = 4', which is on line 4 of the file" in said.reason
    assert "no such line" not in said.reason


def test_a_line_that_is_nowhere_is_reported_as_missing() -> None:
    said = diagnosis(["alpha = 1", "beta = 2"], ["alpha = 1", "something(else_)", "beta = 2"])

    assert "The hunk has 'something(else_)' below line 1, and the file has no such line" in said.reason


@pytest.mark.parametrize("wanted", ["    return None", "}", "    ];", "    pass"])
def test_common_new_lines_are_not_mistaken_for_the_change(wanted: str) -> None:
    said = diagnosis(["def f():", wanted, "def g():", "    stop(now)"], ["    stopp(now)"], wanted)

    assert said.hint == "similar"


def test_short_new_lines_with_context_at_the_nearest_place_count_as_the_change() -> None:
    said = diagnosis(["a = 1", "b = 2", "c = 3"], ["a = 1", "b = 1"], "a = 1\nb = 2")

    assert (said.hint, said.lines) == ("already_applied", (1, 2))


def test_a_long_quote_is_compared_completely() -> None:
    lines = [f"line {number} of the file" for number in range(2000)]

    said = diagnosis(lines, [*lines[:1500], "another line", *lines[1501:1700]])

    assert "Line 1501 differs: the file has 'line 1500 of the file', the hunk has 'another line'" in said.reason


def test_no_answer_is_long() -> None:
    lines = ["x" * 5000 + str(number) for number in range(50)]

    said = diagnosis(lines, [*lines[:20], "x" * 5000, *lines[21:40]])

    assert len(said.reason) < 1500
