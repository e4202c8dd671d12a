"""Drafts: directories that are changed in place before they become immutable nodes of a tree."""

from __future__ import annotations

from typing import Any, TypeGuard, cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.children import Children
from weakfs.reducers.tree.lazy_directory import counts_of, recounted, settled, sums, unpacked, unread
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree
from weakfs.reducers.tree.packed import LENGTH, Packed, entry_of, part_of


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
        "packed",
        "takes_writes",
        "wide",
    )

    # All entries by name. In a directory that is packed or has more names than one dict holds, only those that differ
    # from `packed` or `wide`, with `None` for removed ones: replaying 4,000 records in 5,000 directories of 20 takes
    # three times as long if each is unpacked.
    entries: dict[str, Any]
    # Whether `entries` may hold `Write`s, and nothing else: in a packed directory without subdirectories where nothing
    # but writes happened.
    takes_writes: bool
    wide: Children | None
    packed: Packed | None

    def __init__(self, base: FileTree | Packed) -> None:
        self.base = base
        self.wide = self.packed = None
        # The resulting node, once it is made.
        self.made: FileTree | None = None
        self.is_changed = False
        # Whether anything but the contents of files has changed; `growth` is the change in their size.
        self.is_recounted = False
        self.growth = 0
        if isinstance(base, FileTree):
            children = base._children
            self.takes_writes = False
            self.mode, self.modified_at, self.created_at = base.mode, base.modified_at, base.created_at
            self.has_directories = bool(base.directory_count)
            if type(children) is dict:
                self.entries = children.copy()
            else:
                self.wide, self.entries = children, {}
            return
        self.mode, self.modified_at, self.created_at, _, directories, _, _, _ = base
        self.has_directories = bool(directories)
        self.packed, self.entries = part_of(base), {}
        self.takes_writes = not directories

    def get(self, name: str) -> Entry | None:
        """Return the current entry with a name."""
        if self.takes_writes:
            self._settle()
        found = self.entries.get(name)
        return self._old(name) if found is None and name not in self.entries else found

    def _old(self, name: str) -> Entry | None:
        """Return the entry that `entries` differs from."""
        if self.packed is not None:
            return cast("Entry | None", entry_of(self.packed, name))
        return None if self.wide is None else maps.get(self.wide, name)

    def put(self, name: str, entry: Entry) -> None:
        """Put an entry in place of an existing one, or add it."""
        if self.takes_writes:
            self._settle()
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
        if self.takes_writes:
            self._settle()
        self.is_changed = self.is_recounted = True
        if self.wide is None and self.packed is None:
            del self.entries[name]
        else:
            self.entries[name] = None

    def _settle(self) -> None:
        """Make files of the writes, before anything else happens in the directory."""
        self.takes_writes = False
        if self.entries:
            self.is_recounted = True
            self.entries, self.modified_at = settled(part_of(cast(Packed, self.base)), self.entries, self.modified_at)

    def make(self, known: dict[int, FileTree]) -> FileTree:
        """Make the node, once its subdirectories are made; return the original one if nothing changed."""
        base = self.base
        if not self.is_changed:
            return base if isinstance(base, FileTree) else unpacked(base, known)
        if type(base) is tuple:
            modified_at = None if self.takes_writes else self.modified_at
            return unread((base, self.entries, known), self.mode, modified_at, self.created_at)
        if not (self.is_recounted or self.has_directories):
            files, directories, size = counts_of(base)
            counts = files, directories, size + self.growth
        elif self.wide is None:
            counts = sums(self.entries.values())
        else:
            counts = recounted(base, self.entries, map(self._old, self.entries))
        return FileTree(self._children(), self.mode, self.modified_at, self.created_at, *counts)

    def _children(self) -> Children:
        if self.wide is not None:
            return maps.updated(self.wide, self.entries) if self.entries else self.wide
        return self.entries if len(self.entries) <= maps.WIDTH else maps.build(self.entries.items())


# What a draft may hold: leaves, and directories in one of three forms.
Entry = Leaf | FileTree | Packed | DirectoryDraft


def is_directory(entry: object) -> TypeGuard[FileTree | Packed | DirectoryDraft]:
    """Return whether an entry is a directory in any form, and not a leaf or `None`."""
    if type(entry) is tuple:
        return len(entry) == LENGTH
    return entry is not None


def made(root: DirectoryDraft) -> FileTree:
    """Make a draft's node and everything below it; packed directories are unpacked when they are read."""
    known: dict[int, FileTree] = {}
    stack = [root]
    while stack:
        draft = stack[-1]
        if draft.made is not None:
            stack.pop()
            continue
        waiting = _made_below(draft, known) if draft.has_directories else []
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        draft.made = draft.make(known)
    return cast(FileTree, root.made)


def _made_below(draft: DirectoryDraft, known: dict[int, FileTree]) -> list[DirectoryDraft]:
    """Make the subdirectories that have no subdirectories of their own, and return those that have to be made first."""
    waiting: list[DirectoryDraft] = []
    entries = draft.entries
    for name, entry in entries.items():
        if type(entry) is tuple and len(entry) == LENGTH:
            entries[name] = unpacked(entry, known)
        elif type(entry) is DirectoryDraft:
            if entry.made is None and entry.has_directories:
                waiting.append(entry)
                continue
            if entry.made is None:
                entry.made = entry.make(known)
            draft.is_changed = draft.is_changed or entry.is_changed
            entries[name] = entry.made
    return waiting
