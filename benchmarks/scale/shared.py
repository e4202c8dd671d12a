"""One session that all workers change at once, each merging its calls with those of the others.

Every call is a patch. It increments the worker's own line in a shared file; every second call also adds a file; and
every third one increments a shared number, so that two workers conflict and one has to read and try again. A lost
update shows in the number. The name of the worker is written next to it, because a merge treats two equal changes as
one, as git does.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator
from time import perf_counter_ns

from benchmarks.scale.processes import Report, Work
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.storage import EventStore, open_event_store
from weakfs.tools import ToolCall

SESSION = "shared"
BOARD, NUMBER = "/board", "/number"


def line(name: str, number: int) -> str:
    return f"{name}: {number}"


def added(name: str, number: int) -> tuple[str, str]:
    """Return the path and the text of the file that a call adds."""
    return f"/{name}/{number}", f"call {number} of {name}\n"


def patch(name: str, number: int, counted: str) -> str:
    """Return the patch of a call, made when the file with the shared number has the line `counted`."""
    parts = [f"*** Update File: {BOARD}\n@@\n-{line(name, number - 1)}\n+{line(name, number)}\n"]
    if number % 2 == 0:
        path, text = added(name, number)
        parts.append(f"*** Add File: {path}\n+{text}")
    if number % 3 == 0:
        parts.append(f"*** Update File: {NUMBER}\n@@\n-{counted}\n+{number_in(counted) + 1} by {name}.{number}\n")
    return f"*** Begin Patch\n{''.join(parts)}*** End Patch"


def number_in(text: str) -> int:
    return int(text.split(" ")[0])


def preparer(location: str) -> Work:
    """Return the work that makes the session; a job has the names of the lines of calls."""

    def work(jobs: Iterator[str], report: Report) -> None:
        for job in jobs:
            with Session.open(location, SESSION) as session:
                fs = InMemoryFilesystem(session)
                fs.write(BOARD, "".join(f"{line(name, 0)}\n" for name in job.split(" ")))
                fs.write(NUMBER, "0 by nobody\n")
            report("finished")

    return work


def worker(location: str, *, awaits: bool = False) -> Work:
    """Return the work on the session; a job is the name of a line of calls, and how many to make.

    With `awaits`, on an event loop that awaits its calls.
    """

    def work(jobs: Iterator[str], report: Report) -> None:
        store = None if awaits else open_event_store(location)
        for job in jobs:
            name, calls = job.split(" ")
            asyncio.run(_turn(store, location, name, int(calls), report))
        if store is not None:
            store.close()

    return work


async def _turn(store: EventStore | None, location: str, name: str, calls: int, report: Report) -> None:
    """Make calls in a store, or await them at a location."""
    awaits = store is None
    begin = perf_counter_ns()
    if store is None:
        session = await Session.aopen(location, SESSION, on_conflict="merge")
    else:
        session = Session.open(store, SESSION, on_conflict="merge")
    tools, fs = Toolset(session), InMemoryFilesystem(session)
    took = perf_counter_ns() - begin
    done = board(fs)[name]
    report("opened", done, took, 0)
    for number in range(done + 1, done + calls + 1):
        attempts, is_done = 0, False
        begin = perf_counter_ns()
        while not is_done:
            counted = fs.read(NUMBER).content.rstrip("\n")
            call_id, arguments = f"{name}.{number}.{attempts}", {"patch": patch(name, number, counted)}
            if awaits:
                result = await tools.acall("apply_patch", arguments, call_id=call_id)
            else:
                result = tools.call("apply_patch", arguments, call_id=call_id)
            is_done = result.success
            if not is_done:
                if number % 3 or result.error_code not in ("merge_conflict", "edit_target_not_found"):
                    raise RuntimeError(f"{call_id}: {result.message}")
                attempts += 1
                if awaits:
                    await session.arefresh()
                else:
                    session.refresh()
        report("called", number, perf_counter_ns() - begin, attempts)
    await session.aclose()
    report("finished")


def board(fs: InMemoryFilesystem) -> dict[str, int]:
    """Return how many calls each line has."""
    rows = (row.split(": ") for row in fs.read(BOARD).content.splitlines())
    return {name: int(number) for name, number in rows}


def checker(location: str) -> Work:
    """Return the check: a job is the name of a line, and the session is compared with the model of all lines."""

    def work(jobs: Iterator[str], report: Report) -> None:
        session = Session.open(location, SESSION)
        fs = InMemoryFilesystem(session)
        numbers = board(fs)
        for message in wrong(session, fs, numbers):
            report("wrong", message)
        for name in jobs:
            report("opened", numbers[name], 0, 0)
            report("finished")
        session.close()

    return work


def wrong(session: Session, fs: InMemoryFilesystem, numbers: dict[str, int]) -> Iterator[str]:
    """Yield the differences from the model, in which calls are made one after another."""
    files = {entry.path: fs.read(entry.path).content for entry in fs.walk() if entry.is_file}
    counted = sum(number // 3 for number in numbers.values())
    expected = {BOARD: "".join(f"{line(name, number)}\n" for name, number in numbers.items())}
    for name, number in numbers.items():
        expected |= dict(added(name, at) for at in range(2, number + 1, 2))
    last = files.pop(NUMBER)
    if number_in(last) != counted:
        yield f"the shared number is {last!r}, but it was incremented {counted} times"
    if files != expected:
        yield f"the files are not those of the model: {sorted(files.items() ^ expected.items())[:4]}"
    recorded: defaultdict[str, list[int]] = defaultdict(list)
    steps: list[int] = []
    for call in session[ToolCall].all():
        if call.status == "ok":
            name, number, _ = call.call_id.split(".")
            recorded[name].append(int(number))
            steps += map(int, re.findall(r"\+(\d+) by", str(call.read_arguments())))
    for name, order in recorded.items():
        # The record of a call whose worker was killed may be missing.
        if order != sorted(set(order)) or not set(order) <= set(range(1, numbers[name] + 1)):
            yield f"the calls of {name} are recorded as {order}"
    if len(steps) != len(set(steps)) or any(step > counted for step in steps):
        yield f"the shared number went through {steps}"
