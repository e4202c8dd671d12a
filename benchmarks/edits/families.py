"""The families of examples by name, and runs of them that are the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from random import Random

from benchmarks.edits import mutants, partial, wellformed, whitespace
from benchmarks.edits.corpus import Corpus
from benchmarks.edits.example import Example

# Makes an example under a name, or says why none came of it.
Family = Callable[[Random, Corpus, str], Example | str]

FAMILIES: dict[str, Family] = {
    "whitespace": whitespace.example,
    "mutants": mutants.example,
    "wellformed": wellformed.example,
    "partial": partial.example,
}

MOST_ATTEMPTS = 50
"""A family that needs more attempts for an example than this is at fault."""


class Examples:
    """Examples of one family; each depends on the seed and its number only, and can be made alone."""

    def __init__(self, kind: str, corpus: Corpus, *, seed: int = 0) -> None:
        self.kind, self.corpus, self.seed = kind, corpus, seed
        self.left_out: Counter[str] = Counter()
        """Why attempts gave no example."""

    def first(self, count: int) -> Iterator[Example]:
        """Give so many examples. Raises `RuntimeError` if too few attempts give one."""
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
        """Give the examples with these numbers, as far as there are such."""
        for number in numbers:
            # Seeded with text, so that numbers of neighbouring seeds have nothing in common.
            rng = Random(f"{self.kind}/{self.seed}/{number}")
            made = FAMILIES[self.kind](rng, self.corpus, f"{self.kind}/{self.seed}/{number}")
            if isinstance(made, Example):
                yield made
            else:
                self.left_out[made] += 1
