"""Kill a process repeatedly during its work on a stream: `python -m tests.storage.folder.kills`.

Each attempt is a process of its own, forked from this one, that is killed at one call to the system, or at a random
moment. This process then examines what is left. Prints what was found as JSON. Run by test_kills.py.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

from tests.storage.folder.histories import STEPS, finish, models, open_store, position
from tests.storage.folder.journals import STREAM
from tests.storage.folder.system import Call, System
from weakfs.storage import Checkpoint
from weakfs.storage.folder import Durability

STATES = models()
Report = Callable[[int], None]


class Attempts:
    """All attempts with one level of durability."""

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder / "store"
        self.durability: Durability = durability
        self.found: list[str] = []
        self.deaths = 0

    def die(self, work: Callable[[Report], None], kill: Callable[[int], None] | None = None) -> tuple[int, bool]:
        """Let a process work until it is killed. Return the last number that it reported, and whether it was killed."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                os.close(reading)
                work(lambda number: cast(None, os.write(writing, b"%d\n" % number)))
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        if kill is not None:
            kill(child)
        with open(reading, "rb") as stream:
            lines = [line for line in stream if line.endswith(b"\n")]
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) and status:
            self.found.append(f"the work failed with status {status}")
        self.deaths += os.WIFSIGNALED(status)
        return int(lines[-1]) if lines else 0, os.WIFSIGNALED(status)

    def at_every_call(self, stride: int) -> None:
        """Die before each call, after it, and after half of a write."""
        for when in ("before", "after", "half"):
            number = 0
            while self.at_call(when, number):
                number += stride

    def at_call(self, when: str, number: int) -> bool:
        shutil.rmtree(self.folder, ignore_errors=True)

        def die(call: Call, *_: object) -> None:
            if call.number == number:
                os.kill(os.getpid(), signal.SIGKILL)

        def work(report: Report) -> None:
            system = System()
            if when == "before":
                system.before = die
            else:
                system.after = die
                system.halved = number if when == "half" else -1
            store, model = open_store(self.folder, self.durability), STATES[0].copy()
            with system.in_force():
                for done, step in enumerate(STEPS, 1):
                    step(store, model)
                    report(done)

        done, was_killed = self.die(work)
        self.look(done, f"{when} call {number}")
        return was_killed

    def at_random(self, times: int) -> None:
        """Die at random moments of a history that is carried on by the next process."""
        chance = Random(self.durability)
        shutil.rmtree(self.folder, ignore_errors=True)
        number = 0
        for _ in range(times):

            def work(report: Report, number: int = number) -> None:
                store = open_store(self.folder, self.durability)
                while True:
                    data = b"%d" % number
                    number = store.append(STREAM, number, [data], contents={data.hex(): data * 100})
                    report(number)
                    if not number % 7:
                        store.trim(STREAM, number - 20, contents=[(b"%d" % (number - 22)).hex()])

            def kill(child: int) -> None:
                time.sleep(0.002 + chance.random() * 0.02)
                os.kill(child, signal.SIGKILL)

            reported, _ = self.die(work, kill)
            reported = max(reported, number)
            store = open_store(self.folder, self.durability)
            head, frames = store.head(STREAM), list(store.read(STREAM))
            if head not in (reported, reported + 1):
                self.found.append(f"frame {reported} was reported, and the stream ends at {head}")
            first = frames[0].number if frames else head + 1
            if frames != [(at, b"%d" % (at - 1)) for at in range(first, head + 1)]:
                self.found.append(f"the frames are wrong at {head}")
            wanted = [b"%d" % (at - 1) for at in range(first, head + 1)]
            if store.get_contents(STREAM, [data.hex() for data in wanted]) != {
                data.hex(): data * 100 for data in wanted
            }:
                self.found.append(f"the contents are wrong at {head}")
            number = head

    def look(self, done: int, when: str) -> None:
        """Check that everything that was reported is present, and that the next step is complete or absent."""
        store = open_store(self.folder, "process")
        try:
            at = position(store, STATES)
            if not {done, done + 1} & set(at):
                self.found.append(f"{when}: {done} steps were reported, and the state is that after {at}")
            else:
                finish(store, at[-1], STATES)
        except (OSError, AssertionError) as error:
            self.found.append(f"{when}: {error!r}")


def main(folder: Path, durability: Durability, stride: int, times: int) -> dict[str, object]:
    attempts = Attempts(folder, durability)
    attempts.at_every_call(stride)
    attempts.at_random(times)
    # Whatever killed processes left behind is removed by the next one that writes a file.
    open_store(folder / "store", durability).put_checkpoint(STREAM, Checkpoint(0, b""))
    left = os.listdir(folder / "store" / ".temporary")
    return {"found": attempts.found, "deaths": attempts.deaths, "left": len(left)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), cast(Durability, sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
