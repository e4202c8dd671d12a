"""The fold of file events: many events reduced into a tree at once, in drafts that become nodes at the end.

Contents may be ropes that have not been read yet. The result is the same as with the functions of
`weakfs.reducers.apply`, one event at a time. Those rebuild every directory on the way to a path, since each of their
trees may be kept; here the intermediate trees are not visible to anything else, and directories are changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, cast

from weakfs.reducers import events as e
from weakfs.reducers.apply import REDUCERS, newborn, spliced
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.children import Children
from weakfs.reducers.tree.lazy_directory import counts_of, recounted, settled, sums, unpacked, unread
from weakfs.reducers.tree.leaf import CONTENT, NO_FILE, Leaf
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, is_whiteout
from weakfs.reducers.tree.packed import LENGTH, Packed, entry_of, part_of
from weakfs.session.blobs.rope import Rope, joined, read_together
from weakfs.session.slices.log import Log
from weakfs.session.slices.packed_state import PackedValue
from weakfs.session.slices.slice import Folded


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
    # Whether `entries` may hold `Write`s, and nothing else. This is so in a packed directory without subdirectories in
    # which files were only written.
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
            if len(children) == maps.PAIR:
                self.entries = maps.as_dict(children)
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
        """Turn the writes into files, before anything else happens in the directory."""
        self.takes_writes = False
        if self.entries:
            self.is_recounted = True
            self.entries, self.modified_at = settled(part_of(cast(Packed, self.base)), self.entries, self.modified_at)

    def make(self, known: dict[int, FileTree]) -> FileTree:
        """Make the node, once its subdirectories are made; return the original one if nothing changed."""
        base = self.base
        if not self.is_changed:
            return base if isinstance(base, FileTree) else unpacked(FileTree, base, known)
        if type(base) is tuple:
            modified_at = None if self.takes_writes else self.modified_at
            return unread(FileTree, (base, self.entries, known), self.mode, modified_at, self.created_at)
        if not (self.is_recounted or self.has_directories):
            files, directories, size = counts_of(base)
            counts = files, directories, size + self.growth
        elif self.wide is None:
            counts = sums(self.entries.values())
        else:
            counts = recounted(base, self.entries, map(self._old, self.entries))
        return FileTree(*maps.parts(self._children()), self.mode, self.modified_at, self.created_at, *counts)

    def _children(self) -> Children:
        if self.wide is not None:
            return maps.updated(self.wide, self.entries) if self.entries else self.wide
        if not self.is_recounted and isinstance(self.base, FileTree):
            # The same names in the same places.
            return self.base._children[0], tuple(self.entries.values())
        return maps.build(self.entries.items())


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
            entries[name] = unpacked(FileTree, entry, known)
        elif type(entry) is DirectoryDraft:
            if entry.made is None and entry.has_directories:
                waiting.append(entry)
                continue
            if entry.made is None:
                entry.made = entry.make(known)
            draft.is_changed = draft.is_changed or entry.is_changed
            entries[name] = entry.made
    return waiting


LEAF = 5


def folded(values: Log[FileTree] | PackedValue, run: Sequence[Folded]) -> Log[FileTree]:
    """Reduce a run of events into the slice of a session's own files, which may be packed."""
    before = values.last() if isinstance(values, Log) else values.packed
    # Tails are joined with what they are appended to.
    read_together(tail for _, type_, fields in run if type_ is e.FileAppended and type(tail := fields[1]) is Rope)
    draft = TreeDraft(EMPTY_TREE if before is None else before)
    for _, type_, fields in run:
        handler = HANDLERS.get(type_)
        if handler is None:
            draft.reduce(type_, fields)
        else:
            handler(draft, *fields)
    tree = draft.tree()
    if isinstance(values, Log):
        return values if tree is before else values.replace_last(tree)
    return Log((tree,))


