"""What differs between two trees. What they share is passed over: the cost is what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from attrs import frozen

from weakfs.reducers import children as maps
from weakfs.reducers.leaf import Leaf, blob_digest, is_link, same, size_of
from weakfs.reducers.tree import FileTree, Node, walk


@frozen
class TreeDiff:
    """Paths by what became of them, each list sorted.

    `added` and `removed` name files, links and directories, with all that is in a directory. `changed` names
    entries whose content, kind, target or permission bits differ. `moved` pairs a removed path with an added
    one of the same content, `(from, to)`, and those are then in neither list; a directory that moved as a
    whole is one pair.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.moved)


def differences(before: FileTree, after: FileTree) -> Iterator[tuple[str, Node | None, Node | None]]:
    """Go through the topmost entries that differ: `(path, before, after)`, `None` where there is none.

    Two directories of one path are compared inside, and given themselves only if their own permission bits
    differ. Nodes that are equal but not the same object are passed over too. In no particular order.
    """
    stack: list[tuple[str, FileTree, FileTree]] = [("", before, after)]
    while stack:
        prefix, old_tree, new_tree = stack.pop()
        for name, old, new in maps.differences(old_tree.children, new_tree.children):
            path = f"{prefix}/{name}"
            if type(old) is FileTree and type(new) is FileTree:
                if old.mode != new.mode:
                    yield path, old, new
                stack.append((path, old, new))
            elif type(old) is not tuple or type(new) is not tuple or not same(old, new):
                yield path, old, new


def equal(one: Node | None, other: Node | None) -> bool:
    """Tell whether two nodes have the same names, kinds, contents and permission bits. O(what differs)."""
    if one is other:
        return True
    if type(one) is FileTree and type(other) is FileTree:
        return one.mode == other.mode and next(differences(one, other), None) is None
    return type(one) is tuple and type(other) is tuple and same(one, other)


def diff(before: FileTree, after: FileTree) -> TreeDiff:
    """Tell what was added, removed, changed and moved between two trees. O(what differs)."""
    added: dict[str, Node] = {}
    removed: dict[str, Node] = {}
    changed: list[str] = ["/"] if before.mode != after.mode else []
    for path, old, new in differences(before, after):
        if old is None:
            added[path] = cast(Node, new)
        elif new is None:
            removed[path] = old
        elif type(old) is type(new):
            changed.append(path)
        else:
            added[path], removed[path] = new, old
    moved = _whole_directories(removed, added)
    flat_added, flat_removed = _flatten(added), _flatten(removed)
    moved += _same_files(flat_removed, flat_added)
    kind_changed = flat_added.keys() & flat_removed.keys()
    changed.extend(kind_changed)
    return TreeDiff(
        tuple(sorted(flat_added.keys() - kind_changed)),
        tuple(sorted(flat_removed.keys() - kind_changed)),
        tuple(sorted(changed)),
        tuple(sorted(moved)),
    )


def _whole_directories(removed: dict[str, Node], added: dict[str, Node]) -> list[tuple[str, str]]:
    """Pair directories that are the same object on both sides, and take them out of both tables."""
    sources = {id(node): path for path, node in sorted(removed.items(), reverse=True) if type(node) is FileTree}
    moved: list[tuple[str, str]] = []
    for path, node in sorted(added.items()):
        source = sources.pop(id(node), None)
        if source is not None:
            moved.append((source, path))
            del removed[source], added[path]
    return moved


def _flatten(nodes: dict[str, Node]) -> dict[str, Node]:
    flat: dict[str, Node] = {}
    for path, node in nodes.items():
        flat[path] = node
        if type(node) is FileTree:
            flat.update(walk(node, path))
    return flat


def _same_files(removed: dict[str, Node], added: dict[str, Node]) -> list[tuple[str, str]]:
    """Pair files of equal content, the same name first, and take them out of both tables; empty ones stay."""
    sizes = {size_of(node) for node in removed.values() if type(node) is tuple}
    sources: dict[bytes, list[str]] = {}
    for path, node in sorted(removed.items()):
        if type(node) is tuple and _may_move(node):
            sources.setdefault(blob_digest(node), []).append(path)
    moved: list[tuple[str, str]] = []
    for path, node in sorted(added.items()):
        if type(node) is not tuple or not _may_move(node) or size_of(node) not in sizes:
            continue
        candidates = sources.get(blob_digest(node), [])
        if candidates and path not in removed:
            name = path.rpartition("/")[2]
            source = next((c for c in candidates if c.rpartition("/")[2] == name), candidates[0])
            candidates.remove(source)
            moved.append((source, path))
            del removed[source], added[path]
    return moved


def _may_move(leaf: Leaf) -> bool:
    return not is_link(leaf) and size_of(leaf) > 0
