"""Measure the journal of the folder engine: `python -m benchmarks.journal [FRAMES]`.

An append of a frame of 500 bytes with contents of 1,000 bytes, compared with a bare `os.write` of both, in turns of
200, of which the fastest counts. The same with durability "power", compared with `os.fdatasync`. Then a long stream:
the time of appends as it grows, memory, space, and the time to open it.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from time import perf_counter

from weakfs.storage import Checkpoint
from weakfs.storage.folder import FolderEventStore

TURN = 200
FRAME = b"f" * 500


def contents() -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        yield number.to_bytes(8, "big") * 125


def fastest(work: Callable[[], object], turns: int, each: int = TURN) -> float:
    """Return the time of one call in microseconds, in the fastest of some turns."""
    times: list[float] = []
    for _ in range(turns):
        begin = perf_counter()
        for _ in range(each):
            work()
        times.append((perf_counter() - begin) / each * 1e6)
    return min(times)


class Appender:
    """Appends frames one at a time, each with a blob of its own."""

    def __init__(self, store: FolderEventStore) -> None:
        self.store, self.contents, self.number = store, contents(), 0
        self.waiting: list[tuple[str, bytes]] = []

    def prepare(self, count: int) -> None:
        """Make contents with their digests, which callers usually have already."""
        self.waiting += ((sha256(data).hexdigest(), data) for _, data in zip(range(count), self.contents, strict=False))

    def __call__(self) -> None:
        digest, data = self.waiting.pop()
        self.number = self.store.append("s", self.number, [FRAME], contents={digest: data})


def short(folder: Path) -> None:
    data = FRAME + next(contents())
    file = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT)
    bare = fastest(lambda: os.write(file, data), 50)
    append = Appender(FolderEventStore(folder / "process"))
    append.prepare(50 * TURN)
    print(f"append, process: {fastest(append, 50):.1f} us, bare write {bare:.1f} us")

    def synced() -> None:
        os.write(file, data)
        os.fdatasync(file)

    append = Appender(FolderEventStore(folder / "power", "power"))
    append.prepare(200)
    print(f"append, power: {fastest(append, 10, 20):.0f} us, write and fdatasync {fastest(synced, 10, 20):.0f} us")
    os.close(file)


def long(folder: Path, frames: int) -> None:
    append = Appender(FolderEventStore(folder / "long"))
    part = frames // 10
    file, data = os.open(folder / "beside", os.O_WRONLY | os.O_CREAT), FRAME + next(contents())
    for turn in range(10):
        times: list[float] = []
        bare = 1e9
        for _ in range(part // TURN):
            append.prepare(TURN)
            times.append(fastest(append, 1))
            os.lseek(file, 0, os.SEEK_SET)
            bare = min(bare, fastest(lambda: os.write(file, data), 1))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        times.sort()
        figures = f"{times[0]:.1f} us at best, {times[len(times) // 2]:.1f} us median, bare write {bare:.1f} us"
        print(f"frames {turn * part:>9,} on: {figures}, {peak} MB")
    os.close(file)
    taken = sum(path.stat().st_size for path in (folder / "long").rglob("*") if path.is_file())
    print(f"space: {taken / append.number / (len(FRAME) + 1000):.3f} of frames and contents")
    append.store.put_checkpoint("s", Checkpoint(append.number, b"state"))
    append.prepare(10_000)
    for _ in range(10_000):
        append()
    begin = perf_counter()
    store = FolderEventStore(folder / "long")
    checkpoint = store.get_checkpoint("s")
    assert checkpoint is not None
    read = sum(1 for _ in store.read("s", after=checkpoint.number))
    print(f"open, with {read:,} frames after the checkpoint: {(perf_counter() - begin) * 1e3:.0f} ms")
    begin = perf_counter()
    store.has_contents("s", ["00"])
    print(f"first look for a content: {(perf_counter() - begin) * 1e3:.1f} ms")


def main() -> None:
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir=".") as folder:
        short(Path(folder))
        long(Path(folder), frames)


if __name__ == "__main__":
    main()
