"""The file tree: an immutable directory node, whose entries are leaves and further trees.

Every subtree is itself a tree. A change copies the directories on the way to it and shares the rest;
every directory carries the totals of what is below it, so that statistics and quotas cost O(depth).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, final

from weakfs.class_decorators import define
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import lazy_directory
from weakfs.reducers.tree import packed as packed_form
from weakfs.reducers.tree.children import Children
from weakfs.reducers.tree.directory import UNCOUNTED, Directory, Remembering
from weakfs.reducers.tree.leaf import CONTENT, DIRECTORY_MODE, WHITEOUT, Leaf, size_of
from weakfs.reducers.tree.repeated_subtrees import check_repeats
from weakfs.session import event
from weakfs.session.slices.packed_state import Counted, Steps

Segments = tuple[str, ...]

# No tree may have more entries. A directory that is copied into itself a few dozen times shares everything and costs
# nothing until it is walked.
MAX_NODES = 1 << 30


@final
@event("fs/tree")
@define(eq=False, repr=False)
class FileTree(Directory):
    """A directory with everything in it. Times are integer nanoseconds; counts include everything below.

    It is made by `tree_of` and the other functions of this module, and never changed. `file_count` counts files and
    links.
    """

    def __reduce__(self) -> tuple[type[FileTree], tuple[Any, ...]]:
        counts = self.file_count, self.directory_count, self.total_size
        return FileTree, (*maps.parts(self._children), self.mode, self.modified_at, self.created_at, *counts)

    def _read(self) -> Children:
        return lazy_directory.read(self)

    def _count(self) -> None:
        lazy_directory.complete(self)

    def __repr__(self) -> str:
        return f"<FileTree of {self.file_count} files and {self.directory_count} directories>"

    @property
    def digest(self) -> str:
        """The git object id (SHA-256 object format) of this tree, in hex. O(what has not been hashed yet)."""
        from weakfs.reducers.tree.digest import tree_digest

        return tree_digest(self).hex()

    @property
    def fingerprint(self) -> str:
        """A hash that also covers what git leaves out: empty directories and full permission bits."""
        from weakfs.reducers.tree.digest import tree_fingerprint

        return tree_fingerprint(self).hex()

    def pack(self, before: tuple[Any, ...] | None, counted: Counted | None) -> Steps[tuple[tuple[Any, ...], int]]:
        """Return the packed form for a keyframe, and its weight: see `weakfs.reducers.tree.packed`."""
        return packed_form.pack(self, before, counted)

    @classmethod
    def unpack(cls, packed: tuple[Any, ...], known: dict[int, Any] | None = None) -> FileTree:
        """Return the tree; trees unpacked with the same `known` share directories. O(1): entries are unpacked later."""
        tree: FileTree = lazy_directory.unpacked(cls, packed, {} if known is None else known)
        return tree

    @classmethod
    def weight(cls, packed: tuple[Any, ...], before: tuple[Any, ...]) -> Steps[int]:
        """Return the approximate number of bytes that a packed tree does not share with `before`, excluding blobs."""
        return packed_form.weight(packed, before)


Node = Leaf | FileTree

# The names in a directory in path order; for each name its subdirectory, the bytes of its file or, if these are not in
# memory, its leaf; and the total size of the bytes if there are only bytes, else `None`.
Listing = tuple[tuple[str, ...], tuple[bytes | Node, ...], int | None]

EMPTY_TREE = FileTree()


def is_tree(node: object) -> bool:
    """Return whether a node is a directory, and not a leaf."""
    return type(node) is FileTree


def is_whiteout(node: Node | None) -> bool:
    """Return whether a node is a whiteout, which hides the entry of a lower layer at its path."""
    return type(node) is tuple and node[CONTENT] is WHITEOUT


def find(tree: FileTree, segments: Segments) -> Node | None:
    """Return the node at a path, or `None`. O(depth)."""
    node: Any = tree
    for name in segments:
        if type(node) is not FileTree:
            return None
        places = node._places
        if places:
            place = places.get(name)
            node = None if place is None else node._nodes[place]
        else:
            node = maps.get(node._children, name)
    return cast("Node | None", node)


def find_or_blocking_leaf(tree: FileTree, segments: Segments) -> Node | None:
    """Return the node at a path, or the leaf that is in place of one of its directories."""
    node: Node | None = tree
    for name in segments:
        if type(node) is not FileTree:
            break
        node = node._entry(name)
    return node


def entries(tree: FileTree) -> list[tuple[str, Node]]:
    """List a directory's entries by name. O(entries)."""
    return sorted(maps.items(tree._children), key=_by_name)


def _by_name(entry: tuple[str, Node]) -> str:
    return entry[0]


def is_beginning(tree: FileTree) -> bool:
    """Return whether a tree equals the one that a session starts with."""
    begun = (tree.mode, tree.modified_at, tree.created_at) == (EMPTY_TREE.mode, 0, 0)
    return begun and not tree.file_count and not tree.directory_count


def only_directory(node: object) -> str | None:
    """Return the name of the only entry of a directory if that is a directory too, otherwise `None`."""
    if type(node) is not FileTree or node.file_count or maps.count(node._children) != 1:
        return None
    return next(name for name, _ in maps.items(node._children))


