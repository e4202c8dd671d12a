"""Merging the files of two sides: by path first; if both changed an entry and one was moved, moves are followed.

In most merges the two sides touch different files, and the cost is O(what the fork changed). The records are read only
if both sides changed an entry, and entries are followed through them only if they contain a move.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any, cast

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import CHANGING, EntryCopied
from weakfs.reducers.merging.entry_ids import MERGED, MOVED, ROLLED_BACK, Tracker, Untraceable
from weakfs.reducers.merging.line_merge import Hunk, Part, TooMuchWork, matches, split_lines
from weakfs.reducers.merging.relocation import Relocation
from weakfs.reducers.merging.tree_merge import TreeConflict, is_text, merge_by_path
from weakfs.reducers.remembered_lower_layer import completed
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import diff, equal
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, find, is_whiteout
from weakfs.session import Log, MissingBlob
from weakfs.session.conflicts.conflict_types import Choice, ConflictEntry, ConflictHunk, MergedPath, Resolution
from weakfs.session.merging.resolver import Resolver
from weakfs.session.merging.sides import BranchHistory, Sides
from weakfs.session.slices.slice import Conflict
from weakfs.session.slices.table import EMPTY_TABLE as NO_TABLE
from weakfs.session.slices.tags import tag_of

TAG = tag_of(FileTree)
# The slice of a state from before the first file.
INITIAL = Log((EMPTY_TREE,))

# Moves are followed through this many records on both sides together; in longer histories files merge by path.
MOST_RECORDS = 50_000
# The events of entries that have a destination.
WITH_DESTINATION = (MOVED, tag_of(EntryCopied))
# The kinds of conflicts that can be resolved by supplying contents.
OF_CONTENT = ("content", "binary", "deleted", "type")

PathsOf = Callable[[str], tuple[str | None, str | None, str | None]]


def merge_files(sides: Sides) -> Log[FileTree]:
    """Return the merged values of the file slice: ours with what their side changed."""
    slices = [cast("Log[FileTree]", table.get(TAG, INITIAL)) for table in (sides.base, sides.ours, sides.theirs)]
    if same_files(slices[1], slices[0]):
        if sides.resolver.wants_changes:
            sides.resolver.changes += changes(slices[1].last(EMPTY_TREE), slices[2].last(EMPTY_TREE))
        return slices[2]
    if same_files(slices[2], slices[0]):
        return slices[1]
    if any(len(values) > 1 for values in slices) or not slices[1] or not slices[2]:
        # A merge only handles latest values, not several values or a slice that one side emptied.
        raise Conflict
    base, ours, theirs = completed(sides.base, sides.ours, sides.theirs)
    merged = _merged(sides, (base, ours, theirs))
    if sides.resolver.wants_changes:
        sides.resolver.changes += changes(ours, merged)
    return slices[1].replace_last(merged)


def same_files(one: Log[FileTree], other: Log[FileTree]) -> bool:
    """Return whether two values of the file slice hold the same files; times are not compared."""
    return one is other or (
        len(one) == len(other) <= 1 and (not one or equal(one.last(EMPTY_TREE), other.last(EMPTY_TREE)))
    )


def _merged(sides: Sides, trees: tuple[FileTree, FileTree, FileTree]) -> FileTree:
    # The conflicts may depend on moves, so the first attempt only tells whether both sides changed the same entry.
    conflicts: list[TreeConflict] = []

    def note(conflict: TreeConflict) -> Choice:
        conflicts.append(conflict)
        return "raise"

    merged, interacts = merge_by_path(*trees, note)
    history = sides.history if interacts else None
    if history is not None:
        try:
            return _following_moves(sides, history, trees)
        except Untraceable:
            pass
    return merge_by_path(*trees, _Questions(sides, trees, None).ask)[0] if conflicts else merged


def _following_moves(sides: Sides, history: BranchHistory, trees: tuple[FileTree, FileTree, FileTree]) -> FileTree:
    """Merge with moved entries at their merged paths. Raises `Untraceable` if no moves are known."""
    first, tree, wanted = _start(history, trees[0])
    tracker = Tracker(first, tree)
    ours, _ = tracker.run(history.ours_since(first), tracker.at_start(), wanted, history.own)
    base = tracker.base_of(history.fork, history.base, history.own)
    theirs, _ = tracker.run_branch(history.theirs_numbered(), base, history.base, wanted, history.fork)
    questions = _Questions(sides, trees, None)
    relocation = Relocation(trees, (base, ours, theirs), tracker, questions.ask)
    questions = _Questions(sides, trees, relocation.paths_of)
    return merge_by_path(*relocation.trees, questions.ask)[0]


def _start(history: BranchHistory, base: FileTree) -> tuple[int, FileTree, set[int]]:
    """Return the number of the record to start from, the tree after it, and the numbers that later records refer to.

    Another fork that was merged since then may have branched off before this one. Raises `Untraceable` if there is no
    move, or if the records reach too far back.
    """
    first = history.first
    while True:
        wanted, moves, earliest = {history.base}, False, min(first, history.base)
        count = history.last - first + len(history.theirs)
        if count > MOST_RECORDS:
            raise Untraceable
        for number, row in chain(history.ours_since(first), history.theirs_numbered()):
            if row[2] == MERGED:
                wanted.add(row[3][1])
                earliest = min(earliest, row[3][1])
            elif row[2] == ROLLED_BACK:
                wanted.add(row[3][0])
                if number > history.last:
                    # The fork was rolled back, perhaps to a record from before it branched off.
                    earliest = min(earliest, row[3][0])
            elif row[2] == MOVED and row[3][-1] is None:
                moves = True
        if not moves:
            raise Untraceable
        if earliest == first:
            break
        first = earliest
    if first == history.first == history.base:
        return first, base, wanted
    table = history.state_at(first)
    if table is None:
        raise Untraceable
    return first, cast("Log[FileTree]", table.get(TAG, Log())).last() or EMPTY_TREE, wanted


@frozen(eq=False)
class _Questions:
    """Passes the conflicts of trees to the resolver, as conflicts of the session."""

    sides: Sides
    trees: tuple[FileTree, FileTree, FileTree]
    paths_of: PathsOf | None
    # The calls of our side and of theirs by path, filled in on first use.
    by_path: list[dict[str, list[tuple[int, str]]]] = field(factory=list[dict[str, list[tuple[int, str]]]])

    def ask(self, conflict: TreeConflict) -> Choice | Resolution:
        entry = self.entry(conflict)
        if conflict.inside:
            self.sides.resolver.remains(entry)
            return "raise"
        has_markers = any(isinstance(part, Hunk) for part in conflict.parts)
        has_content = conflict.kind in OF_CONTENT
        return self.sides.resolver.resolve(entry, has_markers=has_markers, has_content=has_content)

    def entry(self, conflict: TreeConflict) -> ConflictEntry:
        """Return a conflict with the paths, contents and calls of both sides."""
        paths = conflict.paths
        if paths is None:
            known = self.paths_of or self._same_path
            paths = known(conflict.path)
        base_path, our_path, their_path = paths
        base, ours, theirs = (_content(node) for node in conflict.nodes)
        calls = self._calls({path for path in (conflict.path, *paths) if path is not None})
        return ConflictEntry(
            our_path or their_path or conflict.path,
            conflict.kind,
            TAG,
            base,
            ours,
            theirs,
            tuple(_hunks(conflict.parts)),
            base_path,
            our_path,
            their_path,
            *calls,
        )

    def _calls(self, paths: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the calls on either side that changed one of the paths or a directory above it."""
        history = self.sides.history
        if history is None:
            return (), ()
        if not self.by_path:
            self.by_path.extend(history.calls(_touched, of_ours=of_ours) for of_ours in (True, False))
        above = {path[:end] for path in paths for end in range(1, len(path) + 1) if path[end : end + 1] in ("/", "")}
        found = [sorted({call for path in (*above, "/") for call in calls.get(path, ())}) for calls in self.by_path]
        ours, theirs = (tuple(dict.fromkeys(cause for _, cause in calls)) for calls in found)
        return ours, theirs

    def _same_path(self, path: str) -> tuple[str | None, str | None, str | None]:
        base, ours, theirs = (path if _is_there(find(tree, segments_of(path))) else None for tree in self.trees)
        return base, ours, theirs


