"""The performance goals of weakfs, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.host_tree import READING, SCANS
from benchmarks.peers import ADAPTERS
from benchmarks.results import Result, Results
from benchmarks.subject import OURS
from benchmarks.units import bytes_text, count_text, factor_text, files_text, time_text

FLAT = 1.5
"""A cost that does not depend on size may still vary by this factor between sizes, because of cache misses."""

IN_PYTHON = [name for name, adapter in ADAPTERS.items() if not adapter.native]
NATIVE = [name for name, adapter in ADAPTERS.items() if adapter.native]
KIB = 1024
HOST_SIZES = (5_000, 50_000)


@dataclass(frozen=True)
class Verdict:
    """One line of the goals table; `met` is None if this run did not measure it."""

    what: str
    goal: str
    measured: str
    met: bool | None


def verdicts(results: Results) -> Iterator[Verdict]:
    yield flat(results, "write", "write of a small file, 1,000 versions kept", sizes=(100, 100_000))
    yield compared(
        results, "write", "write, compared with the fastest peer, which keeps no versions", list(ADAPTERS), 3
    )
    yield most(results, "longest write", "longest single write", 30_000_000, time_text)
    yield compared(results, "read", "read of text, compared with the fastest peer in Python", IN_PYTHON, 1.5)
    yield compared(results, "read_bytes", "read_bytes, compared with the fastest native core", NATIVE, 2)
    yield compared(results, "stat", "stat, compared with the fastest native core", NATIVE, 2)
    yield flat(results, "list", "list of a directory of 20 files")
    yield most(results, "snapshot", "snapshot", 5_000, time_text)
    yield most(results, "rollback", "rollback", 2_000, time_text)
    yield most(results, "fork", "fork", 2_000, time_text)
    for row in ("snapshot", "rollback", "fork"):
        yield flat(results, row, row)
    yield flat(results, "move all", "move of a directory that holds everything")
    yield flat(results, "delete all", "delete of a directory that holds everything")
    yield compared(results, "save", "save, compared with hand-written orjson", None, 2)
    yield compared(results, "load", "load, compared with hand-written orjson", None, 1.5)
    yield compared(results, "save with calls", "save with tool calls, compared with hand-written orjson", None, 2)
    yield compared(results, "load with calls", "load with tool calls, compared with hand-written orjson", None, 1.5)
    yield most(results, "bytes a kept version", "memory of a kept version", 4 * KIB, bytes_text)
    for row, how in (("grep literal", "a literal"), ("grep regex", "a regular expression")):
        yield compared(results, row, f"grep for {how} in 10,000 files, compared with ripgrep on disk", ["ripgrep"], 1)
        yield compared(results, row, f"grep for {how}, compared with the fastest peer in Python", IN_PYTHON, 1 / 5)
    yield compared(results, "grep first", "first grep of a new tree, compared with ripgrep on disk", ["ripgrep"], 1)
    yield compared(
        results, "grep after write", "grep after a write, compared with the fastest peer in Python", IN_PYTHON, 1 / 5
    )
    yield compared(results, "edit exact", "exact edit of 10 MB, compared with str.replace", None, 3)
    yield most(results, "edit not found, tool", "edit_file of a text that is not in 10 MB", 2_000_000_000, time_text)
    for hunks in ("1 hunk", "20 hunks"):
        what = f"apply_patch with {hunks} in 500 lines, compared with apply_diff"
        yield compared(results, f"patch, {hunks}, dry run", f"{what}, as a dry run", None, 1.2)
        yield compared(results, f"patch, {hunks}", what, None, 1.2)
        yield compared(
            results, f"patch, {hunks}, tool", f"the tool with {hunks}, compared with the function and a call", None, 1
        )
    yield most(results, "blame", "blame of 10,000 lines after 10,000 edits", 1_000_000_000, time_text)
    yield most(results, "blame again", "the same blame again", 1_000_000, time_text)
    yield from host_verdicts(results)
    yield compared(results, "import", "import weakfs, compared with attrs and orjson", None, 3)
    yield compared(results, "import names", "import of its two main names, compared with attrs and orjson", None, 3)
    dependencies = "compared with importing the dependencies"
    yield compared(results, "new process, version", f"`weakfs --version`, {dependencies}", None, 1)
    yield compared(results, "new process, files", f"first write and read of a new process, {dependencies}", None, 1.4)
    yield compared(results, "new process, call", f"first tool call of a new process, {dependencies}", None, 1.8)
    for row, name in (("call write", "write_file"), ("call read", "read_file")):
        what = f"`{name}` with a capability and a policy, compared with none"
        yield compared(results, f"{row}, policy", what, None, 1.25)
    yield compared(results, "acall write", "`write_file` awaited, compared with the call", None, 1.15)
    yield compared(
        results, "call write, 5,000 kept", "`write_file` with 5,000 kept snapshots, compared with none", None, 1.1
    )
    what = "fork, write and merge with 5,000 kept snapshots, compared with none"
    yield compared(results, "fork write merge, 5,000 kept", what, None, 1.1)
    yield compared(
        results, "acall by 200 agents", "call awaited by 200 agents, compared with a call in one thread", None, 1.18
    )
    yield most(results, "new session", "a session with its tools", 100_000, time_text)
    yield most(results, "bytes a session", "memory of a session with its tools", 6 * KIB, bytes_text)
    yield most(results, "count a session", "tracked objects of a session with its tools", 40, count_text)
    yield most(results, "collection, 5,000 sessions", "full collection with 5,000 sessions", 60_000_000, time_text)


def host_verdicts(results: Results) -> Iterator[Verdict]:
    """Yield the goals of a host directory, which apply to 50,000 files; the tables include 5,000 too."""
    largest = HOST_SIZES[-1]
    what = f"host snapshot, 10 of {largest:,} changed, compared with the faster bare scan"
    yield compared(results, "host changed", what, SCANS, 1.3, size=largest)
    yield compared(
        results, "host cold", "first host snapshot, compared with reading all bytes", [READING], 4, size=largest
    )
    what = f"host restore, 10 of {largest:,} changed, compared with the faster bare scan"
    yield compared(results, "host restore", what, SCANS, 1.5, size=largest)
    yield exactly(results, "count restored", "number of files that this restore writes", 10)
    yield flat(results, "host write", "first write to a file of a host directory", HOST_SIZES)
    yield flat(results, "host write again", "another write to that file", HOST_SIZES)
    yield flat(results, "host failed call", "call on a host directory that fails and is undone", HOST_SIZES)
    yield flat(results, "overlay", "open an overlay and write a file", HOST_SIZES)
    yield exactly(results, "count in layer", "number of files that the overlay then holds", 1)
    yield from processor_verdicts(results)


def processor_verdicts(results: Results) -> Iterator[Verdict]:
    """Yield the goals of work on a host directory by processor time, each for the size that it names."""
    least, largest = HOST_SIZES
    yield compared(
        results, "host grep", f"grep on {least:,} host files, compared with ripgrep", ["ripgrep"], 1.2, size=least
    )
    yield compared(
        results, "host read", "read of a host file, compared with open().read()", ["open().read()"], 2, size=least
    )
    what = "write of a host file, compared with the same calls by hand"
    yield compared(results, "host write used", what, ["same calls"], 3, size=least)
    what = f"rollback of a session, 10 of {largest:,} changed, compared with the bare scan"
    yield compared(results, "host rollback", what, SCANS, 1.5, size=largest)
    what = "first host snapshot of a process, compared with its second one"
    yield compared(results, "host first of a process", what, ["second snapshot"], 1.8, size=largest)


def exactly(results: Results, row: str, what: str, number: int) -> Verdict:
    """Compare our count, at every size, with the required one."""
    counts = {cell.size: cell.value for cell in results.where(row) if cell.subject == OURS and cell.value is not None}
    if not counts:
        return Verdict(what, f"{number}", "", None)
    shown = ", ".join(f"{count_text(counts[size])} at {files_text(size)}" for size in sorted(counts))
    return Verdict(what, f"{number}", shown, set(counts.values()) == {number})


def flat(results: Results, row: str, what: str, sizes: tuple[int, int] | None = None) -> Verdict:
    """Compare our time at the largest size with that at the smallest."""
    measured = [cell.size for cell in results.where(row) if cell.subject == OURS]
    least, largest = sizes or (min(measured, default=0), max(measured, default=0))
    goal = (
        f"at {files_text(largest)} at most {factor_text(FLAT)} the time at {files_text(least)}" if largest else "flat"
    )
    small, large = results.value(row, least, OURS), results.value(row, largest, OURS)
    if small is None or large is None or least == largest:
        return Verdict(what, goal, "", None)
    shown = f"{factor_text(large / small)} ({time_text(small)}, {time_text(large)})"
    return Verdict(what, goal, shown, large / small <= FLAT)


def most(results: Results, row: str, what: str, limit: float, shown: Callable[[float], str]) -> Verdict:
    """Compare our value, at the worst size, with an absolute limit."""
    cells = [cell for cell in results.where(row) if cell.subject == OURS and cell.value is not None]
    goal = f"at most {shown(limit)}"
    values = {cell.size: results.value(row, cell.size, OURS) or 0.0 for cell in cells}
    if not values:
        return Verdict(what, goal, "", None)
    size = max(values, key=lambda each: values[each])
    at = f" at {files_text(size)}" if size else ""
    return Verdict(what, goal, f"{shown(values[size])}{at}", values[size] <= limit)


def compared(
    results: Results, row: str, what: str, others: list[str] | None, limit: float, *, size: int | None = None
) -> Verdict:
    """Compare our value with the fastest of the others, pair by pair, at one size or at the worst."""
    goal = f"at most {factor_text(limit)}"
    pairs = [
        cell for cell in results.where(row, size=size) if cell.ratio and (others is None or cell.subject in others)
    ]
    fastest: dict[int, Result] = {}
    for cell in pairs:
        known = fastest.get(cell.size)
        if known is None or (cell.ratio or 0) > (known.ratio or 0):
            fastest[cell.size] = cell
    if not fastest:
        return Verdict(what, goal, "", None)
    worst = max(fastest.values(), key=lambda cell: cell.ratio or 0)
    at = f" at {files_text(worst.size)}" if worst.size else ""
    return Verdict(what, goal, f"{factor_text(worst.ratio or 0)} {worst.subject}{at}", (worst.ratio or 0) <= limit)
