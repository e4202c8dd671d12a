"""Three-way merge of trees: by path, and inside a text file by lines.

A move is a deletion and an addition. What `theirs` shares with `base` is skipped: the cost is what `theirs` changed.
"""

from __future__ import annotations

from typing import cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import differences, equal
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.line_merge import TooMuchWork, merge_lines
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, put, remove, walk, with_mode
from weakfs.reducers.tree.repeated_subtrees import Comparisons
from weakfs.session.slices.slice import Conflict

Path = tuple[str, ...]


def merge(base: FileTree | None, ours: FileTree, theirs: FileTree) -> FileTree:
    """Return `ours` with what `theirs` changed since `base`.

    Raise `Conflict` with the path of everything that both sides changed differently: contents whose changed
    lines overlap, permission bits, kinds, and entries that one side deleted and the other changed. Raise `TreeTooLarge`
    if the directories that `theirs` changed occur in very many places.
    """
    work = _Merge(Comparisons(ours, theirs))
    work.directory((), base or EMPTY_TREE, ours, theirs)
    while work.pending:
        work.inside(*work.pending.pop())
    if work.conflicts:
        raise Conflict(*sorted(work.conflicts))
    merged = ours
    for path, node, at in work.edits:
        if not path:
            merged = with_mode(merged, cast(FileTree, node).mode)
        elif node is None:
            merged = remove(merged, path, at)
        else:
            merged = put(merged, path, node, at)
    return merged


class _Merge:
    """The state of a merge: edits to make, directories still to compare, and conflicts."""

    def __init__(self, comparisons: Comparisons) -> None:
        self.comparisons = comparisons
        self.edits: list[tuple[Path, Node | None, int]] = []
        self.pending: list[tuple[Path, FileTree, FileTree, FileTree]] = []
        self.conflicts: set[str] = set()

    def directory(self, path: Path, base: FileTree, ours: FileTree, theirs: FileTree) -> None:
        """Merge a directory that both sides have: its bits now, its entries later."""
        mode = _merge_bits(base.mode, ours.mode, theirs.mode)
        if mode is None:
            self.conflicts.add(_shown(path))
        elif mode != ours.mode:
            self.pending_mode(path, ours, mode)
        self.pending.append((path, base, ours, theirs))

    def pending_mode(self, path: Path, ours: FileTree, mode: int) -> None:
        # Before the edits inside, which then build on it.
        self.edits.append((path, with_mode(ours, mode), ours.modified_at))

    def inside(self, path: Path, base: FileTree, ours: FileTree, theirs: FileTree) -> None:
        """Merge the entries that `theirs` changed."""
        self.comparisons.count(base, ours, theirs)
        at = max(ours.modified_at, theirs.modified_at)
        for name, old, new in maps.differences(base._children, theirs._children):
            mine = maps.get(ours._children, name)
            self.entry((*path, name), old, mine, new, at)

    def entry(self, path: Path, old: Node | None, mine: Node | None, new: Node | None, at: int) -> None:
        """Merge one entry that `theirs` changed from `old` to `new`, while `ours` has `mine`."""
        if mine is new:
            return
        if mine is old:
            self.edits.append((path, new, at))
        elif type(mine) is FileTree and type(new) is FileTree:
            self.directory(path, old if type(old) is FileTree else EMPTY_TREE, mine, new)
        elif equal(mine, new) or equal(old, new):
            return
        elif equal(mine, old):
            self.edits.append((path, new, at))
        else:
            merged = _merge_leaves(old, mine, new)
            if merged is not None:
                self.edits.append((path, merged, at))
            else:
                self._replaced(path, old, mine, new, at)

    def _replaced(self, path: Path, old: Node | None, mine: Node | None, new: Node | None, at: int) -> None:
        """Merge a directory that one side kept and the other deleted or replaced.

        Deletions inside it are covered by its own deletion; any other change inside it is a conflict.
        """
        changed = _changed_paths(path, old, mine, new)
        if len(changed) == 1 and type(old) is FileTree:
            if type(mine) is FileTree and type(new) is not FileTree and mine.mode == old.mode:
                self.edits.append((path, new, at))
                return
            if type(new) is FileTree and type(mine) is not FileTree and new.mode == old.mode:
                return
        self.conflicts.update(changed)


def _merge_leaves(old: Node | None, mine: Node | None, new: Node | None) -> Leaf | None:
    """Merge two changes of one file. Return `None` if they conflict."""
    if type(mine) is not tuple or type(new) is not tuple or type(old) is not tuple:
        return None
    if not (leaves.is_file(old) and leaves.is_file(mine) and leaves.is_file(new)):
        return None
    mode = _merge_bits(old[leaves.MODE], mine[leaves.MODE], new[leaves.MODE])
    if mode is None:
        return None
    at = max(mine[leaves.MODIFIED_AT], new[leaves.MODIFIED_AT])
    if leaves.same_content(mine, new) or leaves.same_content(old, new):
        return leaves.with_mode(mine, mode)
    if leaves.same_content(old, mine):
        return leaves.with_mode(new, mode)
    texts = [leaves.content_of(leaf) for leaf in (old, mine, new)]
    if not all(_is_text(text) for text in texts):
        return None
    try:
        merged = merge_lines(*texts)
    except TooMuchWork:
        return None
    return None if merged is None else leaves.with_mode(leaves.with_content(mine, merged, at), mode)


def _merge_bits(old: int, mine: int, new: int) -> int | None:
    if mine == new or new == old:
        return mine
    return new if mine == old else None


def _is_text(data: bytes) -> bool:
    if b"\0" in data[:8192]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _changed_paths(path: Path, old: Node | None, mine: Node | None, new: Node | None) -> list[str]:
    """Return the paths in conflict: the path, and what one side changed in a directory that the other deleted."""
    shown = _shown(path)
    paths = [shown]
    for node in (mine, new):
        if type(node) is FileTree:
            if type(old) is FileTree:
                paths += [shown + below for below, _, after in differences(old, node) if after is not None]
            else:
                paths += [below for below, _ in walk(node, shown)]
    return paths


def _shown(path: Path) -> str:
    return "/" + "/".join(path)
