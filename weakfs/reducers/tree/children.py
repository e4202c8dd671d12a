"""The entries of one directory as a persistent map from name to node.

With up to 32 names, it is a plain dict, copied on write; with more, it is a tuple of 32 such maps, chosen by bits of
the name's hash. With every version kept, a write into a directory of 100,000 names copies three tuples and a dict of a
few names. The shape depends on this process's string hash, so names must be sorted before they are shown or saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

# A dict of names, or 32 maps and gaps; see the module's docstring.
Children = dict[str, Any] | tuple["Children | None", ...]

BITS = 5
WIDTH = 1 << BITS
MASK = WIDTH - 1
# Names whose 60 lowest hash bits agree share one dict, however many there are.
MAX_DEPTH = 12
# A trie that shrinks to this many names becomes a dict again; half of WIDTH, so that it does not switch back and forth.
FOLD = WIDTH // 2

EMPTY: Children = {}


def build(entries: Iterable[tuple[str, Any]]) -> Children:
    """Make a map of entries; if names repeat, the last one wins. O(entries)."""
    return _spread(dict(entries), 0)


def get(children: Children, name: str) -> Any:
    """Return the node with a name, or `None`."""
    if isinstance(children, dict):
        return children.get(name)
    bits = hash(name)
    part: Any = children
    while type(part) is tuple:
        part = part[bits & MASK]
        bits >>= BITS
    return None if part is None else part.get(name)


def put(children: Children, name: str, node: Any) -> Children:
    """Return a map with `node` under `name`; the old map is unchanged. O(log names)."""
    if isinstance(children, dict) and (len(children) < WIDTH or name in children):
        copy = children.copy()
        copy[name] = node
        return copy
    made: Children = _put(children, hash(name), 0, name, node)
    return made


def remove(children: Children, name: str) -> Children:
    """Return a map without `name`, which must be there. O(log names)."""
    if type(children) is dict:
        copy = children.copy()
        del copy[name]
        return copy
    return _remove(children, hash(name), name) or EMPTY


def updated(children: Children, changes: dict[str, Any]) -> Children:
    """Return a map with the nodes of `changes`; names that are `None` there are removed. O(changes)."""
    made: Children | None = _updated(children, changes, 0)
    return EMPTY if made is None else made


def items(children: Children) -> Iterator[tuple[str, Any]]:
    """Yield all entries in arbitrary order."""
    if isinstance(children, dict):
        yield from children.items()
        return
    for part in children:
        if part is not None:
            yield from items(part)


def as_dict(children: Children) -> dict[str, Any]:
    """Return all entries as a dict in arbitrary order; callers must not change it. O(names / 32) steps."""
    if isinstance(children, dict):
        return children
    entries: dict[str, Any] = {}
    for part in children:
        if part is not None:
            entries.update(as_dict(part))
    return entries


def count(children: Children) -> int:
    """Return the number of names. O(names / 32)."""
    if isinstance(children, dict):
        return len(children)
    return sum(count(part) for part in children if part is not None)


def differences(before: Children, after: Children) -> Iterator[tuple[str, Any, Any]]:
    """Yield the names whose nodes are not the same object: `(name, before, after)`, `None` for a missing one.

    Shared parts are skipped, so the cost depends only on what differs.
    """
    if before is after:
        return
    if type(before) is tuple and type(after) is tuple:
        for old, new in zip(before, after, strict=True):
            if old is not new:
                yield from differences(old or EMPTY, new or EMPTY)
        return
    old_names = before if type(before) is dict else dict(items(before))
    new_names = after if type(after) is dict else dict(items(after))
    for name, old in old_names.items():
        new = new_names.get(name)
        if new is not old:
            yield name, old, new
    for name, new in new_names.items():
        if name not in old_names:
            yield name, None, new


def _spread(names: dict[str, Any], depth: int) -> Children:
    if len(names) <= WIDTH or depth == MAX_DEPTH:
        return names
    parts: list[Any] = [None] * WIDTH
    shift = depth * BITS
    for name, node in names.items():
        index = hash(name) >> shift & MASK
        part = parts[index]
        if part is None:
            parts[index] = {name: node}
        else:
            part[name] = node
    return tuple(part and _spread(part, depth + 1) for part in parts)


def _put(part: Any, bits: int, depth: int, name: str, node: Any) -> Any:
    if type(part) is tuple:
        index = bits & MASK
        parts = list(part)
        parts[index] = _put(part[index], bits >> BITS, depth + 1, name, node)
        return tuple(parts)
    if part is None:
        return {name: node}
    copy = part.copy()
    copy[name] = node
    return _spread(copy, depth) if len(copy) > WIDTH else copy


def _updated(part: Any, changes: dict[str, Any], depth: int) -> Any:
    if type(part) is not tuple:
        names = {} if part is None else part.copy()
        names.update(changes)
        if None in changes.values():
            names = {name: node for name, node in names.items() if node is not None}
        return (_spread(names, depth) if len(names) > WIDTH else names) or None
    shift = depth * BITS
    by_place: dict[int, dict[str, Any]] = {}
    for name, node in changes.items():
        by_place.setdefault(hash(name) >> shift & MASK, {})[name] = node
    parts = list(part)
    for place, below in by_place.items():
        parts[place] = _updated(part[place], below, depth + 1)
    return tuple(parts) if any(type(p) is tuple for p in parts) else _without_gaps(parts)


def _without_gaps(parts: list[Any]) -> Any:
    """Return a map of parts, none of which has parts itself; folded into one dict if they hold few names."""
    remaining = [part for part in parts if part]
    if sum(map(len, remaining)) > FOLD:
        return tuple(parts)
    folded: dict[str, Any] = {}
    for names in remaining:
        folded.update(names)
    return folded or None


def _remove(part: Any, bits: int, name: str) -> Any:
    if type(part) is dict:
        copy = part.copy()
        del copy[name]
        return copy or None
    index = bits & MASK
    rest = _remove(part[index], bits >> BITS, name)
    parts = list(part)
    parts[index] = rest
    if rest is None and all(type(p) is not tuple for p in parts):
        return _without_gaps(parts)
    return tuple(parts)