def tree_of(
    nodes: dict[str, Node], *, mode: int = DIRECTORY_MODE, modified_at: int = 0, created_at: int = 0
) -> FileTree:
    """Make a directory with all its entries at once. O(entries)."""
    leaves = [node for node in nodes.values() if type(node) is not FileTree]
    # The same as the sum of `size_of`, in half the time.
    files, directories, size = len(leaves), 0, sum([len(node[0]) for node in leaves if type(node[0]) is not str])
    for node in nodes.values() if files < len(nodes) else ():
        if type(node) is FileTree:
            files += node.file_count
            directories += node.directory_count + 1
            size += node.total_size
    return FileTree(*maps.parts(maps.build(nodes.items())), mode, modified_at, created_at, files, directories, size)


# The way to a path: each directory on it, the name of the next step, and what is there now.
Way = list[tuple[FileTree, str, Node | None]]


def way_to(tree: FileTree, segments: Sequence[str], at: int) -> Way:
    """Return the way to a path; missing directories are made, with the time `at`. The last step is the path itself."""
    way: Way = []
    old: Any = tree
    for name in segments:
        directory = old if type(old) is FileTree else FileTree({}, (), DIRECTORY_MODE, at, at)
        places = directory._places
        if places:
            place = places.get(name)
            old = None if place is None else directory._nodes[place]
        else:
            old = maps.get(directory._children, name)
        way.append((directory, name, old))
    return way


def put(tree: FileTree, segments: Segments, node: Node, at: int) -> FileTree:
    """Return the tree with `node` at a path, replacing what is there; missing parents are made. O(depth).

    A directory whose set of names changes gets the modification time `at`. The root itself cannot be put (use the
    node).
    """
    return rebuilt(way_to(tree, segments, at), node, at)


def remove(tree: FileTree, segments: Segments, at: int) -> FileTree:
    """Return the tree without the entry at a path; the same tree if nothing is there. O(depth)."""
    way = way_to(tree, segments, at)
    return rebuilt(way, None, at) if way[-1][2] is not None else tree


def rebuilt(way: Way, node: Node | None, at: int) -> FileTree:
    """Rebuild the directories of a way, from the last up, with `node` (or nothing) at its end."""
    files, directories, size = _counts(node)
    less_files, less_directories, less_size = _counts(way[-1][2])
    files, directories, size = files - less_files, directories - less_directories, size - less_size
    new = node
    for directory, name, old in reversed(way):
        # From now on only the new directory is searched. The listing of the old one is dropped, so that of 1,000
        # versions only the last one keeps listings.
        replaced: Remembering = directory
        replaced._listing = None
        if directory._total_size == UNCOUNTED:
            directory._count()
        is_new = old is None or new is None
        if new is not node and type(old) is not FileTree:
            # The directory was missing; if a leaf was in its place, it is replaced.
            is_new = True
            directories += 1
            if old is not None:
                files, size = files - 1, size - size_of(old)
        places, nodes = directory._places, directory._nodes
        place = places.get(name) if places else None
        if place is None or new is None:
            children = directory._children
            children = maps.remove(children, name) if new is None else maps.put(children, name, new)
            places, nodes = maps.parts(children)
        else:
            changed = list(nodes)
            changed[place] = new
            nodes = tuple(changed)
        new = FileTree(
            places,
            nodes,
            directory._mode,
            at if is_new else directory._modified_at,
            directory._created_at,
            directory._file_count + files,
            directory._directory_count + directories,
            directory._total_size + size,
        )
    return cast(FileTree, new)


def _counts(node: Node | None) -> tuple[int, int, int]:
    """Return the numbers of files, directories and bytes in a node, including a directory itself."""
    if node is None:
        return 0, 0, 0
    if type(node) is FileTree:
        return node.file_count, node.directory_count + 1, node.total_size
    content = node[0]
    return 1, 0, 0 if type(content) is str else len(content)


def status_of(tree: FileTree) -> tuple[int, int, int]:
    """Return the permission bits of a directory, and when it was modified and created."""
    return tree.mode, tree.modified_at, tree.created_at


def with_status(tree: FileTree, mode: int, modified_at: int, created_at: int) -> FileTree:
    """Return the directory with other permission bits and times."""
    return FileTree(*maps.parts(tree._children), mode, modified_at, created_at, *lazy_directory.counts_of(tree))


def with_mode(tree: FileTree, mode: int) -> FileTree:
    """Return the directory with other permission bits."""
    return with_status(tree, mode, tree.modified_at, tree.created_at)


def walk(tree: FileTree, prefix: str = "") -> Iterator[tuple[str, Node]]:
    """Yield everything below, parents first, sorted by name within each directory: `(path, node)`.

    Raises `TreeTooLarge` for a tree that consists mostly of copies of itself: see `repeated_subtrees.py`.
    """
    check_repeats(tree)
    stack: list[Iterator[tuple[str, Node]]] = [iter(entries(tree))]
    prefixes = [prefix]
    while stack:
        for name, node in stack[-1]:
            path = f"{prefixes[-1]}/{name}"
            yield path, node
            if type(node) is FileTree:
                stack.append(iter(entries(node)))
                prefixes.append(path)
                break
        else:
            stack.pop()
            prefixes.pop()


def height(tree: FileTree) -> int:
    """Return the number of segments in the deepest path below a directory. O(directories), cached on the node."""
    stack = [tree] if tree._height is None else []
    while stack:
        node = stack[-1]
        below = [child for _, child in maps.items(node._children) if type(child) is FileTree]
        missing = [child for child in below if child._height is None]
        if missing:
            stack.extend(missing)
            continue
        node._height = max((cast(int, child._height) + 1 for child in below), default=1 if node.file_count else 0)
        stack.pop()
    return cast(int, tree._height)


def path_of(segments: Segments) -> str:
    """Return the path with these segments; `/` for none."""
    return "/" + "/".join(segments)
