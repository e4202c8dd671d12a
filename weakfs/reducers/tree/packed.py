"""The packed form of trees in keyframes: nested tuples of atoms, which the garbage collector stops tracking.

A tree of 100,000 files in 5,000 directories is 10,000 objects to the collector; 60 such trees took 400 ms of every full
collection. Packed, they take no time and a third of the memory: names and subdirectories that two versions have in
common are shared, and files are the leaves of the tree. `weakfs.reducers.tree.lazy_directory` unpacks them.
"""

from __future__ import annotations

from operator import is_
from typing import Any, TypeVar, cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.directory import Directory, Remembering
from weakfs.reducers.tree.leaf import size_of
from weakfs.session.slices.packed_state import Counted, Steps

# A directory: (mode, modified_at, created_at, file_count, directory_count, total_size, names, nodes). In a directory
# with more names than one dict holds, names is `None`, and nodes are 32 parts and gaps, as in `children.py`. A
# part consists of such parts, or is (names, nodes).
Packed = tuple[Any, ...]
D = TypeVar("D", bound=Directory)

DIRECTORIES, NAMES, NODES = 4, 6, 7
# A leaf has 5 fields, a directory 8.
LENGTH = 8

# Approximate sizes in bytes: a directory with its tuple of nodes, an entry in a tuple, and a file's leaf.
DIRECTORY, ENTRY, LEAF = 180, 8, 155


def pack(tree: Directory, before: Packed | None, counted: Counted | None) -> Steps[tuple[Packed, int]]:
    """Pack a tree; return it with the approximate number of bytes that it does not share with `before`.

    `before` is an earlier packed tree. Blobs in `counted` count as 0 bytes; without it, sizes are not computed. O(what
    has not been packed yet), plus O(names) for the directories that differ.
    """
    weight = 0
    stack: list[tuple[Directory, Packed | None]] = [(tree, before)]
    while stack:
        directory, old = stack[-1]
        if packed_of(directory) is not None:
            stack.pop()
            continue
        if directory.directory_count:
            known = dict(directories_of(old)) if old is not None else {}
            waiting = [
                (child, known.get(name))
                for name, child in maps.items(directory._children)
                if type(child) is not tuple and packed_of(child) is None
            ]
            if waiting:
                stack.extend(waiting)
                continue
        stack.pop()
        children, is_flat = directory._children, not directory.directory_count
        if len(children) == maps.PAIR:
            before_part = None if old is None or old[NAMES] is None else old[NAMES:]
            (names, nodes), more = _packed_part(children, is_flat, before_part, counted)
        else:
            before_part = None if old is None or old[NAMES] is not None else old[NODES]
            names, (nodes, more) = None, _packed_part(children, is_flat, before_part, counted)
        remember(
            directory,
            (
                directory.mode,
                directory.modified_at,
                directory.created_at,
                directory.file_count,
                directory.directory_count,
                directory.total_size,
                names,
                nodes,
            ),
        )
        weight += DIRECTORY + more
        yield
    return cast(Packed, packed_of(tree)), weight


def packed_of(tree: Directory) -> Packed | None:
    """Return the cached packed form of a directory, or `None`."""
    return getattr(cast(Remembering, tree), "_packed", None)


def remember(tree: Directory, packed: Packed) -> None:
    """Cache the packed form of a directory."""
    remembering: Remembering = tree
    remembering._packed = packed


def directories_of(packed: Packed) -> list[tuple[str, Packed]]:
    """List the subdirectories of a packed directory by name."""
    if not packed[DIRECTORIES]:
        return []
    found: list[tuple[str, Packed]] = []
    parts = [packed[NODES] if packed[NAMES] is None else packed[NAMES:]]
    while parts:
        part = parts.pop()
        if len(part) == 2:
            found.extend((name, node) for name, node in zip(*part, strict=True) if len(node) == LENGTH)
        else:
            parts.extend(below for below in part if below is not None)
    return found


def _packed_part(
    children: maps.Children, is_flat: bool, old: Packed | None, counted: Counted | None
) -> tuple[Packed, int]:
    """Pack a map of entries, flat if they are all leaves; return `old` itself if it is the same.

    Subdirectories must be packed already.
    """
    if len(children) != maps.PAIR:
        below = old if old is not None and len(old) == maps.WIDTH else (None,) * maps.WIDTH
        weight = ENTRY * maps.WIDTH
        parts: list[Packed | None] = []
        for part, before in zip(children, below, strict=True):
            made, more = (None, 0) if part is None else _packed_part(part, is_flat, before, counted)
            parts.append(made)
            weight += more
        packed = tuple(parts)
        return (old, 0) if old is not None and _are_same(packed, old) else (packed, weight)
    places, nodes = children
    names = tuple(places)
    if not is_flat:
        nodes = tuple([node if type(node) is tuple else node._packed for node in nodes])
    known: tuple[Any, ...] = ()
    if old is not None and len(old) == 2:
        if names == old[0]:
            if _are_same(nodes, old[1]):
                return old, 0
            names = old[0]
        known = old[1]
    if counted is None:
        return (names, nodes), 0
    kept = {*map(id, known)}
    weight = ENTRY * len(names)
    for node in nodes:
        if len(node) != LENGTH and id(node) not in kept:
            weight += LEAF if id(node[0]) in counted else LEAF + counted.other(size_of(node))
    return (names, nodes), weight


def _are_same(one: Packed, other: Packed) -> bool:
    """Return whether two tuples hold identical objects."""
    return one is other or (len(one) == len(other) and all(map(is_, one, other)))


def entry_of(part: Packed, name: str) -> Any:
    """Return the entry with a name in the part of a packed directory, or `None`."""
    bits = hash(name)
    while len(part) != 2:
        below = part[bits & maps.MASK]
        if below is None:
            return None
        part = below
        bits >>= maps.BITS
    names, nodes = part
    return nodes[names.index(name)] if name in names else None


def weight(packed: Packed, before: Packed) -> Steps[int]:
    """Return the approximate number of bytes that a packed tree does not share with `before`, excluding blobs."""
    total = 0
    stack = [(packed, before)]
    seen: set[int] = set()
    while stack:
        new, old = stack.pop()
        if new is old or id(new) in seen:
            continue
        seen.add(id(new))
        total += DIRECTORY
        known = dict(directories_of(old))
        stack.extend((below, known.get(name, EMPTY)) for name, below in directories_of(new))
        total += _part_weight(part_of(new), part_of(old))
        yield
    return total


EMPTY: Packed = (0, 0, 0, 0, 0, 0, (), ())


def part_of(packed: Packed) -> Packed:
    """Return the entries of a packed directory."""
    return cast(Packed, packed[NODES] if packed[NAMES] is None else packed[NAMES:])


def _part_weight(new: Packed, old: Packed) -> int:
    if new is old:
        return 0
    if len(new) == maps.WIDTH:
        below = old if len(old) == maps.WIDTH else (None,) * maps.WIDTH
        return sum(
            _part_weight(one, ((), ()) if other is None else other)
            for one, other in zip(new, below, strict=True)
            if one is not None
        )
    kept = {*map(id, old[1])} if len(old) == 2 else set[int]()
    changed = sum(len(node) != LENGTH and id(node) not in kept for node in new[1])
    return ENTRY * len(new[1]) + LEAF * changed
