"""The message of a merge conflict: what both sides have and what to do, for a person or a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from weakfs.messages import clip, one_line, plural, printable
from weakfs.session.conflicts.conflict_types import ConflictEntry, ConflictKind

# The most that a message shows: conflicts, hunks of each, lines of each side of a hunk, and characters of a line.
MOST_NAMED = 10
MOST_SHOWN = 5
MOST_HUNKS = 3
MOST_LINES = 12
MOST_WIDTH = 160
MOST_CALLS = 5


def described(
    conflicts: tuple[ConflictEntry, ...],
    *,
    ours: str = "ours",
    theirs: str = "theirs",
    may_show: Callable[[str], bool] = lambda path: True,
) -> str:
    """Return the message of a conflict: what both sides have, bounded in length, with control characters escaped.

    `ours` and `theirs` name the sides. If `may_show` rejects a path of an entry, the message only names the entry by
    its path on their side.
    """
    shown = ", ".join(_name(entry, may_show) for entry in conflicts[:MOST_NAMED])
    more = f" and {len(conflicts) - MOST_NAMED} more" if len(conflicts) > MOST_NAMED else ""
    lines = [f"cannot merge: both sides changed {shown}{more}; nothing was changed. Make the change again on the newer"]
    lines[0] += " state, or say which side to take (on_conflict)" if ours == "ours" else " state: read the file first"
    detailed = (entry for entry in conflicts if entry.kind != "slice" and _is_visible(entry, may_show))
    for entry in islice(detailed, MOST_SHOWN):
        lines += details(entry, ours, theirs)
    return "\n".join(lines)


def _name(entry: ConflictEntry, may_show: Callable[[str], bool]) -> str:
    known = entry.path if _is_visible(entry, may_show) else entry.their_path or entry.base_path or entry.path
    return clip(one_line(known), MOST_WIDTH)


def _is_visible(entry: ConflictEntry, may_show: Callable[[str], bool]) -> bool:
    return entry.kind == "slice" or all(map(may_show, entry.paths))


def details(entry: ConflictEntry, ours: str, theirs: str) -> Iterator[str]:
    """Yield lines that show what both sides have."""
    places = {"the base": entry.base_path, ours: entry.our_path, theirs: entry.their_path}
    where = {side: "no entry" if path is None else clip(one_line(path), MOST_WIDTH) for side, path in places.items()}
    told = _KINDS[entry.kind].format(ours=ours, theirs=theirs, our_path=where[ours], their_path=where[theirs])
    yield f"{clip(one_line(entry.path), MOST_WIDTH)}: {told}{_calls(ours, entry.our_calls)}" + _calls(
        theirs, entry.their_calls
    )
    for hunk in entry.hunks[:MOST_HUNKS]:
        yield f"at line {hunk.line} of the common base:"
        yield f"<<<<<<< {ours}"
        yield from _quoted(hunk.ours)
        yield "======="
        yield from _quoted(hunk.theirs)
        yield f">>>>>>> {theirs}"
    if len(entry.hunks) > MOST_HUNKS:
        yield f"and {plural(len(entry.hunks) - MOST_HUNKS, 'more place')}"


def _quoted(lines: tuple[str, ...]) -> Iterator[str]:
    for line in lines[:MOST_LINES]:
        yield clip(printable(line.removesuffix("\n"), is_line=True), MOST_WIDTH)
    if len(lines) > MOST_LINES:
        yield f"... {plural(len(lines) - MOST_LINES, 'more line')}"


def _calls(side: str, calls: Iterable[str]) -> str:
    named = [clip(one_line(call), 60) for call in islice(calls, MOST_CALLS)]
    return f"; {side} by {', '.join(named)}" if named else ""


_KINDS: dict[ConflictKind, str] = {
    "content": "both sides changed the same lines",
    "binary": "both sides changed a file that is not text",
    "mode": "both sides changed the permission bits",
    "type": "the sides created entries of different kinds",
    "deleted": "one side deleted it and the other changed it ({ours}: {our_path}, {theirs}: {their_path})",
    "moved_twice": "the sides moved it to different places ({ours}: {our_path}, {theirs}: {their_path})",
    "moved_deleted": "one side moved it and the other deleted it ({ours}: {our_path}, {theirs}: {their_path})",
    "name_taken": "one side moved an entry to a name that the other side uses for another entry",
    "cycle": "each side moved one directory into the other's ({ours}: {our_path}, {theirs}: {their_path})",
    "slice": "both sides changed it",
}
