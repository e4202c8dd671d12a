"""Blame of a file of 10,000 lines after 10,000 edits, compared with a replay of the same records."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Sampler, in_turn, nanoseconds
from weakfs import Session
from weakfs.reducers import FileSpliced, FileWritten

LINES = 10_000
EDITS = 10_000
REPLAY = "replay of its records"


def measure(bench: Bench) -> Iterator[Result]:
    session = edited()
    measured: dict[str, Sampler] = {
        "blame": partial(nanoseconds, partial(blamed, session)),
        "blame again": partial(nanoseconds, partial(session.blame, "/a.py")),
        REPLAY: partial(nanoseconds, partial(replayed, session)),
    }
    taken = in_turn(measured, repeats=3 if bench.quick else 5)
    for row in ("blame", "blame again"):
        yield timed(row, bench.size, bench.ours.name, taken[row])
        yield timed(row, bench.size, REPLAY, taken[REPLAY], ours=taken[row])


def edited() -> Session:
    """Return a session with a file and edits at random places, each of which changes a line."""
    session = Session(session_id="s")
    lines = [b"line %05d of this file, with some text\n" % number for number in range(LINES)]
    session.dispatch(FileWritten("/a.py", b"".join(lines), 0))
    random = Random(1)
    for number in range(EDITS):
        start = random.randrange(LINES) * len(lines[0])
        session.dispatch(FileSpliced("/a.py", ((start, start + 4, b"%04d" % number),), number), cause=f"c{number}")
    return session


def blamed(session: Session) -> object:
    """Blame for the first time: a fork has computed nothing yet."""
    return session.fork().blame("/a.py")


def replayed(session: Session) -> None:
    Session(session_id="s").replay(session.records)
