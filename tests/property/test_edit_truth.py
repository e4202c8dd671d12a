"""Edits with a known right answer: the engine makes them correctly or refuses them, and refuses few.

The examples are those of `python -m benchmarks.edits`, which makes more of them from more files and shows them.
"""

from __future__ import annotations

import pytest

from benchmarks.edits.corpus import Corpus, small_corpus
from benchmarks.edits.example import Answer, describe, judge
from benchmarks.edits.families import Examples
from tests.sampling import share

MODULES = ("configparser.py", "json/decoder.py", "json/encoder.py", "queue.py", "sched.py", "shlex.py", "textwrap.py")
MOST_SHOWN = 3


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return small_corpus(MODULES)


def answers(kind: str, corpus: Corpus, count: int) -> list[Answer]:
    return [judge(example) for example in Examples(kind, corpus).first(count)]


def with_verdict(verdict: str, given: list[Answer]) -> list[Answer]:
    return [answer for answer in given if answer.verdict == verdict]


def failures(found: list[Answer]) -> str:
    """Return how many answers there are, and the first of them in full."""
    return "\n\n".join((f"{len(found)} answers; the first:", *map(describe, found[:MOST_SHOWN])))


def test_mistakes_in_white_space_never_lead_to_a_wrong_edit(corpus: Corpus) -> None:
    given = answers("whitespace", corpus, share(1500))

    wrong, refused = with_verdict("wrong", given), with_verdict("refused", given)
    assert not wrong, failures(wrong)
    assert len(refused) * 100 <= len(given) * 5, failures(refused)


def test_at_most_one_in_a_hundred_clipped_edits_is_wrong(corpus: Corpus) -> None:
    given = answers("mutants", corpus, share(1000))

    wrong = with_verdict("wrong", given)
    assert len(wrong) * 100 <= len(given), failures(wrong)


def test_well_formed_patches_are_never_applied_in_the_wrong_place(corpus: Corpus) -> None:
    wrong = with_verdict("wrong", answers("wellformed", corpus, share(1000)))

    assert not wrong, failures(wrong)


def test_a_part_of_a_word_or_a_line_end_outside_brackets_is_never_matched(corpus: Corpus) -> None:
    wrong = with_verdict("wrong", answers("partial", corpus, share(600)))

    assert not wrong, failures(wrong)
