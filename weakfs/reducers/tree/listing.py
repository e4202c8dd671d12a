"""Listings of directories for searches: in path order, with the contents that are in memory.

A directory of up to 32 names caches its listing until a change replaces the node, so that later searches neither sort
nor inspect its entries again. A larger directory does not: if many old versions cached their listings, each one would
cost two pointers per name. A listing consists of the same names, contents and nodes that the directory holds, in tuples
that the garbage collector does not track unless they contain a directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.directory import Remembering
from weakfs.reducers.tree.leaf import CONTENT, NO_FILE
from weakfs.reducers.tree.node import FileTree, Listing, Node

_name: Callable[[tuple[str, Node]], str] = itemgetter(0)


def listing(tree: FileTree) -> Listing:
    """Return the listing of a directory. O(its entries) the first time, then O(1) for up to 32 of them.

    Threads that call this at the same time may each build the listing; it does not matter which one is kept.
    """
    remembering: Remembering = tree
    kept = getattr(remembering, "_listing", None)
    if kept is None:
        children = tree._children
        is_small = len(children) == maps.PAIR
        kept = _listing(children if is_small else maps.pair(maps.as_dict(children)))
        if is_small:
            remembering._listing = kept
    return kept


def listing_of(entries: Iterable[tuple[str, Node]]) -> Listing:
    """Return the listing of a directory with these entries: links, FIFOs and the like are left out."""
    by_name = in_path_order(entries)
    found = [pair for pair in by_name if type(pair[1]) is FileTree or type(pair[1][CONTENT]) not in NO_FILE]
    shown = [_remembering(node) for _, node in found]
    is_plain = len(found) == len(by_name) and all(type(one) is bytes for one in shown)
    size = sum(map(len, cast("list[bytes]", shown))) if is_plain else None
    return tuple([name for name, _ in found]), tuple(shown), size


def _listing(pair: maps.Children) -> Listing:
    places, nodes = pair
    for node in nodes:
        if type(node) is FileTree or type(node[CONTENT]) is not bytes:
            return listing_of(zip(places, nodes, strict=True))
    # Optimized for speed: most directories are of this kind, and the first search builds the listings of all of them.
    names = tuple(sorted(places))
    contents = tuple([nodes[places[name]][CONTENT] for name in names])
    return names, contents, sum(map(len, contents))


def in_path_order(entries: Iterable[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Sort a directory's entries so that a walk yields paths in the order of their characters."""
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