class TreeDraft:
    """A tree that is being changed."""

    def __init__(self, tree: FileTree | Packed) -> None:
        self._begin(tree)

    def _begin(self, tree: FileTree | Packed) -> None:
        self._root = DirectoryDraft(tree)
        # The directories on the way to what changed, by path without the last slash.
        self._directories = {"": self._root}

    def reduce(self, type_: type, fields: tuple[Any, ...]) -> None:
        """Apply a less frequent event with its reducer, on the current tree."""
        whole = [joined(value) if type(value) is Rope else value for value in fields]
        self._begin(REDUCERS[type_](self.tree(), type_(*whole)))

    def tree(self) -> FileTree:
        """Return the resulting tree; no event may follow."""
        return made(self._root)

    def _find(self, path: str) -> tuple[DirectoryDraft | None, str, Entry | None]:
        """Return the directory of a path, its name there and its entry; `None` for what is missing."""
        head, _, name = path.rpartition("/")
        directory = self._directories.get(head) or self._opened(head, None)
        return directory, name, None if directory is None else directory.get(name)

    def _opened(self, head: str, at: int | None) -> DirectoryDraft | None:
        """Return a directory as a draft, or `None` if it is missing; with `at`, make it and its parents instead."""
        above, _, last = head.rpartition("/")
        parent = self._directories.get(above)
        if parent is not None and is_directory(entry := parent.get(last)):
            directory = self._directories[head] = parent.opened(last, entry)
            return directory
        directory = self._root
        path = ""
        for name in head[1:].split("/"):
            path = f"{path}/{name}"
            below = self._directories.get(path)
            if below is None:
                entry = directory.get(name)
                if is_directory(entry):
                    below = directory.opened(name, entry)
                elif at is None:
                    return None
                else:
                    below = DirectoryDraft(FileTree({}, (), leaves.DIRECTORY_MODE, at, at))
                    directory.put(name, below)
                    directory.modified_at = at
                self._directories[path] = below
            directory = below
        return directory

    def _put(self, path: str, entry: Entry, at: int) -> None:
        """Put an entry at a path, as `weakfs.reducers.tree.node.put` does; a whiteout there counts as no entry."""
        head, _, name = path.rpartition("/")
        directory = self._directories.get(head) or cast(DirectoryDraft, self._opened(head, at))
        old = directory.get(name)
        if old is None or (not is_directory(old) and is_whiteout(cast(Leaf, old))):
            directory.modified_at = at
        directory.put(name, entry)
        self._forget(old)

    def _forget(self, entry: Entry | None) -> None:
        """Forget the known paths if `entry`, which has left its place, is a directory."""
        if is_directory(entry):
            self._directories = {"": self._root}

    def on_file_written(
        self, path: str, content: bytes | Rope, at: int, mode: int | None = None, filesystem: str | None = None
    ) -> None:
        head, _, name = path.rpartition("/")
        directory = self._directories.get(head) or self._opened(head, None)
        if directory is not None:
            entries = directory.entries
            if directory.takes_writes:
                # The previous entry is looked up when the directory is read: see `Write`.
                known = entries.get(name)
                if known is None:
                    entries[name] = (content, mode, at, at)
                    directory.is_changed = True
                else:
                    entries[name] = (content, known[1] if mode is None else mode, at, known[3])
                return
            old = entries.get(name) or directory.get(name)
            if type(old) is tuple and len(old) == LEAF and type(old[CONTENT]) not in NO_FILE:
                # By far the most frequent case: an existing file gets new content.
                entries[name] = (content, old[1] if mode is None else mode, at, old[3], bytearray())
                directory.is_changed = True
                directory.growth += len(content) - len(old[CONTENT])
                return
        self._put(path, leaves.file(content, mode=leaves.FILE_MODE if mode is None else mode, at=at), at)

    def on_file_appended(self, path: str, tail: bytes | Rope, at: int, filesystem: str | None = None) -> None:
        directory, name, old = self._find(path)
        if directory is None or not _is_file(old):
            self.on_file_written(path, tail, at)
            return
        leaf = cast(Leaf, old)
        directory.put(name, leaves.with_content(leaf, Rope(cast("bytes | Rope", leaf[CONTENT]), joined(tail)), at))

    def on_file_spliced(
        self, path: str, pieces: tuple[tuple[int, int, bytes | Rope], ...], at: int, filesystem: str | None = None
    ) -> None:
        directory, name, old = self._find(path)
        if directory is not None and _is_file(old):
            leaf = cast(Leaf, old)
            content = leaf[CONTENT]
            base = cast("bytes | Rope", content if type(content) in (bytes, Rope) else leaves.content_of(leaf))
            try:
                # Assembled when the file is read.
                changed = leaves.with_content(leaf, Rope.spliced(base, pieces), at)
            except ValueError:
                changed = spliced(leaf, pieces, at)
            directory.put(name, changed)

    def on_directory_made(self, path: str, at: int, filesystem: str | None = None) -> None:
        if path != "/" and not is_directory(self._find(path)[2]):
            self._put(path, FileTree({}, (), leaves.DIRECTORY_MODE, at, at), at)

    def on_entry_deleted(self, path: str, at: int, filesystem: str | None = None) -> None:
        directory, name, old = self._find(path)
        if directory is not None and old is not None:
            directory.remove(name)
            directory.modified_at = at
            self._forget(old)

    def on_entry_moved(self, source: str, destination: str, at: int, filesystem: str | None = None) -> None:
        if destination.startswith(f"{source}/"):
            # No filesystem allows this. Like the reducer, delete the directory, then put it below a new directory of
            # its old name.
            self.reduce(e.EntryMoved, (source, destination, at, filesystem))
            return
        _, _, entry = self._find(source)
        if entry is not None and source != destination:
            self.on_entry_deleted(source, at)
            self._put(destination, entry, at)

    def on_entry_copied(self, source: str, destination: str, at: int, filesystem: str | None = None) -> None:
        _, _, entry = self._find(source)
        if is_directory(entry):
            self.reduce(e.EntryCopied, (source, destination, at, filesystem))
        elif entry is not None and source != destination:
            self._put(destination, newborn(cast(Leaf, entry), at), at)


def _is_file(entry: Entry | None) -> bool:
    return type(entry) is tuple and len(entry) == LEAF and type(entry[CONTENT]) not in NO_FILE


# For each type of event, the method that takes its fields. If the instance held these methods, they would refer back to
# it, and only a garbage collection would free it with all its directories.
HANDLERS: dict[type, Callable[..., None]] = {
    e.FileWritten: TreeDraft.on_file_written,
    e.FileAppended: TreeDraft.on_file_appended,
    e.FileSpliced: TreeDraft.on_file_spliced,
    e.DirectoryMade: TreeDraft.on_directory_made,
    e.EntryDeleted: TreeDraft.on_entry_deleted,
    e.EntryMoved: TreeDraft.on_entry_moved,
    e.EntryCopied: TreeDraft.on_entry_copied,
}
