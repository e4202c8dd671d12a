"""Two writers, and processes that drop history: `python -m tests.storage.soak URL`.

Every process opens the session itself, and may be killed at any moment. The two writers own a directory each, and
merge. A third process compacts the session, a fourth deletes their files, and with `--erase` a fifth deletes the whole
session. This process gives them one job at a time, and knows what each file may hold after it: what was acknowledged,
or what a killed process was writing. Prints what it did and found as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from random import Random
from select import select
from time import monotonic

from attrs import define, field

from benchmarks.scale.processes import Report, Worker
from weakfs import InMemoryFilesystem, MergeConflict, Session, Toolset
from weakfs.session import MissingBlob, SessionError, UnknownSnapshot
from weakfs.session.errors import RecordsDropped
from weakfs.storage import DurabilityWarning, OutcomeUnknown, StorageError
from weakfs.tools import ToolCalls

NAME = "shared"
FILES = 4
ABSENT = 0
# What a file holds, or `ABSENT`: the numbers of the jobs that may have been the last to change it.
Numbers = set[int]
JOBS = {
    "writer": {"write": 8, "rewrite": 4, "rm": 1, "check": 3, "history": 2, "snapshot": 1, "reopen": 1},
    "compactor": {"compact": 6, "checkpoint": 2, "history": 1, "reopen": 1},
    "deleter": {"rm": 6, "snapshot": 1, "reopen": 2},
    "eraser": {"erase": 1},
}


def content(number: int) -> str:
    """Return what a job writes: short enough to be part of a frame, or longer."""
    return f"{number}\n" + f"line of {number}\n" * (200 if number % 3 else 3)


class Process:
    """What a worker does."""

    def __init__(self, url: str, *, may_be_erased: bool) -> None:
        self.url, self.may_be_erased = url, may_be_erased
        self.session = self.opened()

    def opened(self) -> Session:
        return Session.open(self.url, NAME, on_conflict="merge")

    def work(self, job: str) -> list[object]:
        """Do a job, and return how it ended."""
        kind, *rest = job.split(" ")
        try:
            return getattr(self, kind)(*rest) or ["done"]
        except OutcomeUnknown:
            return ["unknown"]
        except MergeConflict:
            return ["refused", "merge_conflict"]
        except (StorageError, SessionError) as error:
            if not self.may_be_erased:
                raise
            self.reopen()
            return ["refused", type(error).__name__]

    def call(self, tool: str, **arguments: str) -> list[object]:
        done = Toolset(self.session).call(tool, arguments)
        return ["done"] if done.success else ["refused", done.error_code]

    def write(self, path: str, number: str) -> list[object]:
        return self.call("write_file", path=path, content=content(int(number)))

    def rewrite(self, path: str, number: str) -> list[object]:
        """Replace a file in two steps; nobody may see the result of the first one."""
        with self.session.transaction():
            fs = InMemoryFilesystem(self.session)
            fs.write(path, "half")
            fs.write(path, content(int(number)))
        return []

    def rm(self, path: str, _: str) -> list[object]:
        return self.call("rm", path=path)

    def check(self) -> list[object]:
        """Return the number in each file."""
        self.session.refresh()
        fs = InMemoryFilesystem(self.session)
        found = {entry.path: fs.read(entry.path, limit=-1).content for entry in fs.walk() if entry.is_file}
        for path, text in found.items():
            if text != content(int(text.partition("\n")[0])):
                return ["wrong", f"{path}:{text[:40]!r}"]
        return ["found", *(f"{path}={text.partition(chr(10))[0]}" for path, text in found.items())]

    def history(self) -> list[object]:
        """Read everything that an old session has, without bringing it up to date first."""
        session = self.session
        session[ToolCalls].all()
        session.to_bytes()
        for entry in InMemoryFilesystem(session).walk():
            # Catching up may show that it was deleted.
            with suppress(FileNotFoundError, IsADirectoryError):
                session.blame(entry.path)
        try:
            list(session.records)
        except (RecordsDropped, MissingBlob):
            session.refresh()
        return []

    def snapshot(self, number: str) -> list[object]:
        for old in self.session.snapshots[:-3]:
            # Another process may have dropped it.
            with suppress(UnknownSnapshot):
                self.session.drop_snapshot(old)
        taken = self.session.snapshot(f"t{number}")
        files = InMemoryFilesystem(self.session.at(taken))
        for entry in files.walk():
            if entry.is_file:
                files.read_bytes(entry.path)
        return []

    def compact(self, keep: str) -> list[object]:
        self.session.compact(keep=int(keep))
        return []

    def checkpoint(self) -> list[object]:
        self.session.checkpoint()
        return []

    def reopen(self) -> list[object]:
        # It may be gone.
        with suppress(StorageError):
            self.session.close()
        self.session = self.opened()
        return []

    def erase(self) -> list[object]:
        self.session.refresh()
        if self.session.is_new:
            return ["refused", "new"]
        try:
            Session.delete(self.url, NAME)
        finally:
            self.reopen()
        return []


@define(eq=False)
class Change:
    """A job that changes a file, or with `path` "" all of them."""

    path: str
    number: int
    start: int
    end: float = math.inf


@define(eq=False)
class Soak:
    """The jobs, and what is known about the files."""

    url: str
    random: Random
    kill_every: int
    has_eraser: bool
    files: dict[str, Numbers] = field(factory=dict[str, Numbers])
    changes: list[Change] = field(factory=list[Change])
    done: Counter[str] = field(factory=Counter[str])
    found: list[str] = field(factory=list[str])
    kills: int = 0
    _clock: Iterator[int] = field(factory=lambda: count(1))

    def run(self, jobs: int, seconds: float) -> None:
        """Give jobs to all processes until the number of jobs or the time is reached; then check everything."""
        roles = {"a": "writer", "b": "writer", "c": "compactor", "d": "deleter"}
        if self.has_eraser:
            roles["e"] = "eraser"
        workers: dict[str, Worker] = {}
        begun: dict[str, Change | None] = {}
        began: dict[str, float] = {}
        # When to kill it, and how long a job takes, in seconds.
        kills: dict[str, float] = {}
        usual = 0.1
        end = monotonic() + seconds
        given = 0
        while not self.found and (given < jobs or any(worker.job for worker in workers.values())):
            is_over = given >= jobs or monotonic() > end
            if is_over and not any(worker.job for worker in workers.values()):
                break
            for name, role in roles.items():
                if name not in workers:
                    workers[name] = Worker.start(self._work, workers.values())
                worker = workers[name]
                if worker.job is None and not is_over and (role != "eraser" or self.random.random() < 0.01):
                    begun[name], began[name] = self._give(worker, name, role), monotonic()
                    given += 1
                    is_doomed = self.random.random() * self.kill_every < 1
                    kills[name] = began[name] + self.random.uniform(0, 2 * usual) if is_doomed else math.inf
            ready = select([worker.reports for worker in workers.values()], [], [], 0.005)[0]
            for name, worker in [*workers.items()]:
                if worker.reports in ready:
                    reports = worker.read()
                    for words in reports:
                        self._take(name, worker, begun[name], words)
                        usual += (monotonic() - began[name] - usual) / 20
                    if not reports:
                        self.found.append(f"{name} ended at {worker.job}")
                if worker.job and monotonic() > kills[name]:
                    reports = worker.kill()
                    del workers[name]
                    for words in reports:
                        self._take(name, worker, begun[name], words)
                    self.kills += 1
                    if worker.job and (change := begun[name]) is not None:
                        self._settle(change, "unknown")
        for worker in workers.values():
            if not worker.end()[0]:
                self.found.append("a process failed")
        if not self.found:
            self._check_at_end()

    def _work(self, jobs: Iterator[str], report: Report) -> None:
        warnings.simplefilter("ignore", DurabilityWarning)
        process: Process | None = None
        for job in jobs:
            process = process or Process(self.url, may_be_erased=self.has_eraser)
            report(*process.work(job))

    def _give(self, worker: Worker, name: str, role: str) -> Change | None:
        """Give a job to a process. Return what it changes."""
        number, kinds = next(self._clock), JOBS[role]
        kind = self.random.choices([*kinds], [*kinds.values()])[0]
        change = None
        job = kind
        if kind in ("write", "rewrite", "rm"):
            owner = self.random.choice("ab") if role == "deleter" else name
            path = f"/{owner}/{self.random.randrange(FILES)}"
            change = Change(path, ABSENT if kind == "rm" else number, number)
            job = f"{kind} {path} {number}"
        elif kind == "erase":
            change = Change("", ABSENT, number)
        elif kind == "compact":
            job = f"compact {self.random.choice([0, 1, 5, 20])}"
        elif kind == "snapshot":
            job = f"snapshot {number}"
        elif kind == "check":
            # To know when it began.
            change = Change("-", ABSENT, number)
        if change is not None:
            self.changes.append(change)
        worker.send(job)
        return change

    def _take(self, name: str, worker: Worker, change: Change | None, words: list[str]) -> None:
        """Handle the report of how a job ended."""
        job, worker.job = str(worker.job), None
        kind, outcome = job.split(" ")[0], words[0]
        self.done[f"{kind} {' '.join(words[:2])}" if outcome == "refused" else kind] += 1
        if outcome == "wrong":
            self.found.append(f"{name} {job}: {words}")
        elif outcome == "found":
            assert change is not None
            self._check(name, change, words[1:])
        if change is not None:
            self._settle(change, outcome)

    def _settle(self, change: Change, outcome: str) -> None:
        """Note what files may hold after the end of a job."""
        change.end = next(self._clock)
        if outcome == "refused" or change.path == "-":
            self.changes.remove(change)
            return
        for path in [*self.files] if not change.path else [change.path]:
            before = self.files.get(path, {ABSENT})
            # Among concurrent changes, any may have been the last one.
            others = {other.number for other in self._beside(path, change) if other.number == ABSENT or not change.path}
            if outcome == "unknown" or (others and not change.number):
                self.files[path] = before | {change.number} | others
            else:
                self.files[path] = {change.number} | others
        oldest = min((other.start for other in self.changes if other.end == math.inf), default=change.end)
        self.changes = [other for other in self.changes if other.end > oldest]

    def _beside(self, path: str, change: Change) -> list[Change]:
        """Return the changes of a path that were made at the same time as another one."""
        return [
            other
            for other in self.changes
            if other is not change and other.path in (path, "") and other.end > change.start
        ]

    def _check(self, name: str, check: Change, found: list[str]) -> None:
        """Compare what a writer found in its own files with what may be there."""
        there = {path: int(number) for path, _, number in (one.partition("=") for one in found)}
        for path in {*self.files, *there}:
            if path.startswith(f"/{name}/"):
                allowed = self.files.get(path, {ABSENT}) | {one.number for one in self._beside(path, check)}
                if there.get(path, ABSENT) not in allowed:
                    self.found.append(f"{path} holds {there.get(path)}, and may hold {sorted(allowed)}")

    def _check_at_end(self) -> None:
        """Open the session again: it holds what may be there, and all of it can be read."""
        process = Process(self.url, may_be_erased=False)
        outcome, *found = map(str, process.check())
        if outcome != "found":
            self.found.append(f"at the end: {found}")
        for name in "ab":
            self._check(name, Change("-", ABSENT, next(self._clock)), found)
        process.history()
        for kept in process.session.snapshots:
            files = InMemoryFilesystem(process.session.at(kept))
            for entry in files.walk():
                if entry.is_file:
                    files.read_bytes(entry.path)
        process.session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Two writers beside processes that drop history.")
    parser.add_argument("url")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--kill-every", type=int, default=10, help="kill a process in one of so many jobs")
    parser.add_argument("--erase", action="store_true", help="delete the whole session now and then")
    chosen = parser.parse_args()
    soak = Soak(chosen.url, Random(chosen.seed), chosen.kill_every, chosen.erase)
    soak.run(chosen.jobs, chosen.seconds)
    json.dump({"done": dict(sorted(soak.done.items())), "kills": soak.kills, "found": soak.found}, sys.stdout)


if __name__ == "__main__":
    main()
