"""The difference between two trees as JSON: what one has and the other does not, directory by directory.

It refers to the directories of the other tree by path. The cost depends only on what differs, not on the size of the
trees.
"""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.reducers.codec.tree_writer import TreeWriter
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.node import FileTree, Node, Segments, path_of
from weakfs.session.codec.blob_table import Blobs, Json

# A directory that differs: its path, its values before and afterwards, and the differing names with their nodes.
Differing = tuple[Segments, FileTree, FileTree, list[tuple[str, "Node | None", "Node | None"]]]


def write_difference(before: FileTree, after: FileTree, blobs: Blobs) -> Json:
    """Return `after` as a difference from `before`. O(what differs).

    `from` lists the paths in `before` of the directories that differ. `rows` are rows as in the section `trees` of a
    session file; their numbers come after those of these directories, and the last row is `after`. A row's `base` is
    the number of one of the directories.
    """
    differing = list(_differing((), before, after))
    writer = TreeWriter(blobs)
    for _, old_tree, _, _ in differing:
        writer.keep_row(None, old_tree)
    for number, (_, _, tree, changes) in enumerate(differing):
        for _, old, new in changes:
            if type(new) is FileTree and type(old) is not FileTree:
                writer.number(new)
        row: dict[str, Json] = {"mode": tree.mode, "times": [tree.modified_at, tree.created_at], "base": number}
        gone = sorted(name for name, _, new in changes if new is None)
        if gone:
            row["gone"] = gone
        entries = sorted((name, new) for name, _, new in changes if new is not None)
        old_nodes = {name: old for name, old, _ in changes if old is not None}
        writer.keep_row(writer.entries(row, entries, old_nodes), tree)
    return {
        "from": [path_of(segments) for segments, _, _, _ in differing],
        "rows": writer.rows[len(differing) :],
    }


def _differing(segments: Segments, before: FileTree, after: FileTree) -> Iterator[Differing]:
    """Yield the directories that both trees have and that differ, children before parents."""
    changes = list(maps.differences(before._children, after._children))
    for name, old, new in changes:
        if type(old) is FileTree and type(new) is FileTree:
            yield from _differing((*segments, name), old, new)
    yield segments, before, after, changes
