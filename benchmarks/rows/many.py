"""Many kept snapshots, many sessions in one process, and many agents that await calls at once."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from functools import partial

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.rows.calls import CALL, each, toolset
from benchmarks.timing import Timing, in_turn, nanoseconds
from weakfs import InMemoryFilesystem, Session, Toolset

KEPT = 5_000
AGENTS = 200
CALLS_OF_AN_AGENT = 5
SESSIONS = 5_000
NONE = "without"


def measure(bench: Bench) -> Iterator[Result]:
    repeats = 5 if bench.quick else 15
    paths = [f"/d{n // 100}/s{n % 100 // 20}/f{n}.txt" for n in range(bench.size)]
    yield from with_snapshots(bench, paths, repeats)
    yield from by_agents(bench, paths, repeats)
    yield from sessions(bench)


def with_snapshots(bench: Bench, paths: list[str], repeats: int) -> Iterator[Result]:
    plain, keeping = toolset(paths), toolset(paths)
    for number in range(KEPT):
        keeping.filesystem.write(paths[number % len(paths)], f"text {number}\n")
        keeping.session.snapshot()
    for row, act in (("call write", call_write), ("fork write merge", fork_and_merge)):
        name = f"{row}, {KEPT:,} kept"
        measured = {name: partial(each, partial(act, keeping, paths)), NONE: partial(each, partial(act, plain, paths))}
        taken = in_turn(measured, repeats=repeats)
        yield timed(name, bench.size, bench.ours.name, taken[name])
        yield timed(name, bench.size, NONE, taken[NONE], ours=taken[name])


def call_write(tools: Toolset, paths: list[str]) -> None:
    number = tools.session.seq
    tools.call("write_file", {"path": paths[number * 7 % len(paths)], "content": f"text {number}\n"})


def fork_and_merge(tools: Toolset, paths: list[str]) -> None:
    session, number = tools.session, tools.session.seq
    fork = session.fork()
    InMemoryFilesystem(fork).write(paths[number * 7 % len(paths)], f"text {number}\n")
    session.merge(fork)


def by_agents(bench: Bench, paths: list[str], repeats: int) -> Iterator[Result]:
    tools, other = toolset(paths), toolset(paths)

    async def agent() -> None:
        for _ in range(CALLS_OF_AN_AGENT):
            number = tools.session.seq
            await tools.acall("write_file", {"path": paths[number * 7 % len(paths)], "content": f"text {number}\n"})

    async def run() -> None:
        await asyncio.gather(*(agent() for _ in range(AGENTS)))

    def at_once() -> float:
        return nanoseconds(lambda: asyncio.run(run())) / (AGENTS * CALLS_OF_AN_AGENT)

    row = f"acall by {AGENTS} agents"
    taken = in_turn({row: at_once, CALL: partial(each, partial(call_write, other, paths))}, repeats=repeats)
    yield timed(row, bench.size, bench.ours.name, taken[row])
    yield timed(row, bench.size, CALL, taken[CALL], ours=taken[row])


def sessions(bench: Bench) -> Iterator[Result]:
    name = bench.ours.name
    made = [Toolset(Session()) for _ in range(10)]
    yield timed(
        "new session", bench.size, name, Timing.of([nanoseconds(lambda: Toolset(Session())) for _ in range(500)])
    )
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    made = [Toolset(Session()) for _ in range(SESSIONS)]
    gc.collect()
    yield Result("bytes a session", bench.size, name, tracemalloc.get_traced_memory()[0] / SESSIONS)
    tracemalloc.stop()
    yield Result("count a session", bench.size, name, (len(gc.get_objects()) - objects) / SESSIONS)
    row = f"collection, {SESSIONS:,} sessions"
    yield timed(row, bench.size, name, Timing.of([nanoseconds(gc.collect) for _ in range(5)]))
    del made
