"""The generators of edit examples: the expected result is that of the plain edit."""

from __future__ import annotations

from random import Random

from benchmarks.edits.ambiguity import ambiguous_lines, is_decidable, movable_lines
from benchmarks.edits.blocks import Block, Line, random_edit, random_range
from benchmarks.edits.calls import Hunk, edit_file
from benchmarks.edits.corpus import Source, small_corpus
from benchmarks.edits.counts import Counts
from benchmarks.edits.example import Edit, Example, describe, judge
from benchmarks.edits.families import FAMILIES, Examples
from benchmarks.edits.mistakes import EXACT, clipped
from benchmarks.edits.placements import applied, has_several_results, places, undecided
from benchmarks.edits.repetitive import repetitive
from benchmarks.edits.wellformed import cut, edited

STORE = Source(
    "store.py",
    "python",
    ("class Store:", "    size = 0", "", "", "def total(stores):", "    found = 0", "    return found"),
    "    ",
)


def test_the_expected_edit_is_the_result_of_an_exact_call() -> None:
    corpus, rng, seen = small_corpus(), Random(5), 0
    while seen < 200:
        source = corpus.choose(rng)
        chosen = source and random_range(rng, source, 2, 25)
        block = random_edit(rng, source, *chosen) if source and chosen else None
        if block is None or not block.is_unique:
            continue
        call = edit_file(block.lines, ends=seen % 2 == 0)

        assert block.source.text.count(call.old) == 1
        assert block.source.text.replace(call.old, call.new).split("\n")[:-1] == list(block.result)
        seen += 1


def test_the_hunks_of_an_edit_applied_where_they_were_cut_give_the_expected_edit() -> None:
    rng = Random(7)
    for number in range(300):
        source = repetitive(rng)
        lines = edited(rng, source)
        hunks = cut(lines, number % 4, merge_below=rng.choice((0, 2 * (number % 4))))

        starts = [hunk.start for hunk in hunks]
        assert applied(source.lines, hunks, starts) == tuple(line.text for line in lines if line.mark != "-")
        assert all(hunk.start in places(source.lines, hunk) for hunk in hunks)


def test_examples_are_the_same_for_the_same_seed() -> None:
    corpus = small_corpus()
    for kind in FAMILIES:
        first = list(Examples(kind, corpus, seed=3).first(20))
        assert first == list(Examples(kind, small_corpus(), seed=3).first(20))
        number = int(first[7].name.rpartition("/")[2])
        assert list(Examples(kind, corpus, seed=3).named([number])) == [first[7]]


def test_a_statement_that_may_be_the_last_of_a_function_or_follow_it_is_undecidable() -> None:
    kept = tuple(Line(" ", line) for line in STORE.lines[4:])
    block = Block(STORE, 4, 7, (*kept, Line("+", "    extra = 1", inserted=True)))
    mistake = clipped(STORE.unit)
    quoted = mistake.quote(block.lines)

    assert quoted is not None
    assert not is_decidable(block, quoted, mistake)
    assert is_decidable(block, block.lines, EXACT)


def test_a_function_after_a_clipped_one_is_decidable() -> None:
    kept = tuple(Line(" ", line) for line in STORE.lines[1:])
    added = ("", "", "def added(value):", "    return value")
    block = Block(STORE, 1, 7, (*kept, *(Line("+", text, inserted=True) for text in added)))
    mistake = clipped(STORE.unit)
    quoted = mistake.quote(block.lines)

    assert quoted is not None
    assert {line.text for line in quoted if line.inserted} == {"", "def added(value):", "return value"}
    assert is_decidable(block, quoted, mistake)


