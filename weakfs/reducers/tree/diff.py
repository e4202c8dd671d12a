"""Differences between two trees. Shared parts are skipped, so the cost depends only on what differs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import cast

from weakfs.class_decorators import frozen
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.directory import UNCOUNTED
from weakfs.reducers.tree.leaf import Leaf, blob_digest, is_file, same, size_of
from weakfs.reducers.tree.node import FileTree, Node, walk
from weakfs.reducers.tree.repeated_subtrees import Comparisons, check_repeats


@frozen
class TreeDiff:
    """The paths that differ, by kind of change, each list sorted.

    `added` and `removed` name files, links and directories, including everything in a directory. `changed` names
    entries whose content, kind, target or permission bits differ. `moved` pairs a removed path with an added
    one of the same content, `(from, to)`, and neither list then contains them; a directory that moved as a
    whole is one pair.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.moved)


def differences(before: FileTree, after: FileTree) -> Iterator[tuple[str, Node | None, Node | None]]:
    """Yield the topmost entries that differ: `(path, before, after)`, `None` for a missing one.

    If a path is a directory on both sides, its entries are compared, and the directory itself is only yielded if its
    own permission bits differ. Nodes that are equal but not the same object are skipped too. The order is arbitrary.
    Raises `TreeTooLarge` if differing directories occur in very many places.
    """
    comparisons = Comparisons(before, after)
    stack: list[tuple[str, FileTree, FileTree]] = [("", before, after)]
    while stack:
        prefix, old_tree, new_tree = stack.pop()
        comparisons.count(old_tree, new_tree)
        for name, old, new in maps.differences(old_tree._children, new_tree._children):
            path = f"{prefix}/{name}"
            if type(old) is FileTree and type(new) is FileTree:
                if old.mode != new.mode:
                    yield path, old, new
                stack.append((path, old, new))
            elif type(old) is not tuple or type(new) is not tuple or not same(old, new):
                yield path, old, new


def equal(one: Node | None, other: Node | None) -> bool:
    """Return whether two nodes have the same names, kinds, contents and permission bits. O(what differs)."""
    if one is other:
        return True
    if type(one) is not FileTree or type(other) is not FileTree:
        return type(one) is tuple and type(other) is tuple and same(one, other)
    # Sides of a merge that both changed usually differ in size: this tells them apart without comparing their entries.
    if one._total_size != other._total_size and UNCOUNTED not in (one._total_size, other._total_size):
        return False
    # Each pair of directories is compared once, wherever it occurs.
    compared = {(id(one), id(other))}
    stack = [(one, other)]
    while stack:
        mine, theirs = stack.pop()
        if mine.mode != theirs.mode:
            return False
        for _, old, new in maps.differences(mine._children, theirs._children):
            if type(old) is FileTree and type(new) is FileTree:
                if (id(old), id(new)) not in compared:
                    compared.add((id(old), id(new)))
                    stack.append((old, new))
            elif type(old) is not tuple or type(new) is not tuple or not same(old, new):
                return False
    return True


def diff(before: FileTree, after: FileTree) -> TreeDiff:
    """Return what was added, removed, changed and moved between two trees. O(what differs)."""
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
    moved, taken = _whole_directories(removed, added)
    flat_added = _flatten(added, {new for _, new in moved})
    flat_removed = _flatten(removed, taken)
    moved += _same_files(flat_removed, flat_added)
    kind_changed = flat_added.keys() & flat_removed.keys()
    changed.extend(kind_changed)
    return TreeDiff(
        tuple(sorted(flat_added.keys() - kind_changed)),
        tuple(sorted(flat_removed.keys() - kind_changed)),
        tuple(sorted(changed)),
        tuple(sorted(moved)),
    )


