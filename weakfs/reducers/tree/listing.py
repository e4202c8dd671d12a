"""A directory as a search goes through it: in the order of the paths, with the bytes that are at hand.

A node of up to 32 names keeps its listing until a change makes a new node of it, so that a search after another
one, or after a write elsewhere, neither sorts nor looks at its entries anew. A wider one keeps none: with many old
versions that are remembering, it would be two pointers a name for each. What is kept are the very names, contents and
nodes that the directory holds, in tuples that the garbage collector lets off unless a directory is among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import CONTENT, is_file
from weakfs.reducers.tree.node import FileTree, Listing, Node, Remembering

_name: Callable[[tuple[str, Node]], str] = itemgetter(0)


def listing(tree: FileTree) -> Listing:
    """Return the listing of a directory. O(its entries) the first time, then O(1) for up to 32 of them.

    Threads that come together each make it, and it does not matter whose is kept.
    """
    children = tree._children
    if type(children) is not dict:
        return _listing(maps.as_dict(children))
    remembering: Remembering = tree
    kept = getattr(remembering, "_listing", None)
    if kept is None:
        remembering._listing = kept = _listing(children)
    return kept


def listing_of(entries: Iterable[tuple[str, Node]]) -> Listing:
    """Make the listing of a directory with these entries: links, FIFOs and the like are left out."""
    return _listing(dict(entries))


def _listing(nodes: dict[str, Node]) -> Listing:
    for node in nodes.values():
        if type(node) is FileTree or type(node[CONTENT]) is not bytes:
            return _mixed(nodes)
    # Written for speed: most directories are like this, and a first search makes all their listings.
    leaves = cast("dict[str, tuple[bytes]]", nodes)
    names = tuple(sorted(leaves))
    contents = tuple([leaves[name][0] for name in names])
    return names, contents, sum(map(len, contents))


def _mixed(nodes: dict[str, Node]) -> Listing:
    found = [(name, node) for name, node in in_path_order(nodes.items()) if type(node) is FileTree or is_file(node)]
    return tuple([name for name, _ in found]), tuple([_remembering(node) for _, node in found]), None


def in_path_order(entries: Iterable[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Sort a directory's entries so that a walk gives paths in the order of their characters."""
    by_name = sorted(entries, key=_name)
    for _, node in by_name:
        if type(node) is FileTree:
            return sorted(by_name, key=lambda entry: entry[0] + "/" if type(entry[1]) is FileTree else entry[0])
    return by_name


def _remembering(node: Node) -> Node | bytes:
    if type(node) is FileTree:
        return node
    content = node[0]
    return content if type(content) is bytes else node
