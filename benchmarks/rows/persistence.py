"""Save and load a session whose files were made by events or by tool calls, compared with hand-written orjson."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time_ns
from typing import Any

from benchmarks.handwritten import Handwritten
from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Timing
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session import Session as AnySession
from weakfs.tools import ToolCall

HANDWRITTEN = "orjson by hand"


CALLS = 10_000
"""The largest tree that is also made by tool calls."""


def measure(bench: Bench) -> Iterator[Result]:
    bench.ours.seed(bench.tree)
    yield from saved_and_loaded(bench, bench.ours.session, Handwritten.holding(bench.tree), "")
    if bench.size <= CALLS:
        tools, by_hand = Toolset(Session()), Handwritten.holding(bench.tree)
        for path, text in bench.tree.files():
            tools.call("write_file", {"path": path, "content": text})
        for call in tools.session[ToolCall].all():
            texts = [one.decode() if isinstance(one, bytes) else one for one in (call.arguments, call.receipt)]
            by_hand.calls.append(
                (
                    *(call.call_id, call.tool, *texts, call.status, call.error_code, call.summary, call.caller),
                    *(call.started_at, call.ended_at, call.first_seq, call.last_seq),
                )
            )
        yield from saved_and_loaded(bench, tools.session, by_hand, " with calls")


def saved_and_loaded(bench: Bench, session: AnySession, handwritten: Handwritten, what: str) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        mine, theirs = Path(folder) / "ours.json", Path(folder) / "theirs.json"
        saving = alternately(lambda: session.save(mine), lambda: handwritten.save(theirs))
        loading = alternately(lambda: Session.load(mine), lambda: Handwritten.load(theirs))
        assert Handwritten.load(theirs).root == handwritten.root
        loaded = InMemoryFilesystem(Session.load(mine)).read(bench.tree.path(0)).content
        assert loaded == bench.tree.text(0), "a loaded session does not hold what was saved"
        sizes = mine.stat().st_size, theirs.stat().st_size
    for row, (ours, other) in (("save", saving), ("load", loading)):
        yield timed(f"{row}{what}", bench.size, bench.ours.name, ours)
        yield timed(f"{row}{what}", bench.size, HANDWRITTEN, other, ours=ours)
    yield Result(f"bytes saved{what}", bench.size, bench.ours.name, sizes[0])
    yield Result(f"bytes saved{what}", bench.size, HANDWRITTEN, sizes[1], ours=sizes[0])


def alternately(ours: Callable[[], Any], theirs: Callable[[], Any], *, repeats: int = 9) -> list[Timing]:
    """Measure the processor time of both in turn; the result of each is released before the next begins."""
    samples: list[list[float]] = [[], []]
    for _ in range(repeats):
        for act, taken in zip((ours, theirs), samples, strict=True):
            start = process_time_ns()
            result = act()
            taken.append(process_time_ns() - start)
            del result
    return [Timing.of(taken) for taken in samples]
