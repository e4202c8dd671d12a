"""Apply a V4A patch to a file of 500 lines, compared with `apply_diff` of the OpenAI Agents SDK on the same text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from agents.apply_diff import apply_diff

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.rows.calls import each, toolset
from benchmarks.timing import in_turn
from weakfs.editing import apply_patch

LINES = 500
HUNKS = (1, 20)
PATH = "/module.py"
PEER = "apply_diff"
FUNCTION = "function and call"
"""What the tool adds to the function, compared with any other tool call: `apply_patch` and a call of `stat`."""


def measure(bench: Bench) -> Iterator[Result]:
    for hunks in HUNKS:
        patch = f"patch, {count_of(hunks)}"
        measured = acts(patch, hunks)
        taken = in_turn({name: partial(each, act) for name, act in measured.items()}, repeats=5 if bench.quick else 15)
        for row in (f"{patch}, dry run", patch):
            yield timed(row, bench.size, bench.ours.name, taken[row])
            yield timed(row, bench.size, PEER, taken[PEER], ours=taken[row])
        tool = f"{patch}, tool"
        yield timed(tool, bench.size, bench.ours.name, taken[tool])
        yield timed(tool, bench.size, FUNCTION, taken[FUNCTION], ours=taken[tool])


def count_of(hunks: int) -> str:
    return f"{hunks} hunk{'s' if hunks > 1 else ''}"


def acts(patch: str, hunks: int) -> dict[str, Callable[[], object]]:
    """Return the function of each row. A patch that is written is followed by one that undoes it."""
    old = [f"    value_{number} = compute(left, {number})\n" for number in range(LINES)]
    places = [LINES // hunks * number + LINES // hunks // 2 for number in range(hunks)]
    new = list(old)
    for place in places:
        new[place] = f"    value_{place} = computed(right, {place})\n"
    forth, back = diff(old, new, places), diff(new, old, places)
    text, tools, turns = "".join(old), toolset([]), iter(range(10**9))
    fs = tools.filesystem
    fs.write(PATH, text)

    def next_patch() -> str:
        return whole(back if next(turns) % 2 else forth)

    def call() -> object:
        done = tools.call("apply_patch", {"patch": next_patch()})
        assert done.success
        return done

    def function_and_call() -> object:
        apply_patch(fs, next_patch())
        return tools.call("stat", {"path": PATH})

    return {
        f"{patch}, dry run": lambda: apply_patch(fs, whole(forth), dry_run=True),
        patch: lambda: apply_patch(fs, next_patch()),
        PEER: lambda: apply_diff(text, forth),
        f"{patch}, tool": call,
        FUNCTION: function_and_call,
    }


def diff(old: list[str], new: list[str], places: list[int]) -> str:
    """Return the hunks that change one line at each place, with three lines of context."""
    return "".join(
        "".join(
            [
                "@@\n",
                *(f" {line}" for line in old[place - 3 : place]),
                f"-{old[place]}",
                f"+{new[place]}",
                *(f" {line}" for line in old[place + 1 : place + 4]),
            ]
        )
        for place in places
    )


def whole(hunks: str) -> str:
    return f"*** Begin Patch\n*** Update File: {PATH}\n{hunks}*** End Patch\n"
