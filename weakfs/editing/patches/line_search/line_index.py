"""An index for finding lines among lines: each distinct line is one character, so this is a text search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TypeVar, cast

# A run of lines to replace: its start (from 0) and stop, and the replacement.
Run = tuple[int, int, list[str]]
_Line = TypeVar("_Line")
# A function that makes lines comparable.
Fold = Callable[[Sequence[str]], list[str]]

# The number of distinct characters.
ALPHABET = 0x110000

# For more runs than this, building a new list of lines is faster than moving the rest of the list for each run.
FEW_RUNS = 8


class LineIndex:
    """Lines as a string with one character per line; equal lines have equal characters.

    A search costs as much as `str.find`, which is linear for any text; comparing lists of lines one by one took
    minutes for 10,000 hunks in a file of 400,000 lines. Beyond 1,114,112 distinct lines, two may share a character,
    so matches are then checked again.
    """

    __slots__ = ("_codes", "_counts", "_fold", "_lines", "_numbers")

    def __init__(self, lines: Sequence[str], fold: Fold, base: LineIndex | None = None) -> None:
        """Index lines folded by `fold`; `base` is an index of the same lines by a stricter comparison."""
        self._fold = fold
        self._numbers: dict[str, int] = {}
        self._lines: list[str] | None = None
        self._counts: Counter[str] | None = None
        self._codes: str
        if base is not None and base._lines is None:
            # Most files have fewer distinct lines than lines: only the distinct ones are folded.
            distinct = list(base._numbers)
            self._codes = base._codes.translate(dict(enumerate(self._encode(fold(distinct)))))
        else:
            self._codes = self._encode(fold(lines))
            if len(self._numbers) > ALPHABET:
                self._lines = fold(lines)

    def _encode(self, folded: Sequence[str]) -> str:
        numbers = self._numbers
        if numbers:
            for line in dict.fromkeys(folded):
                numbers.setdefault(line, len(numbers))
        else:
            # Not a Python loop, which would take a large part of the time of a patch.
            numbers.update(zip(dict.fromkeys(folded), count(), strict=False))
        if len(numbers) > ALPHABET:
            return "".join([chr(numbers[line] % ALPHABET) for line in folded])
        return "".join(map(chr, map(numbers.__getitem__, folded)))

    def find(self, lines: Sequence[str], start: int) -> int:
        """Return the first position of consecutive lines, from `start` on; -1 if there is none."""
        return next(self.places(lines, start), -1)

    def places(self, lines: Sequence[str], start: int) -> Iterator[int]:
        """Yield the positions of consecutive lines, from `start` on."""
        wanted = self._fold(lines)
        pattern = self._pattern(wanted)
        at = -1 if pattern is None else self._codes.find(pattern, start)
        while at >= 0:
            if self._really(wanted, at):
                yield at
            at = self._codes.find(cast(str, pattern), at + 1)

    def occurs_again(self, lines: Sequence[str], at: int) -> bool:
        """Return whether the lines at `at` also occur together somewhere after it."""
        if self._counts is None:
            self._counts = Counter(self._codes)
        counts = self._counts
        pattern = self._pattern(self._fold(lines))
        # Most hunks have a line that occurs only once; this saves searching to the end of the file.
        if pattern is None or any(counts[code] == 1 for code in pattern):
            return False
        return self.find(lines, at + 1) >= 0

    def is_at(self, lines: Sequence[str], at: int) -> bool:
        """Return whether lines are at `at`."""
        wanted = self._fold(lines)
        pattern = self._pattern(wanted)
        if pattern is None or not 0 <= at <= len(self._codes):
            return False
        return self._codes.startswith(pattern, at) and self._really(wanted, at)

    def _pattern(self, wanted: list[str]) -> str | None:
        """Return the characters for lines; `None` if one of them is not in the file."""
        try:
            return "".join([chr(self._numbers[line] % ALPHABET) for line in wanted])
        except KeyError:
            return None

    def _really(self, wanted: list[str], at: int) -> bool:
        return self._lines is None or self._lines[at : at + len(wanted)] == wanted

    def replace(self, runs: Sequence[Run], before: list[str]) -> None:
        """Update the index after runs, in order, were replaced in the lines `before`. O(lines), as fast as copying."""
        codes: list[str] = []
        done = 0
        folded = [(start, stop, self._fold(lines)) for start, stop, lines in runs]
        for start, stop, lines in folded:
            encoded = self._encode(lines)
            codes += (self._codes[done:start], encoded)
            done = stop
            if self._counts is not None:
                self._counts.subtract(self._codes[start:stop])
                self._counts.update(encoded)
        codes.append(self._codes[done:])
        self._codes = "".join(codes)
        if len(self._numbers) > ALPHABET:
            self._lines = spliced(self._fold(before) if self._lines is None else self._lines, folded)


def spliced(lines: list[_Line], runs: Sequence[tuple[int, int, list[_Line]]]) -> list[_Line]:
    """Return lines with runs of them replaced, in order; the given list may be modified."""
    if len(runs) <= FEW_RUNS:
        for start, stop, inserted in reversed(runs):
            lines[start:stop] = inserted
        return lines
    made: list[_Line] = []
    done = 0
    for start, stop, inserted in runs:
        made += lines[done:start]
        made += inserted
        done = stop
    made += lines[done:]
    return made
