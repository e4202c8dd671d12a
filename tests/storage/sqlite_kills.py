"""Kill a process at one system call of SQLite after another: `python -m tests.storage.sqlite_kills`.

Each attempt is a process of its own, forked from this one, to which strace attaches. strace kills it before its n-th
call of a kind. This process then examines what is left. Prints what was found as JSON. Run by test_sqlite.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from tests.storage.folder.histories import STEPS, finish, models, position
from weakfs.storage import EventStore, open_event_store

# Calls that change files, and calls that make these changes durable. Changes of the shared memory of the log are not
# calls.
CALLS = ("openat", "pwrite64", "fdatasync", "fsync", "ftruncate", "fallocate", "unlink", "rename")
STATES = models()


class Attempts:
    """All attempts with one level of durability."""

    def __init__(self, folder: Path, durability: str) -> None:
        self.folder, self.url = folder / "store", f"sqlite:{folder}/store/a.db?durability={durability}"
        self.found: list[str] = []
        self.deaths: dict[str, int] = dict.fromkeys(CALLS, 0)

    def at_every_call(self, stride: int) -> None:
        """Kill a process before every call of each kind, or before each `stride`-th one."""
        for name in CALLS:
            number = 1
            while self.at_call(name, number):
                number += stride

    def at_call(self, name: str, number: int) -> bool:
        """Kill a process before one call, and check what is left. Return whether there was such a call."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                _work(self.url, writing)
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        command = ["strace", "-q", "-o", os.devnull, "-p", str(child), "-e", f"trace={name}"]
        with subprocess.Popen([*command, "-e", f"inject={name}:signal=KILL:when={number}"]) as tracer:
            with os.fdopen(reading, "rb") as stream:
                done = len(stream.read())
            _, status = os.waitpid(child, 0)
        is_killed = os.WIFSIGNALED(status)
        self.deaths[name] += is_killed
        if tracer.returncode or (status and not is_killed):
            self.found.append(f"{name} {number}: the work ended with {status}, strace with {tracer.returncode}")
            return False
        with closing(open_event_store(self.url)) as store:
            self._check(store, done, f"{name} {number}")
        return is_killed

    def _check(self, store: EventStore, done: int, when: str) -> None:
        """Check that everything that was reported is present, and that the next step is complete or absent."""
        at = position(store, STATES)
        if not {done, done + 1} & set(at):
            self.found.append(f"{when}: {done} steps were reported, and the state is that after {at}")
            return
        try:
            finish(store, at[-1], STATES)
        except (OSError, AssertionError) as error:
            self.found.append(f"{when}: {error!r}")


def _work(url: str, reports: int) -> None:
    """Make the history, and report a byte after each step."""
    for _ in range(10_000):
        if "TracerPid:\t0\n" not in Path("/proc/self/status").read_text():
            break
        time.sleep(0.001)
    else:
        raise RuntimeError("strace does not attach")
    store, model = open_event_store(url), STATES[0].copy()
    for step in STEPS:
        step(store, model)
        os.write(reports, b".")
    store.close()


def main(folder: Path, durability: str, stride: int) -> dict[str, object]:
    attempts = Attempts(folder, durability)
    attempts.at_every_call(stride)
    return {"found": attempts.found, "deaths": attempts.deaths}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
