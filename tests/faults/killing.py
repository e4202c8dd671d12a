"""Kill a process repeatedly at random moments of its work on a real directory, and check what it left.

`python -m tests.faults.killing FOLDER WHAT KIND TIMES SEED` prints what was found as JSON: nothing, if all is well.
Each attempt is a separate process, forked from this one. Run by test_host_kills.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, cast

from tests.models.host import exact, left_in_journals, record
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.filesystem import FilesystemSnapshot

TEMPORARY = re.compile(rb"\.weakfs-[0-9a-f]{16}\.tmp")
# The longest time that work continues, in seconds; programs take longer to start.
LONGEST = {"tree": 0.06, "tar": 0.06, "git": 0.4}

CHANGES: tuple[Callable[[HostFilesystem, str, str], object], ...] = (
    lambda fs, path, _: fs.write(path, "over"),
    lambda fs, path, _: fs.append(path, "more"),
    lambda fs, _, new: fs.write(new, "new" * 50_000),
    lambda fs, path, new: fs.move(path, new),
    lambda fs, path, new: fs.copy(path, new),
    lambda fs, path, _: fs.delete(path, recursive=True),
    lambda fs, path, _: fs.chmod(path, 0o700),
    lambda fs, _, new: fs.symlink("x", new),
    lambda fs, _, new: fs.mkdir(new + "/and/more"),
)


class Attempts:
    """All kills during one kind of work."""

    def __init__(self, folder: Path, kind: SnapshotKind, seed: int) -> None:
        self.root, self.store = folder / "root", folder / "store"
        self.kind: SnapshotKind = kind
        self.random = Random(seed)
        self.found: list[str] = []
        self.counts: Counter[str] = Counter()
        # What was reported: each snapshot by id, and the files at that time.
        self.snapshots: dict[str, tuple[FilesystemSnapshot, str]] = {}
        self.root.mkdir(parents=True)
        for name in ("a", "b", "c", "b/deep/er"):
            (self.root / name).mkdir(parents=True)
            for number in range(6):
                (self.root / name / f"{number}").write_text(f"{name} {number}" * 400)
        (self.root / "link").symlink_to("a")
        (self.root / "empty").mkdir()
        (self.root / "a" / "0").chmod(0o444)

    def open(self) -> HostFilesystem:
        return HostFilesystem(self.root, session=Session(), store=self.store, snapshots=self.kind)

    def now(self) -> str:
        """Return a digest of everything in the directory."""
        return sha256(repr(sorted(exact(record(self.root)).items())).encode()).hexdigest()

    def disturb(self) -> None:
        """Change some things through the operating system."""
        for _ in range(8):
            path = self.root / self.random.choice("abcd") / str(self.random.randrange(9))
            if path.exists() and self.random.random() < 0.3:
                path.unlink()
            else:
                path.parent.mkdir(exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_text(str(self.random.random()) * self.random.choice((1, 500)))

    def keep(self, fs: HostFilesystem) -> FilesystemSnapshot:
        """Take a snapshot, and note what the files are."""
        snapshot = fs.snapshot()
        self.snapshots[snapshot.snapshot_id] = snapshot, self.now()
        return snapshot

    def die(self, work: Callable[[Callable[..., None]], None]) -> list[list[str]]:
        """Let a process work for a moment, kill it, and return what it reported."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                work(lambda *words: cast(None, os.write(writing, (" ".join(words) + "\n").encode())))
            finally:
                os._exit(1)
        os.close(writing)
        with open(reading) as stream:
            stream.readline()
            # A slow machine reports little in such a short time, so two of three deaths come after the first or second
            # report.
            lines = [stream.readline() for _ in range(self.counts["deaths"] % 3)]
            time.sleep(self.random.random() * LONGEST[self.kind])
            os.kill(child, signal.SIGKILL)
            lines += stream.readlines()
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            self.found.append(f"the work ended by itself: {lines[-3:]}")
        self.counts["deaths"] += 1
        self.counts["reports"] += len(lines)
        self.counts["left unfinished"] += any(
            os.stat(log).st_size for log in (self.store / "journals").rglob("log") if log.exists()
        )
        return [line.split() for line in lines if line.endswith("\n")]

    def look(self, when: str, *allowed: str) -> HostFilesystem:
        """Reopen the directory, and check that its files are in an allowed state and nothing is left over."""
        fs = self.open()
        lying = [path for path in record(self.root) if TEMPORARY.search(path)]
        left = left_in_journals(self.store, after_interrupt=True)
        if lying or left:
            self.found.append(f"{when}: {lying} {left} lie about")
        if allowed and self.now() not in allowed:
            self.found.append(f"{when}: the files are neither as before nor as after")
        return fs

    def check_snapshots(self, fs: HostFilesystem) -> None:
        """Check that each reported snapshot restores exactly."""
        stored = {entry.snapshot_id for entry in fs.store.list()}
        for snapshot_id, (snapshot, digest) in self.snapshots.items():
            if snapshot_id not in stored:
                self.found.append(f"{snapshot_id} was reported and is lost")
                continue
            fs.restore(snapshot)
            if self.now() != digest:
                self.found.append(f"{snapshot_id} does not restore exactly")
            self.counts["restored"] += 1


