"""A long session: the memory that each tool call leaves behind, and whether the last calls are as fast as the first.

`python -m benchmarks.life --calls 1000000` writes, reads and edits 200 small files in memory, one call after another,
and then saves the session, loads it and compacts it. Times are this process's own, with the garbage collector on.
`--picture FILE.svg` draws time, memory and the longest pauses, block by block; it needs matplotlib, which is in the
environment `harness`.

The memory of a call is shown in two parts. `contents` are the contents that the calls wrote, as the packed history
holds them: in the records of files and in the arguments of calls. They are measured as the memory that packing the same
stretches without them saves. The rest is overhead: the records, calls and checkpoints themselves.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import perf_counter_ns, process_time_ns

from attrs import define, field, fields_dict

from benchmarks.units import bytes_text, count_text, time_text
from weakfs import Session, Toolset
from weakfs.session.history.packed_rows import PackedRecords, pack_rows
from weakfs.tools import ToolCall

FILES = 200
# The calls are measured in this many blocks; the first and the last are compared.
BLOCKS = 20
# How many packed stretches of 512 records are examined.
SAMPLE = 200
ARGUMENTS = list(fields_dict(ToolCall)).index("arguments")
WORDS = [f"word{number}" for number in range(2000)]


@define
class Block:
    """The times of some calls in nanoseconds: processor time per call, the longest call and the longest collection."""

    calls: int
    per_call: float
    longest_call: int
    longest_collection: int
    resident: int


@define(slots=False)
class Life:
    """A session whose calls write, read and edit its files in turn."""

    session: Session = field(factory=lambda: Session(session_id="life"))
    random: Random = field(factory=lambda: Random(1))
    # The current contents of the session's files, and the number of bytes ever written to them.
    files: dict[str, str] = field(factory=dict[str, str])
    written: int = 0
    made: int = 0
    longest: int = 0

    def __attrs_post_init__(self) -> None:
        self.tools = Toolset(self.session)

    def call(self, count: int) -> Block:
        """Make this many calls."""
        self.longest = 0
        collections: list[int] = []
        gc.callbacks.append(lambda *_: collections.append(perf_counter_ns()))
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
        per_call = (process_time_ns() - begun) / count
        gc.callbacks.pop()
        self.made += count
        # Each collection is noted at its start and at its end.
        pauses = [end - start for start, end in list(pairwise(collections))[::2]]
        return Block(self.made, per_call, self.longest, max(pauses, default=0), resident_bytes())

    def perform(self, name: str, **arguments: object) -> None:
        begun = perf_counter_ns()
        result = self.tools.call(name, arguments, caller="agent")
        self.longest = max(self.longest, perf_counter_ns() - begun)
        if not result.success:
            raise SystemExit(f"{name} failed: {result.message}")

    def line(self) -> str:
        return " ".join(self.random.choices(WORDS, k=8)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.life", description="Measure a long session.")
    parser.add_argument("--calls", type=int, default=100_000, help="how many calls to make (100,000)")
    parser.add_argument("--trace", action="store_true", help="count bytes with tracemalloc; slows the calls")
    parser.add_argument("--picture", type=Path, help="draw the blocks into this SVG file")
    asked = parser.parse_args()
    if asked.trace:
        tracemalloc.start()
    life, size = Life(), max(asked.calls // BLOCKS, 1)
    blocks = [life.call(size)]
    traced, collection = traced_bytes(), timed(gc.collect)
    print(f"first {count_text(size)} calls: {time_text(blocks[0].per_call)} each; collection {time_text(collection)}")
    blocks += [life.call(size) for _ in range(BLOCKS - 1)]
    collection = timed(gc.collect)
    print(f"last {count_text(size)} calls: {time_text(blocks[-1].per_call)} each; collection {time_text(collection)}")
    print(f"longest call: {time_text(max(block.longest_call for block in blocks))}")
    print(f"longest collection: {time_text(max(block.longest_collection for block in blocks))}")
    memory = (resident_bytes() - blocks[0].resident) / (life.made - size)
    print(f"resident: {memory:.0f} B per call, with all contents")
    if asked.trace:
        print(f"traced: {(traced_bytes() - traced) / (life.made - size):.0f} B per call")
    written, held = life.written / life.made, contents_held(life)
    print(f"of it contents: {held:.0f} B per call, of {written:.0f} B that a call wrote")
    print(f"of it ours: {memory - held:.0f} B per call")
    if asked.picture is not None:
        draw(blocks, asked.picture)
    keep(life)


def draw(blocks: Sequence[Block], file: Path) -> None:
    from matplotlib import pyplot

    panels = {
        "time per call, µs": [block.per_call / 1e3 for block in blocks],
        "memory, MiB": [block.resident / (1 << 20) for block in blocks],
        "longest call, ms": [block.longest_call / 1e6 for block in blocks],
        "longest collection, ms": [block.longest_collection / 1e6 for block in blocks],
    }
    pyplot.rcParams.update({"svg.hashsalt": "weakfs", "svg.fonttype": "none"})
    figure, axes = pyplot.subplots(2, 2, figsize=(8, 5), sharex=True, layout="constrained")
    for axis, (title, values) in zip(axes.flat, panels.items(), strict=True):
        axis.plot([block.calls / 1e3 for block in blocks], values, marker=".")
        axis.set_ylim(bottom=0)
        axis.set_title(title)
        axis.grid(alpha=0.3)
    figure.supxlabel("calls, thousands")
    figure.savefig(file, metadata={"Date": None})


def contents_held(life: Life) -> float:
    """Return how many bytes contents take up in the packed history, per call."""
    stretches = [stretch.items for stretch, _ in life.session._parts()[1].rows._stretches()]
    packed = [stretch for stretch in stretches if isinstance(stretch, PackedRecords) and not stretch.is_loose]
    saved = calls = 0
    for stretch in packed[:: len(packed) // SAMPLE + 1]:
        by_tag: dict[str, list[tuple[object, ...]]] = {}
        for row in stretch.load():
            by_tag.setdefault(row[2], []).append(row[3])
        for (tag, rows), block in zip(by_tag.items(), stretch.blocks, strict=True):
            bare = pack_rows([without_contents(tag, row) for row in rows])
            saved += len(block[1] or b"") - len(bare[1] or b"") + sum(map(len, block[2]))
            calls += len(rows) * (tag == "tools/called")
    return saved / max(calls, 1)


def without_contents(tag: str, row: tuple[object, ...]) -> tuple[object, ...]:
    if tag == "tools/called":
        arguments = json.loads(str(row[ARGUMENTS]))
        bare = {name: value for name, value in arguments.items() if name == "path"}
        return (*row[:ARGUMENTS], json.dumps(bare), *row[ARGUMENTS + 1 :])
    return tuple(b"" if isinstance(value, bytes | tuple) else value for value in row)


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
