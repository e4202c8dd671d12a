"""Worker processes that report through a pipe, and can be killed at any moment."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from select import select

from attrs import define

# Sends words to the parent. If a process is killed, the words that it sent before still arrive.
Report = Callable[..., None]
# The work of a worker: it reads jobs, one per line, until there are no more.
Work = Callable[[Iterator[str], Report], None]


@define(eq=False)
class Worker:
    """A process forked from this one. Jobs go down one pipe, and reports come back through another."""

    pid: int
    jobs: int
    reports: int
    # The current job.
    job: str | None = None
    _rest: bytes = b""

    @classmethod
    def start(cls, work: Work, others: Iterable[Worker]) -> Worker:
        """Fork a process in addition to others. The parent must have no threads."""
        jobs_in, jobs_out = os.pipe()
        reports_in, reports_out = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(jobs_out)
                os.close(reports_in)
                # If this process held them open, the others would not notice that the parent is gone.
                for other in others:
                    os.close(other.jobs)
                _run(work, jobs_in, reports_out)
                status = 0
            except BaseException:
                traceback.print_exc(file=sys.stderr)
            finally:
                os._exit(status)
        os.close(jobs_in)
        os.close(reports_out)
        os.set_blocking(reports_in, False)
        return cls(pid, jobs_out, reports_in)

    def send(self, job: str) -> None:
        self.job = job
        os.write(self.jobs, f"{job}\n".encode())

    def read(self) -> list[list[str]]:
        """Return the reports that have arrived, each as its words."""
        data = bytearray(self._rest)
        try:
            while part := os.read(self.reports, 1 << 16):
                data += part
        except BlockingIOError:
            pass
        *lines, self._rest = bytes(data).split(b"\n")
        return [line.decode().split(" ") for line in lines]

    def kill(self) -> list[list[str]]:
        """Kill it, and return its last reports."""
        os.kill(self.pid, signal.SIGKILL)
        return self.end()[1]

    def end(self) -> tuple[bool, list[list[str]]]:
        """Give it no more jobs and wait for its end. Return whether there was no error, and its last reports."""
        os.close(self.jobs)
        found: list[list[str]] = []
        # A full pipe would keep it from ending.
        while not (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            select([self.reports], [], [], 0.01)
            found += self.read()
        found += self.read()
        os.close(self.reports)
        return ended[1] == 0, found


def _run(work: Work, jobs: int, reports: int) -> None:
    def report(*words: object) -> None:
        os.write(reports, (" ".join(map(str, words)) + "\n").encode())

    with os.fdopen(jobs) as lines:
        work((line.rstrip("\n") for line in lines), report)
