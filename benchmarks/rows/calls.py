"""Tool calls, transactions, forks and merges, and the cost of saving a call: on 1,000 files in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Sampler, Timing, in_turn, nanoseconds
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.tools import CONTENTS, Capability, Policy, PolicyRule

CALLS = 200
"""How many calls make one measurement."""
SAVED = 1_000
METHOD = "method"
CALL = "call"

POLICY = Policy([PolicyRule(effect="deny", operations=CONTENTS, paths=["/secrets", "*.key"], reason="credentials")])


def measure(bench: Bench) -> Iterator[Result]:
    repeats = 5 if bench.quick else 15
    for row, (ours, other, act) in rows(bench).items():
        measured: dict[str, Sampler] = {row: partial(each, ours)}
        if act is not None:
            measured[other] = partial(each, act)
        taken = in_turn(measured, repeats=repeats)
        yield timed(row, bench.size, bench.ours.name, taken[row])
        if act is not None:
            yield timed(row, bench.size, other, taken[other], ours=taken[row])
    yield timed("save a call", bench.size, bench.ours.name, saved(repeats))


def each(act: Callable[[], object]) -> float:
    """Return the nanoseconds of one of many repetitions."""

    def repeated() -> None:
        for _ in range(CALLS):
            act()

    return nanoseconds(repeated) / CALLS


def toolset(paths: list[str], *, capability: Capability | None = None, policy: Policy | None = None) -> Toolset:
    """Return the tools of a new session with a small file at each path."""
    tools = Toolset(Session(), capability=capability, policy=policy)
    for path in paths:
        tools.filesystem.write(path, "hello\nworld\n" * 3)
    return tools


def rows(bench: Bench) -> dict[str, tuple[Callable[[], object], str, Callable[[], object] | None]]:
    """Return the function that each row measures, and the one that it is compared with, by name."""
    paths = [f"/d{n // 100}/s{n % 100 // 20}/f{n}.txt" for n in range(bench.size)]
    plain, strict = toolset(paths), toolset(paths, capability=Capability(), policy=POLICY)
    session, fs, named = plain.session, plain.filesystem, toolset(paths)
    files = InMemoryFilesystem(session)
    loop, number = asyncio.new_event_loop(), iter(range(10**9))

    def some_path() -> str:
        return paths[next(number) * 7 % len(paths)]

    def text() -> str:
        return f"text {next(number)}\n"

    def call_write(tools: Toolset, caller: str | None = None) -> object:
        return tools.call("write_file", {"path": some_path(), "content": text()}, caller=caller)

    def call_read(tools: Toolset) -> object:
        return tools.call("read_file", {"path": some_path()})

    def await_write() -> object:
        return loop.run_until_complete(plain.acall("write_file", {"path": some_path(), "content": text()}))

    def await_nothing() -> object:
        loop.run_until_complete(asyncio.sleep(0))
        return call_write(plain)

    def edit() -> object:
        fs.write("/edited.txt", "hello\nworld\n" * 3)
        arguments = {"path": "/edited.txt", "old_string": "hello", "new_string": "good bye", "replace_all": True}
        return plain.call("edit_file", arguments)

    def edit_by_hand() -> object:
        fs.write("/edited.txt", "hello\nworld\n" * 3)
        return fs.write("/edited.txt", fs.read("/edited.txt").content.replace("hello", "good bye"))

    def transact(act: Callable[[], object]) -> None:
        with session.transaction():
            act()

    def fork_and_merge() -> None:
        fork = session.fork()
        files.bind(fork).write(some_path(), text())
        session.merge(fork)

    write: Callable[[], object] = lambda: fs.write(some_path(), text())  # noqa: E731
    return {
        "call write": (partial(call_write, plain), METHOD, write),
        "call read": (partial(call_read, plain), METHOD, lambda: fs.read(some_path())),
        "call edit": (edit, METHOD, edit_by_hand),
        "call stat": (lambda: plain.call("stat", {"path": some_path()}), METHOD, lambda: fs.stat(some_path())),
        "call write, policy": (partial(call_write, strict), CALL, partial(call_write, plain)),
        "call read, policy": (partial(call_read, strict), CALL, partial(call_read, plain)),
        "call write, caller": (partial(call_write, named, "ann"), CALL, partial(call_write, plain)),
        "acall write": (await_write, CALL, await_nothing),
        "transaction": (partial(transact, lambda: None), METHOD, None),
        "transaction write": (partial(transact, write), METHOD, write),
        "fork write merge": (fork_and_merge, METHOD, write),
    }


def saved(repeats: int) -> Timing:
    """Return the time that a call adds to saving its session."""
    session = Session()
    toolset = Toolset(session)
    toolset.call("write_file", {"path": "/a.txt", "content": "hello\n" * 20})
    with TemporaryDirectory() as folder:
        save = partial(session.save, Path(folder) / "session.json")
        before = min(nanoseconds(save) for _ in range(repeats))
        for _ in range(SAVED):
            toolset.call("read_file", {"path": "/a.txt"})
        return Timing.of([(nanoseconds(save) - before) / SAVED for _ in range(repeats)])
