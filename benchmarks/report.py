"""The report: results as tables, shown on a terminal or as Markdown."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.goals import verdicts
from benchmarks.prepare import Environment
from benchmarks.results import Result, Results
from benchmarks.subject import OURS
from benchmarks.units import bytes_text, count_text, factor_text, time_text

SECTIONS: dict[str, dict[str, str]] = {
    "One operation": {
        "write": "write a small file",
        "read": "read text",
        "read_bytes": "read bytes",
        "stat": "stat",
        "list": "list a directory of 20 files",
    },
    "Whole trees": {
        "snapshot": "snapshot after a write",
        "rollback": "rollback of a write",
        "fork": "fork after a write",
        "move": "move a directory of up to 400 files",
        "delete": "delete a directory of 20 files",
        "move all": "move everything",
        "delete all": "delete everything",
    },
    "Calls": {
        "call write": "`write_file`",
        "call read": "`read_file`",
        "call edit": "`edit_file`, after a write",
        "call stat": "`stat`",
        "call write, policy": "`write_file` with a capability and a policy",
        "call read, policy": "`read_file` with a capability and a policy",
        "call write, caller": "`write_file` with a caller",
        "acall write": "`write_file`, awaited",
        "save a call": "saving a call of `read_file`",
    },
    "Transactions and forks": {
        "transaction": "empty transaction",
        "transaction write": "transaction with a write",
        "fork write merge": "fork, write and merge",
    },
    "Search": {
        "grep literal": "grep `needle_`",
        "grep regex": r"grep `def needle_\d+\(`",
        "grep no case": "grep `(?i)NEEDLE_`",
        "grep words": r"grep `\bneedle_\d+\b`",
        "grep first": "grep `needle_`, a new tree",
        "grep after write": "grep `needle_` after a write",
        "glob all": "glob `**/*.py`",
        "glob directory": "glob `*.py` in one directory",
    },
    "Editing a text of 10 MB": {
        "edit exact": "`replace`, an exact match",
        "edit exact, tool": "`edit_file`, an exact match",
        "edit fuzzy": "`replace`, other indentation",
        "edit fuzzy, tool": "`edit_file`, other indentation",
        "edit not found": "`replace`, no match, with a hint",
        "edit not found, tool": "`edit_file`, no match, with a hint",
    },
    "A patch of a file of 500 lines": {
        "patch, 1 hunk, dry run": "`apply_patch` as a dry run, 1 hunk",
        "patch, 1 hunk": "`apply_patch`, 1 hunk",
        "patch, 1 hunk, tool": "the tool, 1 hunk",
        "patch, 20 hunks, dry run": "`apply_patch` as a dry run, 20 hunks",
        "patch, 20 hunks": "`apply_patch`, 20 hunks",
        "patch, 20 hunks, tool": "the tool, 20 hunks",
    },
    "A file of 10,000 lines after 10,000 edits": {
        "blame": "`session.blame`, the first time",
        "blame again": "`session.blame` again",
    },
    "Saving and loading": {
        "save": "save",
        "load": "load",
        "bytes saved": "size of the file",
        "save with calls": "save, files written by calls",
        "load with calls": "load, files written by calls",
        "bytes saved with calls": "size of the file, files written by calls",
    },
    "Pauses and memory": {
        "longest write": "longest single write",
        "longest collection": "longest garbage collection",
        "bytes a kept version": "memory of a kept version",
    },
    "A host directory: the first snapshot": {"host cold": "snapshot into a new store"},
    "A host directory: snapshots": {
        "host unchanged": "snapshot, nothing changed",
        "host changed": "snapshot, 10 changed",
        "host new process": "snapshot of a new process, 10 changed",
        "host restore": "restore, 10 changed",
        "count restored": "number of files that this restore wrote",
        "host restore nothing": "restore, nothing changed",
        "host dry run": "restore as a dry run, 10 changed",
    },
    "A host directory: calls": {
        "host write": "first write to a file",
        "host write again": "another write to that file",
        "host failed call": "call that writes, fails and is undone",
        "host shell": "shell call `true`",
        "overlay": "open an overlay and write a file",
        "count in layer": "number of files that the overlay then holds",
        "overlay write": "write in an open overlay",
        "overlay commit": "commit of 10 files",
    },
    "Processor time on the host": {
        "host grep": "grep `needle_`",
        "host read": "read a file",
        "count calls, read": "system calls of this read",
        "host write used": "write a file",
        "count calls, write": "system calls of this write",
        "host rollback": "rollback of a session, 10 changed",
        "host first of a process": "first snapshot of a new process",
    },
    "Many snapshots, sessions and agents": {
        "call write, 5,000 kept": "`write_file` with 5,000 kept snapshots",
        "fork write merge, 5,000 kept": "fork, write and merge with 5,000 kept snapshots",
        "acall by 200 agents": "`write_file`, awaited by 200 agents at once",
        "new session": "a session with its tools",
        "bytes a session": "memory of a session with its tools",
        "count a session": "objects of a session with its tools that the collector tracks",
        "collection, 5,000 sessions": "full garbage collection with 5,000 such sessions",
    },
    "A new process": {
        "import": "`import weakfs`",
        "import names": "`from weakfs import ...`",
        "new process, version": "`weakfs --version`",
        "new process, files": "first write and read in memory",
        "new process, call": "first tool call in memory",
    },
}
"""The tables in order, and the rows of each with their labels."""

LIBRARIES = ("attrs", "cattrs", "orjson", "pyrsistent", "google-re2")


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of text: what both renderers need."""

    title: str
    head: list[str]
    rows: list[list[str]]


