"""A pool of workers: each gets a job when it is idle, and now and then one is killed and replaced."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from select import select
from time import monotonic

from attrs import define, field

from benchmarks.scale.processes import Work, Worker

# A worker dies at a random moment up to this long after the decision to kill it, so that it may be anywhere in a call.
LATEST = 0.02
# After this many workers have failed by themselves, no more jobs are handed out.
MOST_FAILURES = 8


@define(eq=False)
class Pool:
    """Runs jobs until `next_job` has no more.

    `on_report` gets a job and the words that a worker reported about it, `on_kill` the job of a worker that was killed.
    A worker reports "finished" at the end of a job.
    """

    work: Work
    count: int
    next_job: Callable[[], str | None]
    on_report: Callable[[str, list[str]], None]
    on_kill: Callable[[str], None] = lambda job: None
    # The average number of calls between two kills; 0 for no kills.
    calls_per_kill: int = 0
    random: Random = field(factory=Random)
    failures: int = 0
    _until_kill: float = 0.0
    _kill_at: float | None = None
    _workers: list[Worker] = field(factory=list[Worker])

    def run(self) -> None:
        self._plan_kill()
        try:
            while self._give_jobs():
                self._wait()
        finally:
            for worker in self._workers:
                is_well, reports = worker.end()
                self._take(worker, reports)
                self.failures += not is_well

    def _give_jobs(self) -> bool:
        """Give jobs to idle workers, and return whether any worker has one."""
        for at in range(self.count):
            if at < len(self._workers) and self._workers[at].job is not None:
                continue
            job = self.next_job() if self.failures < MOST_FAILURES else None
            if job is None:
                break
            if at == len(self._workers):
                self._workers.append(Worker.start(self.work, self._workers))
            self._workers[at].send(job)
        return any(worker.job is not None for worker in self._workers)

    def _wait(self) -> None:
        """Wait for reports, or for the time to kill a worker."""
        left = 5.0 if self._kill_at is None else max(self._kill_at - monotonic(), 0.0)
        ready, _, _ = select([worker.reports for worker in self._workers], [], [], left)
        for worker in list(self._workers):
            if worker.reports not in ready:
                continue
            reports = worker.read()
            self._take(worker, reports)
            if not reports and worker.job is not None:
                self._remove_failed(worker)
        if self._kill_at is not None and monotonic() >= self._kill_at:
            self._kill_one()

    def _take(self, worker: Worker, reports: list[list[str]]) -> None:
        for words in reports:
            if worker.job is None:
                raise RuntimeError(f"a worker without a job reported {words}")
            self.on_report(worker.job, words)
            self._until_kill -= words[0] == "called"
            if words[0] == "finished":
                worker.job = None
        if self.calls_per_kill and self._kill_at is None and self._until_kill <= 0:
            self._kill_at = monotonic() + self.random.random() * LATEST

    def _kill_one(self) -> None:
        busy = [worker for worker in self._workers if worker.job is not None]
        if busy:
            worker = self.random.choice(busy)
            self._workers.remove(worker)
            self._take(worker, worker.kill())
            if worker.job is not None:
                self.on_kill(worker.job)
        self._plan_kill()

    def _remove_failed(self, worker: Worker) -> None:
        """Remove a worker that ended by itself."""
        self._workers.remove(worker)
        self._take(worker, worker.end()[1])
        self.failures += 1
        if worker.job is not None:
            self.on_kill(worker.job)

    def _plan_kill(self) -> None:
        self._kill_at = None
        self._until_kill = self.random.expovariate(1 / self.calls_per_kill) if self.calls_per_kill else 0.0