def merge_known(resolver: Resolver, base: FileTree, ours: FileTree, theirs: FileTree) -> FileTree:
    """Merge the known files of an external filesystem by path, as `merge_files` does those of a session."""
    trees = base, ours, theirs
    merged, _ = merge_by_path(*trees, _Questions(Sides(NO_TABLE, NO_TABLE, NO_TABLE, resolver), trees, None).ask)
    if resolver.wants_changes:
        resolver.changes += changes(ours, merged)
    return merged


def _is_there(node: Node | None) -> bool:
    return node is not None and not is_whiteout(node)


def _touched(tag: str, values: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the paths that a record changed."""
    if tag not in CHANGING or values[-1] is not None:
        return ()
    return (values[0], values[1]) if tag in WITH_DESTINATION else (values[0],)


def _content(node: Node | None) -> str | bytes | None:
    if type(node) is not tuple or leaves.is_special(node):
        return None
    content = node[leaves.CONTENT]
    if isinstance(content, str):
        return content
    try:
        data = leaves.content_of(node)
    except MissingBlob:
        return None
    return data.decode() if is_text(data) else data


def _hunks(parts: tuple[Part, ...]) -> list[ConflictHunk]:
    def text(lines: tuple[bytes, ...]) -> tuple[str, ...]:
        return tuple(line.decode() for line in lines)

    hunks = [part for part in parts if isinstance(part, Hunk)]
    return [ConflictHunk(hunk.start + 1, text(hunk.base), text(hunk.ours), text(hunk.theirs)) for hunk in hunks]


def changes(before: FileTree, after: FileTree) -> list[MergedPath]:
    """List what differs between two trees, by path, with the lines that differ in each text."""
    found = diff(before, after)
    listed = [_change(before, after, path, "added") for path in found.added]
    listed += [_change(before, after, path, "removed") for path in found.removed]
    listed += [_change(before, after, path, "changed") for path in found.changed]
    listed += [MergedPath(path, "moved", source) for source, path in found.moved]
    return sorted(listed, key=lambda change: change.path)


def _change(before: FileTree, after: FileTree, path: str, change: Any) -> MergedPath:
    contents: list[bytes] = []
    for tree in (before, after):
        node = find(tree, segments_of(path))
        contents.append(leaves.content_of(node) if type(node) is tuple and leaves.is_file(node) else b"")
    old, new = (split_lines(data) if is_text(data) else [] for data in contents)
    same = same_bytes = 0
    with suppress(TooMuchWork):
        for start, _, length in matches(old, new):
            same += length
            same_bytes += sum(map(len, old[start : start + length]))
    old_bytes, new_bytes = map(len, contents)
    return MergedPath(
        path, change, None, len(new) - same, len(old) - same, new_bytes - same_bytes, old_bytes - same_bytes
    )
