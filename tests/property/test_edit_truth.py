"""Edits whose right answer is known: they are made right or refused, and not refused too often.

The examples are those of `python -m benchmarks.edits`, which makes more of them from more files and shows them.
"""

from __future__ import annotations

import pytest

from benchmarks.edits.corpus import Corpus, small_corpus
from benchmarks.edits.example import Answer, judge, shown
from benchmarks.edits.families import Examples

MODULES = ("configparser.py", "json/decoder.py", "json/encoder.py", "queue.py", "sched.py", "shlex.py", "textwrap.py")
MOST_SHOWN = 3


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return small_corpus(MODULES)


def answers(kind: str, corpus: Corpus, count: int) -> list[Answer]:
    return [judge(example) for example in Examples(kind, corpus).first(count)]


def with_verdict(verdict: str, given: list[Answer]) -> list[Answer]:
    return [answer for answer in given if answer.verdict == verdict]


def told(found: list[Answer]) -> str:
    """Say how many answers were found, and show the first of them in full."""
    return "\n\n".join((f"{len(found)} answers; the first:", *map(shown, found[:MOST_SHOWN])))


def test_mistakes_in_white_space_never_lead_to_a_wrong_edit(corpus: Corpus) -> None:
    given = answers("whitespace", corpus, 1500)

    wrong, refused = with_verdict("wrong", given), with_verdict("refused", given)
    assert not wrong, told(wrong)
    assert len(refused) * 100 <= len(given) * 5, told(refused)


def test_of_edits_a_step_further_out_and_clipped_one_in_a_hundred_may_be_wrong(corpus: Corpus) -> None:
    given = answers("mutants", corpus, 1000)

    wrong = with_verdict("wrong", given)
    assert len(wrong) * 100 <= len(given), told(wrong)


def test_patches_without_a_mistake_are_never_applied_in_a_wrong_place(corpus: Corpus) -> None:
    wrong = with_verdict("wrong", answers("wellformed", corpus, 1000))

    assert not wrong, told(wrong)


def test_a_part_of_a_word_or_a_line_end_outside_brackets_is_never_matched(corpus: Corpus) -> None:
    wrong = with_verdict("wrong", answers("partial", corpus, 600))

    assert not wrong, told(wrong)
