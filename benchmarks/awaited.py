"""Measure awaited calls: `python -m benchmarks.awaited [CALLS]`.

The time of one call that writes a file of 1 KB, for each engine: with `call`, with `acall` one after another, and with
`acall` for all calls at once, which share appends. The fastest of three turns counts; the servers sync every commit.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from itertools import count
from time import perf_counter

from benchmarks.scale.engines import ENGINES
from weakfs import Session, Toolset

TURNS = 3


def arguments(number: int) -> dict[str, object]:
    return {"path": f"/{number % 50}/{number}", "content": f"{number:8}" * 128}


def with_call(location: str | None, calls: int) -> float:
    with Session() if location is None else Session.open(location, "call") as session:
        tools, numbers = Toolset(session), count()
        times: list[float] = []
        for _ in range(TURNS + 1):
            begin = perf_counter()
            for _ in range(calls):
                assert tools.call("write_file", arguments(next(numbers))).success
            times.append(perf_counter() - begin)
        return min(times[1:]) / calls * 1e6


async def one_by_one(tools: Toolset, numbers: list[int]) -> None:
    for number in numbers:
        assert (await tools.acall("write_file", arguments(number))).success


async def at_once(tools: Toolset, numbers: list[int]) -> None:
    results = await asyncio.gather(*(tools.acall("write_file", arguments(number)) for number in numbers))
    assert all(result.success for result in results)


async def with_acall(
    location: str | None, calls: int, work: Callable[[Toolset, list[int]], Coroutine[object, None, None]]
) -> float:
    async with Session() if location is None else await Session.aopen(location, work.__name__) as session:
        tools = Toolset(session)
        times: list[float] = []
        for turn in range(TURNS + 1):
            begin = perf_counter()
            await work(tools, [turn * calls + number for number in range(calls)])
            times.append(perf_counter() - begin)
        return min(times[1:]) / calls * 1e6


def report(name: str, location: str | None, calls: int) -> None:
    times = (
        with_call(location, calls),
        asyncio.run(with_acall(location, calls, one_by_one)),
        asyncio.run(with_acall(location, calls, at_once)),
    )
    print(f"{name:16} {times[0]:8.0f} us {times[1]:8.0f} us {times[2]:8.0f} us")


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{'one call':16} {'call':>11} {'acall':>11} {'at once':>11}")
    report("in memory", None, calls)
    for name, open_engine in ENGINES.items():
        with open_engine() as engine:
            report(name, engine.location, calls)
            if name == "folder":
                report("folder, power", f"{engine.location}-power?durability=power", calls)


if __name__ == "__main__":
    main()
