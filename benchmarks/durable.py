"""Measure sessions in a folder: `python -m benchmarks.durable`.

Tool calls in a session in memory and in one in a folder, in turns of 100, compared with the minimum that a stored call
needs: JSON of a frame of 900 bytes, the lock, a check of the file and one write. Then opening a session of 10,000 files
with 10,000 records since its checkpoint. All times are the processor time of this process, with the garbage collector
on.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time_ns
from unittest.mock import patch

import orjson

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session.durable.checkpoints.checkpoints import Checkpointing

TURN, TURNS = 100, 40
FILES = RECORDS = 10_000


def spent(work: Callable[[], object]) -> float:
    """Return the processor time of some work in milliseconds."""
    begin = process_time_ns()
    work()
    return (process_time_ns() - begin) / 1e6


class Calls:
    """Tool calls on one session."""

    def __init__(self, session: Session) -> None:
        self.tools, self.number = Toolset(session), 0
        self.call("write_file", path="edited.py", content="value = 0\n" + "x = 1\n" * 30)

    def call(self, name: str, **arguments: object) -> None:
        result = self.tools.call(name, arguments)
        assert result.success, result.message

    def write(self, lines: int = 6) -> None:
        self.number += 1
        self.call("write_file", path=f"src/{self.number % 200}.py", content=f"line {self.number:05d}\n" * lines)

    def write_3_kb(self) -> None:
        self.write(270)

    def edit(self) -> None:
        old, self.number = self.number, self.number + 1
        self.call("edit_file", path="edited.py", old_string=f"value = {old}\n", new_string=f"value = {old + 1}\n")

    def read(self) -> None:
        self.call("read_file", path="edited.py")


def calls(folder: Path) -> None:
    bare = floor(folder)
    print(f"the minimum for a stored call: {bare:.1f} us")
    for kind in (Calls.write, Calls.write_3_kb, Calls.edit, Calls.read):
        session = Session.open(folder / kind.__name__, "s")
        both = Calls(Session()), Calls(session)
        times: tuple[list[float], list[float]] = [], []
        for _ in range(TURNS):
            for own, spans in zip(both, times, strict=True):
                spans.append(spent(lambda own=own, kind=kind: [kind(own) for _ in range(TURN)]) * 1000 / TURN)
        session.close()
        memory, stored = map(sorted, times)
        ratios = f"{stored[0] / memory[0]:.2f} at best, {stored[TURNS // 2] / memory[TURNS // 2]:.2f} median"
        least = (memory[0] + bare) / memory[0]
        print(
            f"{kind.__name__:<12}{memory[0]:.0f} us in memory; in a folder {ratios}; memory and the minimum {least:.2f}"
        )


def floor(folder: Path) -> float:
    file = os.open(folder / "floor", os.O_RDWR | os.O_CREAT)
    record = {"at": 1, "type": "tools/called", "cause": "call", "event": {"arguments": "x" * 300, "receipt": "y" * 400}}
    frame = {"id": "0123456789ab-1", "after": 1, "counter": 1, "records": [record]}

    def store() -> None:
        data = orjson.dumps(frame)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.pwrite(file, data, os.fstat(file).st_size)
        fcntl.flock(file, fcntl.LOCK_UN)

    least = min(spent(lambda: [store() for _ in range(TURN)]) for _ in range(TURNS)) * 1000 / TURN
    os.close(file)
    return least


def opening(folder: Path) -> None:
    for kind in ("write", "call", "edit"):
        where, dice = folder / f"open {kind}", Random(1)
        session = Session.open(where, "s")
        files, tools = InMemoryFilesystem(session), Toolset(session)
        paths = [f"/p{number // 20 % 50}/d{number // 20}/f{number}.py" for number in range(FILES)]
        with session.transaction():
            for path in paths:
                files.write(path, f"value {path} " + "some words " * dice.randrange(1, 100))
        session.checkpoint()
        first = session.seq
        with patch.object(Checkpointing, "begin", lambda *_, **__: None):
            while session.seq - first < RECORDS:
                path, words = dice.choice(paths), f"new {session.seq} " + "words " * dice.randrange(1, 200)
                if kind == "write":
                    files.write(path, words)
                elif kind == "call":
                    tools.call("write_file", {"path": path, "content": words})
                else:
                    old = files.read(path).content.split()[0]
                    tools.call("edit_file", {"path": path, "old_string": f"{old} ", "new_string": f"v{session.seq} "})
        session.close()
        times = [spent(lambda where=where: Session.open(where, "s").close()) for _ in range(9)]
        print(f"open after {RECORDS:,} records ({kind}): {min(times):.0f} ms at best, {sorted(times)[4]:.0f} ms median")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        calls(Path(folder))
        opening(Path(folder))


if __name__ == "__main__":
    main()
