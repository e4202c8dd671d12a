"""Counts of right, refused and wrong answers, by how a call was sent and by the mistake in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import get_args

from benchmarks.edits.example import Answer, Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Counts:
    """The counted answers of one family."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._all: Counter[Verdict] = Counter()
        self._by_row: dict[str, Counter[Verdict]] = {}

    def add(self, answer: Answer) -> None:
        self._all[answer.verdict] += 1
        example = answer.example
        for row in (f"sent as {example.sent}", example.mistake, f"in {example.language}"):
            self._by_row.setdefault(row, Counter())[answer.verdict] += 1

    @property
    def total(self) -> int:
        return self._all.total()

    @property
    def wrong(self) -> int:
        return self._all["wrong"]

    @property
    def refused(self) -> int:
        return self._all["refused"]

    def table(self, left_out: Mapping[str, int]) -> str:
        """Format the counts, and the number of attempts that produced no example."""
        rows = [f"{self.kind:<34}" + "".join(f"{verdict:>9}" for verdict in VERDICTS)]
        for name, counts in [("all", self._all), *sorted(self._by_row.items())]:
            rows.append(f"  {name:<32}" + "".join(f"{counts[verdict]:>9}" for verdict in VERDICTS))
        rows += [f"  left out: {reason:<22}{count:>9}" for reason, count in sorted(left_out.items())]
        return "\n".join(rows)