def _whole_directories(removed: dict[str, Node], added: dict[str, Node]) -> tuple[list[tuple[str, str]], set[str]]:
    """Pair directories that are the same object on both sides, at any depth below the added and removed entries."""
    topmost = {id(node): path for path, node in sorted(removed.items(), reverse=True) if type(node) is FileTree}
    moved: list[tuple[str, str]] = []
    left: list[tuple[str, Node]] = []
    for path, node in sorted(added.items()):
        source = topmost.pop(id(node), None) if type(node) is FileTree and node.node_count else None
        if source is None:
            left.append((path, node))
        else:
            moved.append((source, path))
    taken = {source for source, _ in moved}
    # A directory may also have moved to, or from, a lower level. That is only possible if each side has one left.
    if not topmost or not any(type(node) is FileTree for _, node in left):
        return moved, taken
    sources: dict[int, str] = {}
    for path, node in _below({path: node for path, node in removed.items() if path not in taken}):
        if type(node) is FileTree and node.node_count:
            sources.setdefault(id(node), path)
    # The largest first: the contents of a moved directory are covered by it.
    found = [(path, node) for path, node in _below(dict(left)) if type(node) is FileTree and id(node) in sources]
    used: set[str] = {new for _, new in moved}
    for path, node in sorted(found, key=lambda entry: -entry[1].node_count):
        source = sources[id(node)]
        if not _is_spoken_for(source, taken) and not _is_spoken_for(path, used):
            moved.append((source, path))
            taken.add(source)
            used.add(path)
    return moved, taken


def _is_spoken_for(path: str, taken: set[str]) -> bool:
    """Return whether a path, or a directory above it, is taken. Larger ones come first, so nothing below it can be."""
    while path:
        if path in taken:
            return True
        path = path.rpartition("/")[0]
    return False


def _below(nodes: dict[str, Node]) -> Iterator[tuple[str, Node]]:
    for path, node in sorted(nodes.items()):
        yield path, node
        if type(node) is FileTree:
            yield from walk(node, path)


def _flatten(nodes: dict[str, Node], without: set[str]) -> dict[str, Node]:
    """Return all entries by path, except those of directories that are reported as a whole."""
    flat: dict[str, Node] = {}
    for path, node in nodes.items():
        if type(node) is FileTree and path not in without:
            check_repeats(node)
    stack = list(nodes.items())
    while stack:
        path, node = stack.pop()
        if path in without:
            continue
        flat[path] = node
        if type(node) is FileTree:
            stack.extend((f"{path}/{name}", child) for name, child in maps.items(node._children))
    return flat


def _same_files(removed: dict[str, Node], added: dict[str, Node]) -> list[tuple[str, str]]:
    """Pair files of equal content, the same name first, and remove them from both tables; empty files are not paired.

    Only contents whose size occurs on both sides are hashed.
    """
    removable = {path: node for path, node in removed.items() if type(node) is tuple and _may_move(node)}
    coming = {path: node for path, node in added.items() if type(node) is tuple and _may_move(node)}
    sizes = {size_of(node) for node in removable.values()} & {size_of(node) for node in coming.values()}
    # The removed files by content, and by content and name. Each skips paths that were taken from the other.
    by_content: dict[bytes, deque[str]] = {}
    by_name: dict[tuple[bytes, str], deque[str]] = {}
    for path, node in sorted(removable.items()):
        if size_of(node) in sizes:
            digest = blob_digest(node)
            by_content.setdefault(digest, deque()).append(path)
            by_name.setdefault((digest, _name(path)), deque()).append(path)
    moved: list[tuple[str, str]] = []
    for path, node in sorted(coming.items()):
        if size_of(node) not in sizes or path in removed:
            continue
        digest = blob_digest(node)
        source = _next(by_name.get((digest, _name(path))), removed) or _next(by_content.get(digest), removed)
        if source is not None:
            moved.append((source, path))
            del removed[source], added[path]
    return moved


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _next(candidates: deque[str] | None, left: dict[str, Node]) -> str | None:
    """Return the first candidate that is still left, and remove those before it."""
    while candidates:
        path = candidates.popleft()
        if path in left:
            return path
    return None


def _may_move(leaf: Leaf) -> bool:
    return is_file(leaf) and size_of(leaf) > 0