def test_a_line_that_may_replace_either_of_two_is_undecidable() -> None:
    removed = [Line("-", line) if line.strip() else Line(" ", line) for line in STORE.lines[1:5]]
    changed = Line("+", "def sum(stores):")
    block = Block(STORE, 0, 6, (Line(" ", STORE.lines[0]), removed[0], removed[3], changed, Line(" ", "    found = 0")))
    mistake = clipped(STORE.unit)
    quoted = mistake.quote(block.lines)

    assert quoted is not None
    assert ambiguous_lines(block, quoted) == {3}


def test_removing_one_of_two_lines_that_are_quoted_alike_is_undecidable_without_marks() -> None:
    source = Source("a.js", "javascript", ("class A {", "    get() {", "        return 1", "    }", "}"), "    ")
    kept = [Line(" ", line) for line in source.lines]
    block = Block(source, 0, 5, (*kept[:3], Line("-", "    }"), kept[4]))
    mistake = clipped(source.unit)
    quoted = mistake.quote(block.lines)

    assert quoted is not None
    assert movable_lines(block, quoted) is None
    assert not is_decidable(block, quoted, mistake)
    assert is_decidable(block, quoted, mistake, is_marked=True)


def test_equal_blocks_are_undecidable_only_without_an_anchor() -> None:
    lines = [row for name in "AB" for row in (f"class {name}:", "    def get(self):", "        return 1")]
    change = (Line("-", "        return 1"), Line("+", "        return 2"))
    bare, anchored = Hunk(change, 5, 5), Hunk(change, 5, 5, ("class B:", "def get("))

    assert undecided(lines, [bare]) == [bare]
    assert has_several_results(lines, [bare])
    assert undecided(lines, [Hunk(change, 5, 5, ("def get(self):",))])
    assert undecided(lines, [anchored]) == []


def test_an_unexpected_edit_is_wrong_but_a_refusal_is_not() -> None:
    example = Example("x", "partial", "python", "", "x.py", "a = 1\n", Edit("a = 1", "a = 2"), "a = 2\n")

    assert judge(example).verdict == "right"
    assert judge(example, lambda text, call: "a = 3\n").verdict == "wrong"
    assert judge(Example("x", "partial", "python", "", "x.py", "a\n", Edit("b", "c"), "c\n")).verdict == "refused"
    assert judge(Example("x", "partial", "python", "", "x.py", "a\n", Edit("b", "c"), None)).verdict == "right"
    assert judge(Example("x", "partial", "python", "", "x.py", "a\n", Edit("a", "c"), None)).verdict == "wrong"


def test_every_example_that_the_engine_must_refuse_has_no_exact_place() -> None:
    for example in Examples("partial", small_corpus()).first(100):
        assert isinstance(example.call, Edit)
        assert example.expected is None
        assert example.call.old not in example.text


def test_an_example_is_described_with_its_call_and_the_difference() -> None:
    example = Example("x/0/1", "partial", "python", "m", "x.py", "a = 1\n", Edit("a = 1", "a = 2"), "a = 2\n")
    text = describe(judge(example, lambda text, call: "a = 3\n"))

    assert text.startswith("=== x/0/1: wrong; partial, m, sent as edit_file; python, x.py\n--- old_string:\na = 1\n")
    assert text.endswith("-a = 2\n+a = 3\n·")


def test_answers_are_counted_by_verdict_and_mistake() -> None:
    counts = Counts("partial")
    counts.add(judge(Example("x", "partial", "python", "m", "x.py", "a\n", Edit("b", "c"), None)))
    counts.add(judge(Example("x", "partial", "python", "m", "x.py", "a\n", Edit("a", "c"), None)))

    assert (counts.total, counts.refused, counts.wrong) == (2, 0, 1)
    assert [row.split() for row in counts.table({"no edit": 3}).splitlines()] == [
        ["partial", "right", "refused", "wrong"],
        ["all", "1", "0", "1"],
        ["in", "python", "1", "0", "1"],
        ["m", "1", "0", "1"],
        ["sent", "as", "edit_file", "1", "0", "1"],
        ["left", "out:", "no", "edit", "3"],
    ]
