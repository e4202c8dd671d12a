"""A long session: the memory that each tool call leaves behind, and whether the last calls are as fast as the first.

`python -m benchmarks.life --calls 1000000` writes, reads and edits 200 small files in memory, one call after another,
and then saves the session, loads it and compacts it. Times are this process's own, with the garbage collector on.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import process_time_ns

from attrs import define, field

from benchmarks.units import bytes_text, count_text, time_text
from weakfs import Session, Toolset
from weakfs.tools import ToolCall

FILES = 200
FIRST = 50_000
WORDS = [f"word{number}" for number in range(2000)]


@define(slots=False)
class Life:
    """A session whose calls write, read and edit its files in turn."""

    session: Session = field(factory=lambda: Session(session_id="life"))
    random: Random = field(factory=lambda: Random(1))
    # The current contents of the session's files, and the number of bytes ever written to them.
    files: dict[str, str] = field(factory=dict[str, str])
    written: int = 0
    made: int = 0

    def __attrs_post_init__(self) -> None:
        self.tools = Toolset(self.session)

    def call(self, count: int) -> float:
        """Make this many calls, and return the nanoseconds per call."""
        begun = process_time_ns()
        for number in range(self.made, self.made + count):
            path = f"/src/package{number % 20}/module{number % FILES}.py"
            kind = number // FILES % 3
            if kind == 0 or path not in self.files:
                self.files[path] = "".join(self.line() for _ in range(self.random.randint(2, 6)))
                self.perform("write_file", path=path, content=self.files[path])
            elif kind == 1:
                self.perform("read_file", path=path)
            else:
                old, new = self.files[path].splitlines(keepends=True)[1], self.line()
                self.files[path] = self.files[path].replace(old, new)
                self.perform("edit_file", path=path, old_string=old, new_string=new)
            self.written += len(self.files[path]) * (kind != 1)
        self.made += count
        return (process_time_ns() - begun) / count

    def perform(self, name: str, **arguments: object) -> None:
        result = self.tools.call(name, arguments, caller="agent")
        if not result.success:
            raise SystemExit(f"{name} failed: {result.message}")

    def line(self) -> str:
        return " ".join(self.random.choices(WORDS, k=8)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.life", description="Measure a long session.")
    parser.add_argument("--calls", type=int, default=100_000, help="how many calls to make (100,000)")
    parser.add_argument("--trace", action="store_true", help="count bytes with tracemalloc; slows the calls")
    asked = parser.parse_args()
    if asked.trace:
        tracemalloc.start()
    life, first = Life(), min(FIRST, asked.calls // 4)
    fast = life.call(first)
    resident, traced, collection = resident_bytes(), traced_bytes(), timed(gc.collect)
    print(f"first {count_text(first)} calls: {time_text(fast)} each; full collection {time_text(collection)}")
    life.call(asked.calls - 2 * first)
    slow = life.call(first)
    collection = timed(gc.collect)
    print(f"last {count_text(first)} calls: {time_text(slow)} each; full collection {time_text(collection)}")
    print(f"resident: {(resident_bytes() - resident) / (life.made - first):.0f} B per call, with all contents")
    if asked.trace:
        print(f"traced: {(traced_bytes() - traced) / (life.made - first):.0f} B per call")
    print(f"contents written: {life.written / life.made:.0f} B per call")
    keep(life)


def keep(life: Life) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "session.json")
        before = resident_bytes()
        saved = timed(lambda: life.session.save(path))
        peak = getrusage(RUSAGE_SELF).ru_maxrss * 1024 - before
        size = os.path.getsize(path)
        print(f"save: {time_text(saved)}, {bytes_text(size)}, {bytes_text(peak)} on top of {bytes_text(before)} held")
        print(f"load: {time_text(timed(lambda: Session.load(path)))}")
    print(f"compact: {time_text(timed(lambda: life.session.compact(keep=1000, keep_calls=1000)))}")
    print(f"calls that remain: {count_text(len(life.session[ToolCall].all()))}")


def timed(act: Callable[[], object]) -> float:
    begun = process_time_ns()
    act()
    return process_time_ns() - begun


def resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


if __name__ == "__main__":
    main()
