"""Measure sessions in a folder: `python -m benchmarks.durable`.

Tool calls in a session in memory and in one in a folder, in turns of 40. A third session in memory shows what every
stored call needs: after each call, it writes the JSON of a frame, with its checksum and the digest of contents of more
than 512 bytes, by lock, check of the file, one write and unlock. Then opening a session of 10,000 files with 10,000
records since its checkpoint. All times are the processor time of this process, which stays on one processor, with the
garbage collector on.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import median
from time import process_time_ns
from unittest.mock import patch
from zlib import crc32

import orjson

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session.durable.checkpoints.checkpoints import Checkpointing

TURN, TURNS = 40, 100
FILES = RECORDS = 10_000


def spent(work: Callable[[], object]) -> float:
    """Return the processor time of some work in milliseconds."""
    begin = process_time_ns()
    work()
    return (process_time_ns() - begin) / 1e6


class Calls:
    """Tool calls on one session. `after` is run after each call, with the size of the content that it writes."""

    def __init__(self, session: Session, after: Callable[[int], object] | None = None) -> None:
        self.tools, self.number, self.after = Toolset(session), 0, after
        self.call("write_file", path="edited.py", content="value = 0\n" + "x = 1\n" * 30)

    def call(self, name: str, **arguments: object) -> None:
        result = self.tools.call(name, arguments)
        assert result.success, result.message
        if self.after is not None:
            self.after(len(str(arguments.get("content", ""))))

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


class Minimum:
    """What every stored call needs, without anything of weakfs."""

    def __init__(self, path: Path) -> None:
        self.folder = os.open(path.parent, os.O_RDONLY)
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        self.name, self.end = path.name, 0
        event = {"arguments": "x" * 300, "receipt": "y" * 400}
        self.frame = {"id": "0123456789ab-1", "after": 1, "records": [[1, "call", "tools/called", event]]}
        self.contents = bytes(10_000)

    def store(self, size: int) -> None:
        data = orjson.dumps(self.frame)
        if size > 512:
            content = self.contents[:size]
            data = sha256(content).digest() + content + data
        data += crc32(data).to_bytes(4, "little")
        fcntl.flock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert os.stat(self.name, dir_fd=self.folder).st_size == self.end
        self.end += os.pwrite(self.file, data, self.end)
        fcntl.flock(self.folder, fcntl.LOCK_UN)


def calls(folder: Path) -> None:
    for kind in (Calls.write, Calls.write_3_kb, Calls.edit, Calls.read):
        session = Session.open(folder / kind.__name__, "s")
        minimum = Minimum(folder / f"minimum of {kind.__name__}")
        sessions = Calls(Session()), Calls(session), Calls(Session(), minimum.store)
        times: tuple[list[float], ...] = ([], [], [])
        for turn in range(TURNS + 5):
            for own, spans in zip(sessions, times, strict=True):
                span = spent(lambda own=own, kind=kind: [kind(own) for _ in range(TURN)]) * 1000 / TURN
                if turn >= 5:
                    spans.append(span)
        session.close()
        stored, least = (median(span / own for span, own in zip(spans, times[0], strict=True)) for spans in times[1:])
        print(
            f"{kind.__name__:<12}{median(times[0]):.0f} us in memory; in a folder {stored:.2f}; in memory with "
            f"the minimum {least:.2f} (medians)"
        )


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
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(dir=".") as folder:
        calls(Path(folder))
        opening(Path(folder))


if __name__ == "__main__":
    main()
