"""The entries of one directory as a persistent map from name to node.

With up to 32 names, it is a dict from each name to its place, and a tuple of the nodes; with more, it is a tuple of 32
such maps, chosen by bits of the name's hash. With every version kept, a write into a directory of 100,000 names copies
three tuples and a few nodes. The shape depends on this process's string hash, so names must be sorted before they are
shown or saved.

The versions of a map share its names until one is added or removed. The garbage collector never tracks a dict of
numbers, and soon stops tracking a tuple of leaves; a dict of leaves is tracked from every write to the next full
collection, which then visits all files of the directories that were written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

# (places, nodes), or 32 maps and gaps; see the module's docstring.
Children = tuple[Any, ...]

BITS = 5
WIDTH = 1 << BITS
MASK = WIDTH - 1
# Names whose 60 lowest hash bits agree share one map, however many there are.
MAX_DEPTH = 12
# A trie that shrinks to this many names becomes one map again; half of WIDTH, so that it does not switch back and
# forth.
FOLD = WIDTH // 2
# The length of a map that is not divided.
PAIR = 2

EMPTY: Children = ({}, ())


def build(entries: Iterable[tuple[str, Any]]) -> Children:
    """Make a map of entries; if names repeat, the last one wins. O(entries)."""
    return _spread(dict(entries), 0)


def parts(children: Children) -> tuple[dict[str, int] | None, tuple[Any, ...]]:
    """Return the places of the names, or `None` if the map is divided, and the nodes or smaller maps."""
    return (children[0], children[1]) if len(children) == PAIR else (None, children)


def get(children: Children, name: str) -> Any:
    """Return the node with a name, or `None`."""
    bits = hash(name)
    while len(children) != PAIR:
        part = children[bits & MASK]
        if part is None:
            return None
        children = part
        bits >>= BITS
    places, nodes = children
    place = places.get(name)
    return None if place is None else nodes[place]


def put(children: Children, name: str, node: Any) -> Children:
    """Return a map with `node` under `name`; the old map is unchanged. O(log names)."""
    return _put(children, hash(name), 0, name, node)


def remove(children: Children, name: str) -> Children:
    """Return a map without `name`, which must be there. O(log names)."""
    return _remove(children, hash(name), name) or EMPTY


def updated(children: Children, changes: dict[str, Any]) -> Children:
    """Return a map with the nodes of `changes`; names that are `None` there are removed. O(changes)."""
    return _updated(children, changes, 0) or EMPTY


def items(children: Children) -> Iterator[tuple[str, Any]]:
    """Return an iterator over all entries in arbitrary order."""
    if len(children) == PAIR:
        return zip(*children, strict=True)
    return (entry for part in children if part is not None for entry in items(part))


def as_dict(children: Children) -> dict[str, Any]:
    """Return all entries as a dict in arbitrary order. O(names)."""
    return dict(items(children))


def sorted_entries(children: Children) -> tuple[list[str], list[Any]]:
    """Return the names in order, and their nodes."""
    if len(children) == PAIR:
        places, nodes = children
        names = sorted(places)
        return names, [nodes[places[name]] for name in names]
    entries = as_dict(children)
    names = sorted(entries)
    return names, [entries[name] for name in names]


def count(children: Children) -> int:
    """Return the number of names. O(names / 32)."""
    if len(children) == PAIR:
        return len(children[1])
    return sum(count(part) for part in children if part is not None)


def differences(before: Children, after: Children) -> Iterator[tuple[str, Any, Any]]:
    """Yield the names whose nodes are not the same object: `(name, before, after)`, `None` for a missing one.

    Shared parts are skipped, so the cost depends only on what differs.
    """
    if before is after:
        return
    if len(before) == len(after) == WIDTH:
        for old, new in zip(before, after, strict=True):
            if old is not new:
                yield from differences(old or EMPTY, new or EMPTY)
        return
    if before[0] is after[0]:
        for name, old, new in zip(before[0], before[1], after[1], strict=True):
            if new is not old:
                yield name, old, new
        return
    old_places, old_nodes = before if len(before) == PAIR else pair(as_dict(before))
    new_places, new_nodes = after if len(after) == PAIR else pair(as_dict(after))
    for name, old in zip(old_places, old_nodes, strict=True):
        place = new_places.get(name)
        new = None if place is None else new_nodes[place]
        if new is not old:
            yield name, old, new
    for name, new in zip(new_places, new_nodes, strict=True):
        if name not in old_places:
            yield name, None, new


def pair(entries: dict[str, Any]) -> Children:
    """Make an undivided map, as for up to 32 names, of any number of entries. O(entries)."""
    return dict(zip(entries, range(len(entries)), strict=True)), tuple(entries.values())


def _spread(names: dict[str, Any], depth: int) -> Children:
    if len(names) <= WIDTH or depth == MAX_DEPTH:
        return pair(names)
    parts: list[Any] = [None] * WIDTH
    shift = depth * BITS
    for name, node in names.items():
        index = hash(name) >> shift & MASK
        part = parts[index]
        if part is None:
            parts[index] = {name: node}
        else:
            part[name] = node
    return tuple([part and _spread(part, depth + 1) for part in parts])


def _put(part: Children | None, bits: int, depth: int, name: str, node: Any) -> Children:
    if part is None:
        return {name: 0}, (node,)
    if len(part) != PAIR:
        index = bits & MASK
        parts = list(part)
        parts[index] = _put(part[index], bits >> BITS, depth + 1, name, node)
        return tuple(parts)
    places, nodes = part
    place = places.get(name)
    if place is not None:
        changed = list(nodes)
        changed[place] = node
        return places, tuple(changed)
    if len(nodes) >= WIDTH and depth < MAX_DEPTH:
        return _spread({**as_dict(part), name: node}, depth)
    return {**places, name: len(nodes)}, (*nodes, node)


def _updated(part: Children | None, changes: dict[str, Any], depth: int) -> Children | None:
    if part is None or len(part) == PAIR:
        places, nodes = EMPTY if part is None else part
        if changes.keys() <= places.keys() and None not in changes.values():
            changed = list(nodes)
            for name, node in changes.items():
                changed[places[name]] = node
            return places, tuple(changed)
        names = {**dict(zip(places, nodes, strict=True)), **changes}
        names = {name: node for name, node in names.items() if node is not None}
        return _spread(names, depth) if names else None
    shift = depth * BITS
    by_place: dict[int, dict[str, Any]] = {}
    for name, node in changes.items():
        by_place.setdefault(hash(name) >> shift & MASK, {})[name] = node
    parts = list(part)
    for index, below in by_place.items():
        parts[index] = _updated(part[index], below, depth + 1)
    return tuple(parts) if any(map(_is_divided, parts)) else _without_gaps(parts)


def _is_divided(part: Children | None) -> bool:
    return part is not None and len(part) != PAIR


def _without_gaps(parts: list[Children | None]) -> Children | None:
    """Return a map of parts, none of which is divided; made into one map if they hold few names."""
    remaining = [part for part in parts if part is not None]
    if sum(map(count, remaining)) > FOLD:
        return tuple(parts)
    folded = {name: node for part in remaining for name, node in items(part)}
    return pair(folded) if folded else None


def _remove(part: Children, bits: int, name: str) -> Children | None:
    if len(part) == PAIR:
        entries = as_dict(part)
        del entries[name]
        return pair(entries) if entries else None
    index = bits & MASK
    rest = _remove(part[index], bits >> BITS, name)
    parts = list(part)
    parts[index] = rest
    if rest is None and not any(map(_is_divided, parts)):
        return _without_gaps(parts)
    return tuple(parts)