def snapshots(attempts: Attempts, turn: int) -> None:
    """Be killed while taking snapshots of files that change in between."""

    def work(report: Callable[..., None]) -> None:
        fs = attempts.open()
        attempts.random.seed(turn)
        report("begun")
        while True:
            attempts.disturb()
            taken = attempts.keep(fs)
            report(taken.snapshot_id, taken.ref, taken.filesystem_id, attempts.snapshots[taken.snapshot_id][1])

    fs = attempts.open()
    attempts.snapshots.clear()
    for snapshot_id, ref, filesystem_id, digest in attempts.die(work):
        git_dir = fs.store.git.path if attempts.kind == "git" else None
        snapshot = FilesystemSnapshot(snapshot_id, filesystem_id, 0, attempts.kind, ref, fs.root, None, git_dir)
        attempts.snapshots[snapshot_id] = snapshot, digest
    attempts.check_snapshots(attempts.look(f"death {turn}"))


def restores(attempts: Attempts, turn: int) -> None:
    """Be killed while going from one snapshot to another and back."""
    if turn % 20 == 0:
        attempts.snapshots.clear()
        fs = attempts.open()
        attempts.keep(fs)
        attempts.disturb()
        (attempts.root / "b").rename(attempts.root / f"moved{turn}")
        attempts.disturb()
        attempts.keep(fs)
    pair = list(attempts.snapshots.values())

    def work(report: Callable[..., None]) -> None:
        fs = attempts.open()
        report("begun")
        while True:
            for snapshot, digest in pair:
                fs.restore(snapshot)
                report("restored", digest)

    attempts.die(work)
    attempts.look(f"death {turn}", *[digest for _, digest in pair])


def transactions(attempts: Attempts, turn: int) -> None:
    """Be killed in transactions that fail in the end, so that nothing ever changes."""
    before = attempts.now()

    def work(report: Callable[..., None]) -> None:
        fs = attempts.open()
        random = Random(turn)
        report("begun")
        while True:
            try:
                with fs.session.transaction():
                    for number in range(random.randrange(1, 8)):
                        path = random.choice([entry.path for entry in fs.walk("/")])
                        random.choice(CHANGES)(fs, path, f"/{random.choice('abcdxyz')}/new{number}")
                    raise RuntimeError
            except (RuntimeError, OSError, ValueError):
                report("undone")

    attempts.die(work)
    attempts.look(f"death {turn}", before)


def moves(attempts: Attempts, turn: int) -> None:
    """Be killed during separate changes: each is complete or absent."""
    here, there = ("a", "z") if (attempts.root / "a").exists() else ("z", "a")
    before = record(attempts.root / here)
    contents = {"0" * 200_000, "1" * 200_000}

    def work(report: Callable[..., None]) -> None:
        fs = attempts.open()
        report("begun")
        for number in range(10_000):
            fs.move("/" + (here, there)[number % 2], "/" + (there, here)[number % 2])
            fs.write("/b/big", str(number % 2) * 200_000)
            fs.copy("/b", "/copied")
            fs.delete("/copied", recursive=True)
            report("round", str(number))

    attempts.die(work)
    fs = attempts.look(f"death {turn}")
    left = [name for name in (here, there) if (attempts.root / name).exists()]
    if len(left) != 1 or exact(record(attempts.root / left[0])).keys() != before.keys():
        attempts.found.append(f"death {turn}: a moved directory is at {left}")
    if (attempts.root / "b" / "big").exists() and fs.read("/b/big").content not in contents:
        attempts.found.append(f"death {turn}: a file is half written")
    if (attempts.root / "copied").exists():
        if len(list((attempts.root / "copied").iterdir())) < 7:
            attempts.found.append(f"death {turn}: a directory is half copied")
        fs.delete("/copied", recursive=True)


WORKS: dict[str, Callable[[Attempts, int], None]] = {
    work.__name__: work for work in (snapshots, restores, transactions, moves)
}


def main(folder: Path, what: str, kind: SnapshotKind, times: int, seed: int) -> dict[str, Any]:
    """Be killed as often as requested."""
    attempts = Attempts(folder, kind, seed)
    for turn in range(times):
        WORKS[what](attempts, turn)
    return {"found": attempts.found, "counts": attempts.counts}


if __name__ == "__main__":
    _, where, work_name, given_kind, count, start = sys.argv
    print(json.dumps(main(Path(where), work_name, cast(SnapshotKind, given_kind), int(count), int(start))))
