"""Timing: pairs of batches in turn, single operations one by one, and the longest pauses."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter_ns, thread_time_ns
from typing import Any

from benchmarks.subject import Calls, Subject

BATCH_NS = 5_000_000
"""How long a batch of calls should take: long relative to the clock, short relative to time slices."""

PATIENCE_NS = 400_000_000
"""A batch that takes longer than this is repeated only twice."""

LONG_NS = 8_000_000_000
"""Operations that take longer than this are measured only twice."""


@dataclass(frozen=True)
class Timing:
    """Nanoseconds for one operation: the minimum and the median of all repeats."""

    least: float
    median: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Timing:
        return cls(min(samples), statistics.median(samples))


def side_by_side(subjects: Sequence[Subject], operation: str, calls: Calls, *, repeats: int = 9) -> list[Timing]:
    """Time batches of the same calls on each subject in turn, so that anything that slows the machine slows all."""
    sizes = [batch_size(subject, operation, calls) for subject in subjects]
    samples: list[list[float]] = [[] for _ in subjects]
    for repeat in range(repeats):
        for subject, size, taken in zip(subjects, sizes, samples, strict=True):
            if repeat >= 2 and taken[0] * size > PATIENCE_NS:
                continue
            first = repeat % (len(calls) // size) * size
            batch = calls[first : first + size]
            start = perf_counter_ns()
            subject.perform(operation, batch)
            taken.append((perf_counter_ns() - start) / len(batch))
    return [Timing.of(taken) for taken in samples]


def batch_size(subject: Subject, operation: str, calls: Calls) -> int:
    """Return how many of the calls take about `BATCH_NS`; trying also warms everything up."""
    size = 2
    while size < len(calls):
        start = perf_counter_ns()
        subject.perform(operation, calls[:size])
        taken = perf_counter_ns() - start
        if taken > BATCH_NS / 2:
            break
        size *= 2
    return min(size, len(calls))


def one_by_one(act: Callable[..., Any], calls: Calls, *, before: Callable[[], Any] | None = None) -> Timing:
    """Time each call alone, for operations that cannot be repeated; `before` runs untimed ahead of each."""
    samples = []
    for call in calls:
        if before is not None:
            before()
        start = perf_counter_ns()
        act(*call)
        samples.append(perf_counter_ns() - start)
    return Timing.of(samples)


Sampler = Callable[[], float]
"""Does something once and returns its nanoseconds, without counting preparations."""


def nanoseconds(act: Callable[[], Any]) -> float:
    """Time one call; its result is released before the next."""
    start = perf_counter_ns()
    result = act()
    taken = perf_counter_ns() - start
    del result
    return taken


def processor_time(act: Callable[[], Any]) -> float:
    """Return the nanoseconds of processor time of one call, with the programs that it starts and waits for."""
    start = _processor_time()
    result = act()
    taken = _processor_time() - start
    del result
    return taken


def _processor_time() -> float:
    uses = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses) * 1e9


def in_turn(
    measured: Mapping[str, Sampler], *, repeats: int, before: Callable[[], Any] | None = None
) -> dict[str, Timing]:
    """Take rounds of measurements, `before` ahead of each round; each round begins with a different one."""
    samples: dict[str, list[float]] = {name: [] for name in measured}
    names = list(measured)
    for repeat in range(repeats):
        if before is not None:
            before()
        first = repeat % len(names)
        for name in names[first:] + names[:first]:
            if repeat < 2 or samples[name][0] < LONG_NS:
                samples[name].append(measured[name]())
    return {name: Timing.of(taken) for name, taken in samples.items()}


@dataclass(frozen=True)
class Pauses:
    """The longest waits among many operations, in nanoseconds of this thread's processor time.

    Processor time excludes the time slices of other processes, which are not our responsibility, and includes every
    garbage collection, which is.
    """

    longest_operation: int
    longest_collection: int
    collections: int


def pauses(act: Callable[..., Any], calls: Calls) -> Pauses:
    """Time every single call and every garbage collection while they run."""
    collections: list[int] = []
    started = 0

    def watch(phase: str, _info: dict[str, int]) -> None:
        nonlocal started
        if phase == "start":
            started = thread_time_ns()
        else:
            collections.append(thread_time_ns() - started)

    longest = 0
    gc.callbacks.append(watch)
    try:
        for call in calls:
            start = thread_time_ns()
            act(*call)
            longest = max(longest, thread_time_ns() - start)
    finally:
        gc.callbacks.remove(watch)
    return Pauses(longest, max(collections, default=0), len(collections))
