"""Comparing and merging by lines: against dynamic programming, against plain edits, and within a bound."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.cost import lines_of
from tests.models.merging import merge_lines
from tests.sampling import share
from weakfs.reducers.merging import line_merge as lines
from weakfs.reducers.merging.line_merge import (
    Match,
    TooMuchWork,
    common_ends,
    matches,
    split_lines,
    without_common_ends,
)

TEXT = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=12)


def longest(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    """Return the length of a longest common subsequence, by dynamic programming."""
    row = [0] * (len(b) + 1)
    for item in a:
        above = row
        row = [0]
        for j, other in enumerate(b):
            row.append(above[j] + 1 if item == other else max(above[j + 1], row[j]))
    return row[-1]


def check(a: Sequence[bytes], b: Sequence[bytes], found: list[Match]) -> None:
    """Check that stretches are in order, equal on both sides, and as long and as many as possible."""
    i = j = total = 0
    for x, y, length in found:
        assert length > 0
        assert x >= i
        assert y >= j
        assert not total or (x, y) != (i, j), "two stretches that are one"
        assert x + length <= len(a)
        assert list(a[x : x + length]) == list(b[y : y + length])
        i, j, total = x + length, y + length, total + length
    assert total == longest(a, b)


@settings(deadline=None, derandomize=True, max_examples=share(500))
@given(TEXT, TEXT)
def test_matches_are_a_longest_common_subsequence(a: list[bytes], b: list[bytes]) -> None:
    check(a, b, matches(a, b))


@pytest.mark.parametrize("seed", range(60))
def test_matches_are_a_longest_common_subsequence_of_longer_texts(seed: int) -> None:
    random = Random(seed)
    alphabet = [b"%d" % number for number in range(random.choice((1, 2, 3, 8, 50)))]
    a = [random.choice(alphabet) for _ in range(random.randint(0, 120))]
    if seed % 2:
        b = list(a)
        for _ in range(random.randint(0, 30)):
            at = random.randint(0, len(b))
            b[at : at + random.randint(0, 2)] = random.choices(alphabet, k=random.randint(0, 2))
    else:
        b = [random.choice(alphabet) for _ in range(random.randint(0, 120))]
    check(a, b, matches(a, b))
    check(b, a, matches(b, a))


@given(st.text("a\nb", max_size=12), st.text("a\nb", max_size=12))
@settings(max_examples=share(1000))
def test_without_common_ends_removes_only_whole_lines(old: str, new: str) -> None:
    a, b = old.encode(), new.encode()
    found = without_common_ends(a, b)
    gone = len(a) - len(found[0])
    assert gone == len(b) - len(found[1])
    # The lines that match are those that matched before, except for the ends.
    whole = sum(length for _, _, length in matches(split_lines(a), split_lines(b)))
    rest = sum(length for _, _, length in matches(split_lines(found[0]), split_lines(found[1])))
    lines_gone = len(split_lines(a)) - len(split_lines(found[0]))
    assert lines_gone == len(split_lines(b)) - len(split_lines(found[1]))
    assert rest + lines_gone == whole


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (b"\na", b"\nb", (b"a", b"b")),
        (b"a\nb\n", b"a\nc\n", (b"b\n", b"c\n")),
        (b"b\na\n", b"c\na\n", (b"b\n", b"c\n")),
        (b"same\n", b"same\n", (b"", b"")),
    ],
)
def test_without_common_ends_leaves_no_common_whole_line_at_either_end(
    old: bytes, new: bytes, wanted: tuple[bytes, bytes]
) -> None:
    assert without_common_ends(old, new) == wanted


@pytest.mark.parametrize("length", [0, 1, lines.CHUNK - 1, lines.CHUNK, 3 * lines.CHUNK + 5])
def test_common_ends_never_overlap(length: int) -> None:
    same = "a" * length
    assert common_ends(same, same) == (length, 0)
    assert common_ends(same, same + "aa") == common_ends(same + "aa", same) == (length, 0)
    assert common_ends(f"{same}bcX", f"{same}bYcX") == (length + 1, 2)
    assert common_ends(f"X{same}", f"Y{same}") == (0, length)
    assert common_ends([*same, "b"], [*same, "c", "b"]) == (length, 1)


def test_common_ends_longer_than_a_chunk_are_matched_as_one_run() -> None:
    same = [b"%d\n" % number for number in range(3 * lines.CHUNK + 5)]
    assert matches([*same, b"x\n", *same], [*same, b"y\n", b"z\n", *same]) == [
        (0, 0, len(same)),
        (len(same) + 1, len(same) + 2, len(same)),
    ]
    assert matches(same, same) == [(0, 0, len(same))]


def test_lines_are_split_at_newlines_only_and_join_to_the_same() -> None:
    assert split_lines(b"") == []
    assert split_lines(b"a") == [b"a"]
    assert split_lines(b"a\n\nb\r\n\x0c\xe2\x80\xa8c") == [b"a\n", b"\n", b"b\r\n", b"\x0c\xe2\x80\xa8c"]


@settings(deadline=None, derandomize=True, max_examples=share(300))
@given(TEXT, TEXT, TEXT, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_merging_is_symmetric_and_one_sided_changes_always_merge(
    base: list[bytes], ours: list[bytes], theirs: list[bytes], cut: tuple[bool, bool, bool]
) -> None:
    texts = [b"".join(text)[: -1 if short else None] for text, short in zip((base, ours, theirs), cut, strict=True)]
    old, mine, other = texts
    merged = merge_lines(old, mine, other)
    assert merge_lines(old, other, mine) == merged
    assert merge_lines(old, mine, old) == mine
    assert merge_lines(old, old, other) == other
    assert merge_lines(old, mine, mine) == mine


# Changes of a text whose lines are all different: (start, stop, replacement) in lines of the base.
Edit = tuple[int, int, tuple[bytes, ...]]


def random_edits(random: Random, count: int, side: bytes) -> list[Edit]:
    """Make changes with an untouched line between any two, so that each one stays a change of its own."""
    edits: list[Edit] = []
    at = random.randint(0, 3)
    while at <= count:
        stop = min(at + random.choice((0, 0, 1, 2)), count)
        new = tuple(b"%s %d %d\n" % (side, at, k) for k in range(random.randint(0 if stop > at else 1, 2)))
        edits.append((at, stop, new))
        at = stop + random.randint(1, 6)
    return edits


def applied(base: list[bytes], edits: list[Edit]) -> bytes:
    result = list(base)
    for start, stop, new in sorted(edits, reverse=True):
        result[start:stop] = new
    return b"".join(result)


def collide(one: Edit, other: Edit) -> bool:
    if one[0] == one[1] and other[0] == other[1]:
        return one[0] == other[0]
    return one[0] < other[1] and other[0] < one[1]


def touch(one: Edit, other: Edit) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


@pytest.mark.parametrize("seed", range(150))
def test_changes_to_different_lines_merge_and_changes_to_the_same_lines_conflict(seed: int) -> None:
    random = Random(seed)
    base = [b"line %d\n" % number for number in range(random.randint(0, 25))]
    ours, theirs = random_edits(random, len(base), b"ours"), random_edits(random, len(base), b"theirs")
    if seed % 3 == 0:
        theirs = [edit for edit in theirs if not any(collide(edit, mine) for mine in ours)]
    shared = [edit for edit in ours if random.random() < 0.3]
    theirs = sorted({*(edit for edit in theirs if not any(touch(edit, mine) for mine in shared)), *shared})
    merged = merge_lines(b"".join(base), applied(base, ours), applied(base, theirs))
    if any(collide(mine, other) and mine != other for mine in ours for other in theirs):
        assert merged is None
    else:
        assert merged == applied(base, list({*ours, *theirs}))


CASES: dict[str, tuple[bytes, bytes, bytes, bytes | None]] = {
    "adjacent ranges": (b"1\n2\n3\n", b"one\n2\n3\n", b"1\ntwo\n3\n", b"one\ntwo\n3\n"),
    "a change and an insertion after it": (b"1\n2\n", b"one\n2\n", b"1\nnew\n2\n", b"one\nnew\n2\n"),
    "a change and an insertion before it": (b"1\n2\n", b"1\ntwo\n", b"1\nnew\n2\n", b"1\nnew\ntwo\n"),
    "insertions at one point": (b"1\n2\n", b"1\na\n2\n", b"1\nb\n2\n", None),
    "the same insertion": (b"1\n2\n", b"1\na\n2\n", b"1\na\n2\n", b"1\na\n2\n"),
    "insertions at both ends": (b"1\n", b"0\n1\n", b"1\n2\n", b"0\n1\n2\n"),
    "the same line": (b"1\n", b"a\n", b"b\n", None),
    "the same change": (b"1\n2\n", b"a\n2\n", b"a\n2\n", b"a\n2\n"),
    "the same change and another": (b"1\n2\n3\n", b"a\n2\n3\n", b"a\n2\nc\n", b"a\n2\nc\n"),
    "deleted and changed": (b"1\n2\n", b"2\n", b"one\n2\n", None),
    "deleted beside": (b"1\n2\n3\n", b"2\n3\n", b"1\n2\nthree\n", b"2\nthree\n"),
    "deleted here, inserted inside there": (b"1\n2\n", b"", b"1\nnew\n2\n", None),
    "all deleted by both": (b"1\n2\n", b"", b"", b""),
    "both fill an empty file": (b"", b"a\n", b"b\n", None),
    "one fills an empty file": (b"", b"a\n", b"", b"a\n"),
    "a last line without a newline stays so": (b"1\n2", b"one\n2", b"1\n2", b"one\n2"),
    "another line before a last one without a newline": (b"1\n2", b"one\n2", b"1\nnew\n2", b"one\nnew\n2"),
    "only one side adds the final newline": (b"1\n2", b"one\n2", b"1\n2\n", b"one\n2\n"),
    "only one side removes the final newline": (b"1\n2\n", b"one\n2\n", b"1\n2", b"one\n2"),
    "one appends, the other adds the final newline": (b"1", b"1\n2", b"1\n", None),
    "one removes the final newline, the other appends": (b"1\n", b"1", b"1\n2\n", None),
    "both append to a file that ends without a newline": (b"1", b"1\n2", b"1\n3", None),
    "carriage returns are part of the line": (b"1\r\n2\r\n", b"1\n2\r\n", b"1\r\ntwo\r\n", b"1\ntwo\r\n"),
}


@pytest.mark.parametrize(("base", "ours", "theirs", "wanted"), CASES.values(), ids=CASES)
def test_merges_have_the_results_in_the_table(base: bytes, ours: bytes, theirs: bytes, wanted: bytes | None) -> None:
    assert merge_lines(base, ours, theirs) == wanted
    assert merge_lines(base, theirs, ours) == wanted


def salted(count: int, salt: int, seed: int) -> list[bytes]:
    """Return equal lines with others scattered among them: every diagonal of the comparison has long equal runs."""
    text = [b"x\n"] * count
    for at in sorted(Random(seed).sample(range(count), salt)):
        text[at] = b"y\n"
    return text


def noise(count: int, seed: int) -> list[bytes]:
    random = Random(seed)
    return [b"%d\n" % random.randrange(3) for _ in range(count)]


@pytest.mark.parametrize(
    ("a", "b", "work"),
    [
        (noise(4000, 1), noise(4000, 2), 20_000),
        (salted(4000, 300, 1), salted(4000, 300, 2), 20_000),
        (salted(50_000, 300, 1), salted(50_000, 300, 2), 200_000),
        ([b"a\n", b"b\n"] * 5000, [b"b\n", b"b\n", b"a\n"] * 3000, 20_000),
    ],
    ids=["noise", "equal lines with others scattered among them", "long", "periodic"],
)
def test_comparing_repetitive_texts_ends_within_the_bound_or_gives_up(
    a: list[bytes], b: list[bytes], work: int
) -> None:
    def compare() -> None:
        with suppress(TooMuchWork):
            matches(a, b, work=work)

    count = lines_of(compare, lines)
    # Some lines of code for each step of the comparison, and some for each line of the texts.
    assert count < 12 * work + 25 * (len(a) + len(b))


def test_comparing_four_thousand_repetitive_lines_gives_up_instead_of_hanging() -> None:
    with pytest.raises(TooMuchWork):
        matches(noise(4000, 1), noise(4000, 2), work=50_000)
    with pytest.raises(TooMuchWork):
        merge_lines(*(b"".join(noise(4000, seed)) for seed in (1, 2, 3)), work=50_000)


def test_long_texts_with_few_changes_merge_however_small_the_bound() -> None:
    base = [b"%d\n" % number for number in range(50_000)]
    ours, theirs = list(base), list(base)
    ours[100] = b"ours\n"
    theirs[40_000] = b"theirs\n"
    merged = merge_lines(b"".join(base), b"".join(ours), b"".join(theirs), work=1000)
    assert merged is not None
    assert b"\nours\n" in merged
    assert b"\ntheirs\n" in merged


def test_texts_with_nothing_in_common_cost_no_comparison() -> None:
    assert matches([b"a%d" % n for n in range(9000)], [b"b%d" % n for n in range(9000)], work=10) == []
