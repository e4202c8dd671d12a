"""The results of a run, as text."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import define

from benchmarks.scale.ledger import Ledger
from benchmarks.units import bytes_text, count_text, time_text

# Totals that are bytes.
SIZES = {"stored", "WAL", "append-only file"}
# The numbers of calls and opens from which the cost of one is computed.
CALLS, OPENS = 300, 10


@define
class Report:
    """The results of one run; times in nanoseconds."""

    engine: str
    sessions: int
    workers: int
    seconds: float
    calls: int
    calls_per_second: float
    # The 50th, 95th and 99th percentiles.
    call: list[int]
    open: list[int]
    kills: int
    unacknowledged: int
    unrecorded: int
    conflicts: int
    # Everything that was found to be wrong.
    found: list[str]
    # For each call of the run.
    usage: dict[str, float]
    # The costs in a session without other writers: of a call, an open after `CALLS` of them, a checkpoint, and an open
    # after it.
    of_call: dict[str, float]
    of_open: dict[str, float]
    of_checkpoint: dict[str, float]
    of_reopen: dict[str, float]
    check_seconds: float

    @classmethod
    def of(
        cls,
        asked: argparse.Namespace,
        ledger: Ledger,
        calls: Sequence[int],
        opens: Sequence[int],
        took: float,
        usage: Counter[str],
        costs: Mapping[str, Counter[str]],
        kills: int,
        check_seconds: float,
    ) -> Report:
        return cls(
            asked.engine,
            1 if asked.shared else asked.sessions,
            asked.workers,
            took,
            len(calls),
            len(calls) / took,
            percentiles(calls),
            percentiles(opens),
            kills,
            ledger.unacknowledged,
            ledger.unrecorded,
            ledger.conflicts,
            ledger.found,
            {name: number / max(len(calls), 1) for name, number in usage.items()},
            _each(costs, "call", CALLS),
            _each(costs, "open", OPENS),
            _each(costs, "checkpoint", 1),
            _each(costs, "reopen", OPENS),
            check_seconds,
        )


def _each(costs: Mapping[str, Counter[str]], name: str, count: int) -> dict[str, float]:
    return {one: number / count for one, number in costs.get(name, Counter[str]()).items()}


def percentiles(times: Sequence[int]) -> list[int]:
    ordered = sorted(times) or [0]
    return [ordered[min(len(ordered) * part // 100, len(ordered) - 1)] for part in (50, 95, 99)]


def show(report: Report) -> None:
    """Print a report."""
    print(f"{report.engine}: {count_text(report.sessions)} sessions, {report.workers} workers, {report.seconds:.0f} s")
    rows = {
        "calls": f"{count_text(report.calls)}, {count_text(report.calls_per_second)} a second",
        "call": times(report.call),
        "open": times(report.open),
        "killed": f"{report.kills} workers",
        "in flight": f"{report.unacknowledged} calls took effect unacknowledged, {report.unrecorded} without a record",
        "conflicts": f"{report.conflicts} calls tried again",
        "each call": amounts(report.usage),
        "a call alone": amounts(report.of_call),
        "an open alone": amounts(report.of_open),
        "with checkpoint": amounts(report.of_reopen),
        "a checkpoint": amounts(report.of_checkpoint),
        "check": f"{len(report.found)} faults, in {report.check_seconds:.0f} s",
    }
    for name, text in rows.items():
        if text:
            print(f"  {name:<17}{text}")
    for fault in report.found:
        print(f"  FAULT {fault[:400]}")


def times(found: Sequence[int]) -> str:
    return ", ".join(f"p{part} {time_text(time)}" for part, time in zip((50, 95, 99), found, strict=True))


def amounts(found: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} {bytes_text(number) if name in SIZES else f'{number:.2f}'}" for name, number in found.items() if number
    )
