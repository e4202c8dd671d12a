"""Unchanged entries: what a scan reuses of an earlier one, so that equal files and directories are the same objects."""

from __future__ import annotations

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node
from weakfs.session.blobs.blob import Stored
from weakfs.snapshots.scan.sinks import Sink
from weakfs.snapshots.scan.stat_cache import Directory


def unchanged_leaf(leaf: Leaf, known: Directory, sink: Sink) -> Leaf | None:
    """Return the leaf of an unchanged entry, read from the sink's source; `None` if the sink does not keep its content.

    `known` is the directory as the earlier scan found it.
    """
    content = leaf[leaves.CONTENT]
    if sink.trusts(known.token) or type(content) is not Stored:
        return leaf
    if not sink.keeps(content.digest):
        return None
    if content.source is sink.source:
        return leaf
    here = Stored(content.digest, content.size, sink.source)
    return leaves.file(here, mode=leaf[leaves.MODE], at=leaf[leaves.MODIFIED_AT])


def can_replace(old: Leaf, new: Leaf, *, is_kept: bool) -> bool:
    """Return whether a cached leaf can replace a new one: equal in all respects, and read from the right source."""
    one, other = old[leaves.CONTENT], new[leaves.CONTENT]
    if old[leaves.MODE] != new[leaves.MODE] or old[leaves.MODIFIED_AT] != new[leaves.MODIFIED_AT]:
        return False
    if type(one) is Stored and type(other) is Stored:
        return one == other and (is_kept or one.source is other.source)
    return type(one) is type(other) and one == other


def has_exactly(tree: FileTree, nodes: dict[str, Node], mode: int, modified_at: int) -> bool:
    """Return whether a tree has exactly these node objects, and this mode and time."""
    if tree.mode != mode or tree.modified_at != modified_at:
        return False
    known = dict(maps.items(tree._children))
    return len(known) == len(nodes) and all(known.get(name) is node for name, node in nodes.items())
