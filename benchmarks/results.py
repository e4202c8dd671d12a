"""The results of measurements, and their serialization from a worker's process to the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.subject import OURS
from benchmarks.timing import Timing


@dataclass(frozen=True)
class Result:
    """One cell: a subject's value in a row at a size, and ours from the same process if it was a pair.

    `value` is nanoseconds unless the row's name begins with `bytes` or `count`. An empty cell has a
    `note` with the reason.
    """

    row: str
    size: int
    subject: str
    value: float | None
    least: float | None = None
    ours: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Return our value divided by theirs: below 1, ours is faster."""
        return self.ours / self.value if self.ours and self.value else None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Result:
        return cls(**{key: value for key, value in entry.items() if key != "ratio"})


def timed(row: str, size: int, subject: str, timing: Timing, *, ours: Timing | None = None) -> Result:
    return Result(row, size, subject, timing.median, timing.least, ours.median if ours else None)


def together(row: str, size: int, timings: Mapping[str, Timing]) -> Iterator[Result]:
    """Yield the results of measuring in turn: ours, and each of the others together with ours."""
    for name, timing in timings.items():
        yield timed(row, size, name, timing, ours=None if name == OURS else timings[OURS])


class Results:
    """All cells of a run, for lookup by row, size and subject."""

    def __init__(self, cells: Iterable[Result]) -> None:
        self.cells = list(cells)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.cells)

    def where(self, row: str, *, size: int | None = None) -> list[Result]:
        return [cell for cell in self.cells if cell.row == row and size in (None, cell.size)]

    def value(self, row: str, size: int, subject: str) -> float | None:
        """Return the median of a subject's measurements; ours is measured once with each peer."""
        values = [c.value for c in self.where(row, size=size) if c.subject == subject and c.value is not None]
        return sorted(values)[len(values) // 2] if values else None

    def sizes(self, row: str) -> list[int]:
        return sorted({cell.size for cell in self.cells if cell.row == row})
