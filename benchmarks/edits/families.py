"""The families of examples by name, and runs of them that are the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from random import Random

from benchmarks.edits import mutants, partial, wellformed, whitespace
from benchmarks.edits.corpus import Corpus
from benchmarks.edits.example import Example

# Makes an example with a given name, or returns the reason why there is none.
Family = Callable[[Random, Corpus, str], Example | str]

FAMILIES: dict[str, Family] = {
    "whitespace": whitespace.example,
    "mutants": mutants.example,
    "wellformed": wellformed.example,
    "partial": partial.example,
}

MOST_ATTEMPTS = 50
"""A family that needs more attempts per example than this has a bug."""


class Examples:
    """Examples of one family; each depends only on the seed and its number, and can be made alone."""

    def __init__(self, kind: str, corpus: Corpus, *, seed: int = 0) -> None:
        self.kind, self.corpus, self.seed = kind, corpus, seed
        self.left_out: Counter[str] = Counter()
        """Why attempts produced no example."""

    def first(self, count: int) -> Iterator[Example]:
        """Yield this many examples. Raise `RuntimeError` if too few attempts produce one."""
        made = 0
        for number in range(count * MOST_ATTEMPTS):
            if made == count:
                return
            found = self.named([number])
            for example in found:
                made += 1
                yield example
        if made < count:
            raise RuntimeError(f"{self.kind}: only {made} of {count} examples could be made; give more source files")

    def named(self, numbers: Iterable[int]) -> Iterator[Example]:
        """Yield the examples with these numbers, as far as they exist."""
        for number in numbers:
            # Seeded with text, so that numbers of neighbouring seeds have nothing in common.
            rng = Random(f"{self.kind}/{self.seed}/{number}")
            made = FAMILIES[self.kind](rng, self.corpus, f"{self.kind}/{self.seed}/{number}")
            if isinstance(made, Example):
                yield made
            else:
                self.left_out[made] += 1
