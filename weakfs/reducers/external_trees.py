"""External trees: what a session knows about files outside it, by the id of their filesystem.

Such a tree is never complete: it holds what was found before the first change of each path (`EntryFound`), and what has
changed since. So besides the current files, the entries that were found are kept, each as it was first seen. They show
which paths were known at a given moment, and complete an earlier moment with entries that were found only later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.reducers.events import EntryFound, TreeSeen
from weakfs.reducers.partial_trees import filled, missing, with_changes
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree
from weakfs.reducers.tree.packed import EMPTY, Packed
from weakfs.session import event
from weakfs.session.slices.log import Log
from weakfs.session.slices.packed_state import Counted, Steps
from weakfs.session.slices.tags import tag_of

if TYPE_CHECKING:
    from weakfs.session import Session, SessionView


@event("fs/external_tree")
@frozen
class ExternalTree:
    """The known part of one external filesystem.

    `tree` holds the files as they are now, and `found` those that existed before the session, as they were when found.
    `is_whole` is true if everything was seen at once, by a scan: nothing else exists.
    """

    tree: FileTree = field(default=EMPTY_TREE, repr=False)
    found: FileTree = field(default=EMPTY_TREE, repr=False)
    is_whole: bool = False

    def completed(self, other: ExternalTree) -> FileTree:
        """Return the files of this moment, completed with those that only `other` knows. O(what differs)."""
        return filled(self.tree, missing(self.found, other.found), ())


def _read_only(trees: Mapping[str, ExternalTree]) -> Mapping[str, ExternalTree]:
    return MappingProxyType(dict(trees))


@event("fs/external_trees")
@frozen
class ExternalTrees:
    """All external filesystems of a session, by id. `trees` is read-only."""

    trees: Mapping[str, ExternalTree] = field(factory=dict[str, ExternalTree], converter=_read_only)

    def __reduce__(self) -> tuple[type[ExternalTrees], tuple[dict[str, ExternalTree]]]:
        # A read-only view can be neither copied nor pickled.
        return ExternalTrees, (dict(self.trees),)

    def tree(self, filesystem: str) -> FileTree:
        """Return the known files of one filesystem; an empty tree if it is unknown."""
        return self.known(filesystem).tree

    def known(self, filesystem: str) -> ExternalTree:
        """Return everything known about one filesystem."""
        return self.trees.get(filesystem) or ExternalTree()

    def with_tree(self, filesystem: str, known: ExternalTree) -> ExternalTrees:
        """Return the trees with one filesystem replaced; the same object if nothing changes."""
        if self.trees.get(filesystem) is known:
            return self
        return ExternalTrees({**self.trees, filesystem: known})

    def pack(self, before: Packed | None, counted: Counted) -> Steps[tuple[Packed, int]]:
        """Return the packed form for a keyframe, and its weight, as `Packable.pack` does."""
        old = {name: (tree, found) for name, tree, found, _ in before or ()}
        packed: list[tuple[object, ...]] = []
        total = 0
        for name, known in self.trees.items():
            old_tree, old_found = old.get(name, (None, None))
            tree, more = yield from known.tree.pack(old_tree, counted)
            found, again = yield from known.found.pack(old_found, counted)
            packed.append((name, tree, found, known.is_whole))
            total += more + again
        return tuple(packed), total

    @classmethod
    def unpack(cls, packed: Packed, known: dict[int, Any] | None = None) -> ExternalTrees:
        """Return the value, unpacked."""
        known = {} if known is None else known
        return cls(
            {
                name: ExternalTree(FileTree.unpack(tree, known), FileTree.unpack(found, known), is_whole)
                for name, tree, found, is_whole in packed
            }
        )

    @classmethod
    def weight(cls, packed: Packed, before: Packed) -> Steps[int]:
        """Return the approximate number of bytes that a packed form does not share with `before`, excluding blobs."""
        old = {name: (tree, found) for name, tree, found, _ in before}
        total = 0
        for name, tree, found, _ in packed:
            for new, other in zip((tree, found), old.get(name, (EMPTY, EMPTY)), strict=True):
                total += yield from FileTree.weight(new, other)
        return total


NO_TREES = ExternalTrees()
_FILES, _EXTERNAL = tag_of(FileTree), tag_of(ExternalTrees)
_NOTHING = Log[Any]()


def external_trees(session: Session | SessionView) -> ExternalTrees:
    """Return what a session knows about external filesystems, now or at a moment."""
    return session[ExternalTrees].latest() or NO_TREES


def tree_in(state: Mapping[str, Log[Any]], filesystem: str | None) -> FileTree | None:
    """Return the files of an external filesystem, or the session's own if `filesystem` is `None`.

    `state` holds the STATE slices by tag. Returns `None` if it holds no such files.
    """
    if filesystem is None:
        own: FileTree | None = state.get(_FILES, _NOTHING).last()
        return own
    trees: ExternalTrees | None = state.get(_EXTERNAL, _NOTHING).last()
    return None if trees is None else trees.tree(filesystem)


def on_external(
    reducer: Callable[[FileTree, Any], FileTree], values: Log[ExternalTrees], event: Any
) -> Log[ExternalTrees]:
    """Reduce an event of external files, with the reducer of the same event for the session's own files."""
    name = event.filesystem
    if name is None:
        return values
    trees = values.last() or NO_TREES
    known = trees.known(name)
    tree = reducer(known.tree, event)
    found, is_whole = known.found, known.is_whole
    if type(event) is EntryFound:
        found = _with_found(known, event)
    elif type(event) is TreeSeen and not is_whole:
        # Files that were not looked up before are assumed to have always been there.
        found, is_whole = _with_all(known, event.tree), True
    if tree is known.tree and found is known.found and is_whole is known.is_whole:
        return values if name in trees.trees else values.replace_last(trees.with_tree(name, known))
    return values.replace_last(trees.with_tree(name, ExternalTree(tree, found, is_whole)))


def _with_found(known: ExternalTree, event: EntryFound) -> FileTree:
    segments = tuple(event.path[1:].split("/"))
    node = event.tree._entry(segments[-1])
    return known.found if node is None else filled(known.found, [(segments, node)], (known.tree,))


def _with_all(known: ExternalTree, tree: FileTree) -> FileTree:
    if not known.found.node_count and not known.tree.node_count:
        return tree
    return filled(known.found, (((name,), node) for name, node in maps.items(tree._children)), (known.tree,))


def merge_external(base: ExternalTrees | None, ours: ExternalTrees, theirs: ExternalTrees) -> ExternalTrees:
    """Return `ours` with what `theirs` changed since `base`; if both changed a path, `theirs` wins.

    Both sides share one disk: a path changed by one transaction is locked for all others until that transaction ends.
    So the transaction that ends later also changed the path later, starting from what it found. Merging lines would
    produce contents that exist nowhere, and a conflict would undo work that was done in the right order.
    """
    before = base or NO_TREES
    merged = ours
    for name, new in theirs.trees.items():
        old, mine = before.known(name), merged.known(name)
        if new is old:
            continue
        if mine is old:
            merged = merged.with_tree(name, new)
            continue
        found = filled(mine.found, missing(mine.found, new.found), ())
        tree = with_changes(old.tree, mine.tree, new.tree)
        merged = merged.with_tree(name, ExternalTree(tree, found, mine.is_whole or new.is_whole))
    return merged
