"""The schedule: lines of calls are handed from worker to worker until the end, and then everything is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from attrs import define

from benchmarks.scale.ledger import Ledger
from benchmarks.scale.pool import Pool
from benchmarks.scale.processes import Work

# The maximum number of calls that a worker makes before it hands a session on.
TURN = 20


@define(eq=False)
class Schedule:
    """Hands lines of calls to workers, in random order, and records their results in the ledger."""

    ledger: Ledger
    # The lines that no worker is working on.
    names: list[str]
    random: Random
    is_over: Callable[[], bool]
    turn: int = TURN

    def run(self, work: Work, workers: int, *, calls_per_kill: int = 0) -> None:
        """Let workers work until `is_over` says so."""
        pool = Pool(work, workers, self._next_job, self._take, self._give_back, calls_per_kill, self.random)
        pool.run()
        if pool.failures:
            self.ledger.found.append(f"{pool.failures} workers failed; their errors are above")

    def _next_job(self) -> str | None:
        if not self.names or self.is_over():
            return None
        at = self.random.randrange(len(self.names))
        self.names[at], self.names[-1] = self.names[-1], self.names[at]
        return f"{self.names.pop()} {self.random.randint(1, self.turn)}"

    def _take(self, job: str, words: list[str]) -> None:
        self.ledger.take(job, words)
        if words[0] == "finished":
            self.names.append(job.split(" ")[0])

    def _give_back(self, job: str) -> None:
        self.ledger.killed(job)
        self.names.append(job.split(" ")[0])


def run_once(work: Work, jobs: Iterable[str], ledger: Ledger, *, workers: int = 1) -> None:
    """Let workers do each job once, and record their reports in the ledger."""
    left = iter(jobs)
    pool = Pool(work, workers, lambda: next(left, None), ledger.take)
    pool.run()
    if pool.failures:
        ledger.found.append(f"{pool.failures} workers failed; their errors are above")
