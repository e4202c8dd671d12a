"""Edit one place in a text of 10 MB, as a function and as a tool, compared with `str.replace` on the same text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Sampler, in_turn, nanoseconds
from weakfs import Toolset
from weakfs.editing import EditError, replace

CHARACTERS = 10_000_000
BUILTIN = "str.replace"

LINE = "    total += item.price * item.count  # line {number}\n"
PLACE = "\tif found is None:\n\t\treturn default\n"

EDITS = {
    "edit exact": (PLACE, PLACE.replace("default", "other")),
    "edit fuzzy": (PLACE.replace("\t", "    "), PLACE.replace("\t", "    ").replace("default", "other")),
    "edit not found": (PLACE.replace("default", "nothing"), "\treturn\n"),
}
"""The row, the text to replace and its replacement."""


def measure(bench: Bench) -> Iterator[Result]:
    half = "".join(LINE.format(number=number) for number in range(CHARACTERS // 2 // len(LINE)))
    text = half + PLACE + half
    toolset = Toolset(bench.ours.session, bench.ours.fs)
    for row, (old, new) in EDITS.items():
        measured: dict[str, Sampler] = {
            row: partial(nanoseconds, partial(edited, text, old, new)),
            f"{row}, tool": partial(nanoseconds, partial(called, toolset, old, new)),
            BUILTIN: partial(nanoseconds, partial(text.replace, PLACE, new)),
        }
        before = partial(toolset.filesystem.write, "/large.py", text)
        taken = in_turn(measured, repeats=3 if bench.quick else 9, before=before)
        for name in (row, f"{row}, tool"):
            yield timed(name, bench.size, bench.ours.name, taken[name])
            yield timed(name, bench.size, BUILTIN, taken[BUILTIN], ours=taken[name])


def edited(text: str, old: str, new: str) -> str | None:
    try:
        return replace(text, old, new).text
    except EditError:
        return None


def called(toolset: Toolset, old: str, new: str) -> object:
    return toolset.call("edit_file", {"path": "/large.py", "old_string": old, "new_string": new})
