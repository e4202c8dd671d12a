"""Finding lines among lines: every distinct line is one character, so that a search is one of text in text."""

from __future__ import annotations

from collections.abc import Sequence

# A run of lines that is replaced: from which (from 0) to before which, and what comes there.
Run = tuple[int, int, list[str]]

# So many different characters there are.
ALPHABET = 0x110000


class LineIndex:
    """Lines as a string with one character for each, equal for equal lines.

    A search costs what `str.find` does, which is linear whatever repeats; looking at lists of lines one by one
    took minutes for 10,000 hunks in a file of 400,000 lines. Beyond 1,114,112 distinct lines two may share a
    character, so that what is found is looked at again.
    """

    __slots__ = ("_codes", "_lines", "_numbers")

    def __init__(self, lines: Sequence[str]) -> None:
        self._numbers: dict[str, int] = {}
        self._lines = list(lines)
        self._codes = self._encode(lines)

    def __len__(self) -> int:
        return len(self._codes)

    def _encode(self, lines: Sequence[str]) -> str:
        numbers = self._numbers
        return "".join([chr(numbers.setdefault(line, len(numbers)) % ALPHABET) for line in lines])

    def pattern(self, lines: Sequence[str]) -> str | None:
        """Give what stands for these lines, for `find` and `is_at`; `None` if one of them is nowhere in the file."""
        numbers = self._numbers
        try:
            return "".join([chr(numbers[line] % ALPHABET) for line in lines])
        except KeyError:
            return None

    def find(self, pattern: str, lines: Sequence[str], start: int) -> int:
        """Give where the lines first stand together, from `start` on; -1 for nowhere."""
        at = self._codes.find(pattern, start)
        while at >= 0 and not self._really(lines, at):
            at = self._codes.find(pattern, at + 1)
        return at

    def is_at(self, pattern: str, lines: Sequence[str], at: int) -> bool:
        """Tell whether the lines stand at `at`."""
        return 0 <= at <= len(self._codes) and self._codes.startswith(pattern, at) and self._really(lines, at)

    def _really(self, lines: Sequence[str], at: int) -> bool:
        return len(self._numbers) <= ALPHABET or self._lines[at : at + len(lines)] == list(lines)

    def replace(self, runs: Sequence[Run]) -> None:
        """Follow what became of the lines; runs are in order. O(lines), at the speed of copying."""
        codes: list[str] = []
        done = 0
        for start, stop, lines in runs:
            codes += (self._codes[done:start], self._encode(lines))
            done = stop
        codes.append(self._codes[done:])
        self._codes = "".join(codes)
        self._lines = spliced(self._lines, runs)


def spliced(lines: list[str], runs: Sequence[Run]) -> list[str]:
    """Give lines with runs of them replaced, in order."""
    made: list[str] = []
    done = 0
    for start, stop, inserted in runs:
        made += lines[done:start]
        made += inserted
        done = stop
    made += lines[done:]
    return made
