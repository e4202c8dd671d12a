"""Three-way merge of trees: by path, and inside a text file by lines.

What `theirs` shares with `base` is skipped, so the cost depends only on what `theirs` changed. This module does not
detect moves: `weakfs.reducers.merging.relocation` first brings moved entries to the same path in all three trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from weakfs.class_decorators import frozen
from weakfs.reducers.merging.line_merge import Hunk, Part, TooMuchWork, merge_parts, one_hunk, resolved
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import differences, equal
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, Segments, path_of, put, remove, walk, with_mode
from weakfs.reducers.tree.repeated_subtrees import Comparisons
from weakfs.session.conflicts.conflict_types import Choice, ConflictKind, Resolution
from weakfs.session.slices.slice import Conflict


@frozen(eq=False)
class TreeConflict:
    """An entry that both sides changed differently. `parts` are the parts of a merged text.

    `nodes` are the entry in the base, on our side and on theirs. If one side deleted a directory and the other changed
    it, each change inside is a conflict as well, with `inside` set: the answer for the directory covers it. `paths` are
    the paths of the three entries, if they differ.
    """

    path: str
    kind: ConflictKind
    nodes: tuple[Node | None, Node | None, Node | None]
    parts: tuple[Part, ...] = ()
    inside: bool = False
    paths: tuple[str | None, str | None, str | None] | None = None


Ask = Callable[[TreeConflict], Choice | Resolution]


def merge(base: FileTree | None, ours: FileTree, theirs: FileTree) -> FileTree:
    """Return `ours` with what `theirs` changed since `base`.

    Raises `Conflict` with the path of everything that both sides changed differently: contents whose changed lines
    overlap, permission bits, kinds, and entries that one side deleted and the other changed. Raises `TreeTooLarge` if
    the directories that `theirs` changed occur in very many places.
    """
    conflicts: set[str] = set()

    def ask(conflict: TreeConflict) -> Choice:
        conflicts.add(conflict.path)
        return "raise"

    merged, _ = merge_by_path(base, ours, theirs, ask)
    if conflicts:
        raise Conflict(*sorted(conflicts))
    return merged


def merge_by_path(base: FileTree | None, ours: FileTree, theirs: FileTree, ask: Ask) -> tuple[FileTree, bool]:
    """Merge two trees, and `ask` about each conflict; where one stays unresolved, our side's entry is kept.

    Also return whether there is an entry that both sides changed: if not, moves cannot affect the merge.
    """
    work = _Merge(Comparisons(ours, theirs), ask)
    work.directory((), base or EMPTY_TREE, ours, theirs)
    while work.pending:
        work.inside(*work.pending.pop())
    merged = ours
    for path, node, at in work.edits:
        if not path:
            merged = with_mode(merged, cast(FileTree, node).mode)
        elif node is None:
            merged = remove(merged, path, at)
        else:
            merged = put(merged, path, node, at)
    return merged, work.interacts


class _Merge:
    """The state of a merge: edits to make, and directories still to compare."""

    def __init__(self, comparisons: Comparisons, ask: Ask) -> None:
        self.comparisons = comparisons
        self.ask = ask
        self.edits: list[tuple[Segments, Node | None, int]] = []
        self.pending: list[tuple[Segments, FileTree, FileTree, FileTree]] = []
        self.interacts = False

    def directory(self, path: Segments, base: FileTree, ours: FileTree, theirs: FileTree) -> None:
        """Merge a directory that both sides have: its bits now, its entries later."""
        mode = _merge_bits(base.mode, ours.mode, theirs.mode)
        if mode is None:
            mode = self.bits(path, (base, ours, theirs), ours.mode, theirs.mode)
        if mode != ours.mode:
            # This comes before the edits inside, which build on it.
            self.edits.append((path, with_mode(ours, mode), ours.modified_at))
        self.pending.append((path, base, ours, theirs))

    def bits(self, path: Segments, nodes: tuple[Node | None, Node, Node], mine: int, new: int) -> int:
        """Return the permission bits that resolve a conflict."""
        return new if self.ask(TreeConflict(path_of(path), "mode", nodes)) == "theirs" else mine

    def inside(self, path: Segments, base: FileTree, ours: FileTree, theirs: FileTree) -> None:
        """Merge the entries that `theirs` changed."""
        self.comparisons.count(base, ours, theirs)
        at = max(ours.modified_at, theirs.modified_at)
        for name, old, new in maps.differences(base._children, theirs._children):
            mine = ours._entry(name)
            self.entry((*path, name), old, mine, new, at)

    def entry(self, path: Segments, old: Node | None, mine: Node | None, new: Node | None, at: int) -> None:
        """Merge one entry that `theirs` changed from `old` to `new`, while `ours` has `mine`."""
        if mine is old:
            self.edits.append((path, new, at))
        elif type(mine) is FileTree and type(new) is FileTree:
            self.directory(path, old if type(old) is FileTree else EMPTY_TREE, mine, new)
        elif equal(old, new):
            return
        elif equal(mine, old):
            self.edits.append((path, new, at))
        else:
            self.interacts = True
            if not equal(mine, new):
                self.both_changed(path, (old, mine, new), at)

    def both_changed(self, path: Segments, nodes: tuple[Node | None, Node | None, Node | None], at: int) -> None:
        """Merge an entry that the sides changed differently, and that is not a directory in both."""
        _, mine, new = nodes
        if all(type(node) is tuple and leaves.is_file(node) for node in (mine, new)):
            self.files(path, nodes, at)
        else:
            self.replaced(path, nodes, at)

    def files(self, path: Segments, nodes: tuple[Node | None, Node | None, Node | None], at: int) -> None:
        """Merge a file that both sides changed, or created."""
        old, mine, new = nodes[0], cast(Leaf, nodes[1]), cast(Leaf, nodes[2])
        before = old if type(old) is tuple and leaves.is_file(old) else None
        merged = _merge_bits(-1 if before is None else before[leaves.MODE], mine[leaves.MODE], new[leaves.MODE])
        content: Leaf | None
        if leaves.same_content(mine, new) or (before is not None and leaves.same_content(before, new)):
            content = mine
        elif before is not None and leaves.same_content(before, mine):
            content = new
        else:
            content = self.contents(path, nodes, before)
        if merged is not None:
            mode = merged
        elif before is None and not leaves.same_content(mine, new):
            # One conflict is enough for a file that both sides made.
            mode = new[leaves.MODE] if content is new else mine[leaves.MODE]
        else:
            mode = self.bits(path, (old, mine, new), mine[leaves.MODE], new[leaves.MODE])
        if content is None:
            self.edits.append((path, None, at))
        elif content is not mine or mode != mine[leaves.MODE]:
            self.edits.append((path, leaves.with_mode(content, mode), at))

    def contents(
        self, path: Segments, nodes: tuple[Node | None, Node | None, Node | None], before: Leaf | None
    ) -> Leaf | None:
        """Merge the contents of a file that both sides changed; `None` if it is to be deleted."""
        mine, new = cast(Leaf, nodes[1]), cast(Leaf, nodes[2])
        kind: ConflictKind = "content" if before is not None or nodes[0] is None else "type"
        texts = [b"" if before is None else leaves.content_of(before), leaves.content_of(mine), leaves.content_of(new)]
        parts: list[Part] = []
        if all(map(is_text, texts)):
            try:
                parts = merge_parts(*texts)
            except TooMuchWork:
                parts = one_hunk(*texts)
        else:
            kind = "binary"
        at = max(mine[leaves.MODIFIED_AT], new[leaves.MODIFIED_AT])
        if before is not None and parts and not any(isinstance(part, Hunk) for part in parts):
            return leaves.with_content(mine, resolved(parts, "ours"), at)
        choice = self.ask(TreeConflict(path_of(path), kind, nodes, tuple(parts)))
        if isinstance(choice, Resolution):
            content = choice.content.encode() if isinstance(choice.content, str) else choice.content
            return None if content is None else leaves.with_content(mine, content, at)
        if choice == "raise":
            return mine
        if parts:
            return leaves.with_content(mine, resolved(parts, choice), at)
        return mine if choice == "ours" else new

    def replaced(self, path: Segments, nodes: tuple[Node | None, Node | None, Node | None], at: int) -> None:
        """Merge an entry that one side changed, and the other side deleted or replaced with an entry of another kind.

        Deletions inside a directory are covered by its own deletion; any other change inside it is a conflict.
        """
        old, mine, new = nodes
        inside = _changed_inside(path, old, mine, new)
        if not inside and type(old) is FileTree:
            if type(mine) is FileTree and type(new) is not FileTree and mine.mode == old.mode:
                self.edits.append((path, new, at))
                return
            if type(new) is FileTree and type(mine) is not FileTree and new.mode == old.mode:
                return
        kind: ConflictKind = "deleted" if mine is None or new is None else "type"
        if mine is not None and new is not None and _kind(mine) == _kind(new):
            kind = "content"
        choice = self.ask(TreeConflict(path_of(path), kind, nodes))
        if choice == "theirs":
            self.edits.append((path, new, at))
        elif isinstance(choice, Resolution):
            content = choice.content.encode() if isinstance(choice.content, str) else choice.content
            self.edits.append((path, None if content is None else leaves.file(content, at=at), at))
        elif choice == "raise":
            for below, *versions in inside:
                before, here, there = versions
                self.ask(TreeConflict(below, kind, (before, here, there), inside=True))


def _merge_bits(old: int, mine: int, new: int) -> int | None:
    if mine == new or new == old:
        return mine
    return new if mine == old else None


def is_text(data: bytes) -> bool:
    """Return whether contents are merged by lines: UTF-8 without a NUL in the first 8 KiB."""
    if b"\0" in data[:8192]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _kind(node: Node) -> str:
    return "directory" if type(node) is FileTree else leaves.kind_of(node)


def _changed_inside(
    path: Segments, old: Node | None, mine: Node | None, new: Node | None
) -> list[tuple[str, Node | None, Node | None, Node | None]]:
    """Return what one side changed in a directory that the other deleted: each path with its three versions."""
    found: list[tuple[str, Node | None, Node | None, Node | None]] = []
    for node in (mine, new):
        if type(node) is FileTree:
            whole = [(below, None, after) for below, after in walk(node)] if type(old) is not FileTree else []
            parts = differences(old, node) if type(old) is FileTree else whole
            for below, before, after in parts:
                if after is not None:
                    here, there = (after, None) if node is mine else (None, after)
                    found.append((path_of(path) + below, before, here, there))
    return found
