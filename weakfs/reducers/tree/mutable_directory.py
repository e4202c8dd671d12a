"""Drafts: directories that are changed in place before they become immutable nodes of a tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard, cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.children import Children
from weakfs.reducers.tree.leaf import Leaf, size_of
from weakfs.reducers.tree.node import FileTree
from weakfs.reducers.tree.packed import LENGTH, Packed, directories_of, remember


class DirectoryDraft:
    """A directory that is being changed, based on a node of a tree or on a packed one."""

    __slots__ = (
        "base",
        "created_at",
        "entries",
        "growth",
        "has_directories",
        "is_changed",
        "is_recounted",
        "made",
        "mode",
        "modified_at",
        "wide",
    )

    # All entries by name. In a directory with more names than one dict holds, only those that differ from `wide`,
    # with `None` for removed ones.
    entries: dict[str, Entry | None]
    wide: Children | None

    def __init__(self, base: FileTree | Packed) -> None:
        self.base = base
        self.wide = None
        # The resulting node, once it is made.
        self.made: FileTree | None = None
        self.is_changed = False
        # Whether anything but the contents of files has changed; `growth` is the change in their size.
        self.is_recounted = False
        self.growth = 0
        if isinstance(base, FileTree):
            children = base._children
            self.mode, self.modified_at, self.created_at = base.mode, base.modified_at, base.created_at
            self.has_directories = bool(base.directory_count)
            if type(children) is dict:
                self.entries = children.copy()
            else:
                self.wide, self.entries = children, {}
            return
        self.mode, self.modified_at, self.created_at, _, directories, _, names, nodes = base
        self.has_directories = bool(directories)
        if names is None:
            self.wide = _unpacked_part(nodes)
            self.entries = dict(directories_of(base))
        else:
            self.entries = dict(zip(names, nodes, strict=True))

    def get(self, name: str) -> Entry | None:
        """Return the current entry with a name."""
        found = self.entries.get(name)
        if found is None and self.wide is not None and name not in self.entries:
            found = maps.get(self.wide, name)
        return found

    def put(self, name: str, entry: Entry) -> None:
        """Put an entry in place of an existing one, or add it."""
        self.entries[name] = entry
        self.is_changed = self.is_recounted = True
        if is_directory(entry):
            self.has_directories = True

    def opened(self, name: str, entry: FileTree | Packed | DirectoryDraft) -> DirectoryDraft:
        """Return a subdirectory as a draft, and put that in its place."""
        if isinstance(entry, DirectoryDraft):
            return entry
        draft = self.entries[name] = DirectoryDraft(entry)
        return draft

    def remove(self, name: str) -> None:
        """Remove an existing entry."""
        self.is_changed = self.is_recounted = True
        if self.wide is None:
            del self.entries[name]
        else:
            self.entries[name] = None

    def make(self) -> FileTree:
        """Make the node, once its subdirectories are made; return the original one if nothing changed."""
        base = self.base
        if not self.is_changed:
            if isinstance(base, FileTree):
                return base
            tree = FileTree(self._children(), self.mode, self.modified_at, self.created_at, *_counts(base))
            remember(tree, base)
            return tree
        if self.wide is not None:
            counts = self._wide_counts()
        elif self.is_recounted or self.has_directories:
            counts = _sums(self.entries.values())
        else:
            files, directories, size = _counts(base)
            counts = files, directories, size + self.growth
        return FileTree(self._children(), self.mode, self.modified_at, self.created_at, *counts)

    def _wide_counts(self) -> tuple[int, int, int]:
        """Return the totals of a directory of many names, computed from its changes."""
        entries = {name: entry for name, entry in self.entries.items() if entry is not None}
        old = [maps.get(self.wide, name) for name in self.entries if self.wide is not None]
        files, directories, size = _counts(self.base)
        more, less = _sums(entries.values()), _sums(old)
        return files + more[0] - less[0], directories + more[1] - less[1], size + more[2] - less[2]

    def _children(self) -> Children:
        if self.wide is not None:
            return maps.updated(self.wide, self.entries) if self.entries else self.wide
        entries = cast("dict[str, Any]", self.entries)
        return entries if len(entries) <= maps.WIDTH else maps.build(entries.items())


# What a draft may hold: leaves, and directories in one of three forms.
Entry = Leaf | FileTree | Packed | DirectoryDraft


def is_directory(entry: object) -> TypeGuard[FileTree | Packed | DirectoryDraft]:
    """Return whether an entry is a directory in any form, and not a leaf or `None`."""
    if type(entry) is tuple:
        return len(entry) == LENGTH
    return entry is not None


def made(root: DirectoryDraft, known: dict[int, FileTree | DirectoryDraft] | None = None) -> FileTree:
    """Make a draft's node and everything below it. A packed directory that occurs several times is unpacked once.

    `known` remembers them for the next tree: unpacked nodes by the identity of the packed form, which must outlive it.
    """
    unpacked = {} if known is None else known
    stack = [root]
    while stack:
        draft = stack[-1]
        if draft.made is not None:
            stack.pop()
            continue
        waiting = _made_below(draft, unpacked) if draft.has_directories else []
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        draft.made = draft.make()
    return cast(FileTree, root.made)


def _made_below(draft: DirectoryDraft, unpacked: dict[int, FileTree | DirectoryDraft]) -> list[DirectoryDraft]:
    """Make the subdirectories that have none themselves, and return those that have to be made first."""
    waiting: list[DirectoryDraft] = []
    entries = draft.entries
    for name, entry in entries.items():
        below = entry
        if type(below) is tuple and len(below) == LENGTH:
            known = unpacked.get(id(below))
            if known is None:
                known = unpacked[id(below)] = _unpacked(below)
            entries[name] = below = known
        if type(below) is DirectoryDraft:
            if below.made is None and below.has_directories:
                waiting.append(below)
                continue
            if below.made is None:
                below.made = below.make()
            draft.is_changed = draft.is_changed or below.is_changed
            entries[name] = below.made
    return waiting


def _unpacked(packed: Packed) -> FileTree | DirectoryDraft:
    mode, modified_at, created_at, files, directories, size, names, nodes = packed
    if directories:
        return DirectoryDraft(packed)
    children = _unpacked_part(nodes) if names is None else dict(zip(names, nodes, strict=True))
    tree = FileTree(children, mode, modified_at, created_at, files, directories, size)
    remember(tree, packed)
    return tree


def _unpacked_part(part: Packed) -> Any:
    """Return a map of entries, unpacked; its subdirectories stay packed."""
    if len(part) == 2:
        return dict(zip(*part, strict=True))
    return tuple([None if below is None else _unpacked_part(below) for below in part])


def _counts(directory: FileTree | Packed) -> tuple[int, int, int]:
    """Return the numbers of files, directories and bytes below a directory."""
    if isinstance(directory, FileTree):
        return directory.file_count, directory.directory_count, directory.total_size
    return directory[3], directory[4], directory[5]


def _sums(entries: Iterable[Any]) -> tuple[int, int, int]:
    """Add up the files, directories and bytes of entries, none of which is a draft; `None` counts nothing."""
    files = directories = size = 0
    for entry in entries:
        if entry is None:
            continue
        if type(entry) is FileTree or len(entry) == LENGTH:
            more = _counts(entry)
            files += more[0]
            directories += more[1] + 1
            size += more[2]
        else:
            files += 1
            size += size_of(entry)
    return files, directories, size
