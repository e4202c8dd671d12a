"""Measure reading the past: `python -m benchmarks.history [--files N ...] [--records N] [--reads N]`.

Times are the processor time of this process. `full collection` is the second of two in a row.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time_ns

from benchmarks.units import bytes_text, time_text
from weakfs import Session
from weakfs.reducers import FileTree, FileWritten

FILES_A_DIRECTORY = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description="Measure reading the past.")
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--reads", type=int, default=200)
    asked = parser.parse_args()
    for files in asked.files:
        print(f"{files:,} files, {asked.records:,} records")
        for name, shown in rows(files, asked.records, asked.reads):
            print(f"  {name:<42}{shown}", flush=True)


def rows(files: int, records: int, reads: int) -> Iterator[tuple[str, str]]:
    before = resident()
    start = process_time_ns()
    session, longest = written(files, records)
    yield "write", f"{time_text((process_time_ns() - start) / records)}, longest {time_text(longest)}"
    gc.collect()
    yield "memory", bytes_text(resident() - before)
    keyframes = session._parts()[1].keyframes
    yield "keyframes", f"{len(keyframes.kept)} kept, {len(keyframes.lasting)} in a file"
    yield "full collection", time_text(taken(gc.collect))
    yield "state at any record", read(session, records, reads)
    with tempfile.TemporaryDirectory(prefix="weakfs-history-") as folder:
        path = Path(folder) / "s.json"
        yield "save", time_text(taken(lambda: session.save(path)))
        yield "file", bytes_text(path.stat().st_size)
        del session, keyframes
        gc.collect()
        start = process_time_ns()
        session = Session.load(path)
        yield "load", time_text(process_time_ns() - start)
    yield "after loading, first read of each part", read(session, records, reads)
    yield "after loading, parts read before", read(session, records, reads)
    gc.collect()
    yield "full collection", time_text(taken(gc.collect))


def written(files: int, records: int) -> tuple[Session, int]:
    """Write every file once and then files at random; return the session and the time of the longest write."""
    session = Session(session_id="s")
    random = Random(1)
    directories = max(1, files // FILES_A_DIRECTORY)
    paths = [f"/{n % directories // 50}/{n % directories}/{n}.txt" for n in range(files)]
    longest = 0
    for number in range(records):
        path = paths[number] if number < files else paths[random.randrange(files)]
        event = FileWritten(path, b"content %d of this file, some bytes of it are here\n" % number * 2, number)
        start = process_time_ns()
        session.dispatch(event)
        longest = max(longest, process_time_ns() - start)
    return session, longest


def read(session: Session, records: int, reads: int) -> str:
    random = Random(7)
    times: list[int] = []
    for _ in range(reads):
        seq = random.randrange(1, records)
        start = process_time_ns()
        session.at(seq)[FileTree].latest()
        times.append(process_time_ns() - start)
    times.sort()
    middle, high = times[reads // 2], times[reads * 95 // 100]
    return f"worst {time_text(times[-1])}, p95 {time_text(high)}, median {time_text(middle)}"


def taken(act: object) -> int:
    assert callable(act)
    start = process_time_ns()
    act()
    return process_time_ns() - start


def resident() -> int:
    """Return the memory that this process occupies."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


if __name__ == "__main__":
    main()