def tables(results: Results) -> Iterator[Table]:
    yield goals_table(results)
    for title, rows in SECTIONS.items():
        cells = [cell for cell in results if cell.row in rows and (cell.value is not None or cell.ratio)]
        if cells:
            yield section(title, rows, results, list(dict.fromkeys(cell.subject for cell in cells)))


def goals_table(results: Results) -> Table:
    met = {True: "yes", False: "NO", None: "not measured"}
    rows = [[v.what, v.goal, v.measured, met[v.met]] for v in verdicts(results)]
    return Table("Goals", ["what", "goal", "measured", "met"], rows)


def section(title: str, rows: dict[str, str], results: Results, subjects: list[str]) -> Table:
    """Give each subject a column: its own time, and in parentheses the ratio of ours to it in the same process."""
    others = [subject for subject in subjects if subject != OURS]
    lines = []
    for row, name in rows.items():
        for size in results.sizes(row):
            mine = results.value(row, size, OURS)
            theirs = {cell.subject: cell for cell in results.where(row, size=size)}
            shown = [cell_text(theirs.get(other)) for other in others]
            if mine is not None or any(shown):
                files = f"{size:,}" if size else ""
                lines.append([name, files, unit(row)(mine) if mine is not None else "", *shown])
    return Table(title, ["", "files", OURS, *others], lines)


def cell_text(cell: Result | None) -> str:
    if cell is None or cell.value is None:
        return ""
    ratio = f" ({factor_text(cell.ratio)})" if cell.ratio else ""
    return f"{unit(cell.row)(cell.value)}{ratio}"


def unit(row: str) -> Callable[[float], str]:
    kinds = {"bytes": bytes_text, "count": count_text}
    return kinds.get(row.partition(" ")[0], time_text)


def machine(environments: list[Environment]) -> list[str]:
    """Describe the machine, and which peers were unavailable and why."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    here = platform.python_version()
    peers = [
        e.requirements[0].replace("==", " ") + (f" (on Python {e.version})" if e.version != here else "")
        for e in environments[1:]
        if e.python
    ]
    lines = [
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.machine()}; garbage collection on",
        libraries,
        "compared with " + ", ".join(peers),
    ]
    return lines + [f"without {e.name}: {e.why_not}" for e in environments if e.why_not]


def gaps(results: Results) -> list[str]:
    """Return the reasons for empty cells, each once."""
    reasons: dict[tuple[str, str], list[Result]] = {}
    for cell in results:
        if cell.value is None and cell.note:
            reasons.setdefault((cell.subject, cell.note), []).append(cell)
    said = []
    for (subject, note), cells in reasons.items():
        rows = ", ".join(dict.fromkeys(cell.row for cell in cells))
        sizes = sorted({cell.size for cell in cells})
        where = f" from {sizes[0]:,} files" if sizes[0] > 100 else ""
        said.append(f"{subject}, {rows}{where}: {note}")
    return said


EXPLANATION = (
    "Times are medians. A ratio in parentheses is the time of weakfs divided by that of the other side, measured "
    "alternately in one process; below 1x, weakfs is faster."
)


def show(results: Results, environments: list[Environment]) -> None:
    console = Console() if sys.stdout.isatty() else Console(width=200)
    for table in tables(results):
        drawn = RichTable(title=table.title, title_justify="left", header_style="bold")
        for number, name in enumerate(table.head):
            left = number == 0 or table.title == "Goals"
            drawn.add_column(name, justify="left" if left else "right", no_wrap=True)
        for row in table.rows:
            drawn.add_row(*(escape(cell) for cell in row), style="red" if row[-1] == "NO" else None)
        console.print(drawn)
    console.print(EXPLANATION)
    for line in [*machine(environments), *gaps(results)]:
        console.print(f"- {line}", markup=False)


def markdown(results: Results, environments: list[Environment]) -> str:
    lines = [f"- {line}" for line in machine(environments)] + ["", EXPLANATION, ""]
    for table in tables(results):
        lines += [f"### {table.title}", "", row_text(table.head), row_text(["---"] * len(table.head))]
        lines += [row_text(row) for row in table.rows] + [""]
    return "\n".join(lines + [f"- {line}" for line in gaps(results)]) + "\n"


def row_text(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
