"""Directories whose entries are made when they are first read: past versions based on packed ones, and stored ones.

Reading the past needs few of the directories that changed since a checkpoint, and their former entries are spread over
memory: with 8,000 records in 4,000 directories, looking up all of them would take half the time. Likewise, a
scan that is compared with a stored snapshot needs only the entries of the directories that differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.directory import UNCOUNTED, UNREAD, Directory, Remembering, Source, Unread
from weakfs.reducers.tree.leaf import CONTENT, CREATED_AT, FILE_MODE, MODE, NO_FILE, WHITEOUT, size_of
from weakfs.reducers.tree.packed import DIRECTORIES, LENGTH, NAMES, Packed, entry_of, part_of, remember

# The writes to one file until the directory is read: the content, the mode if one was given, and the times of the last
# write and the first. The resulting file depends on the entry that was there before.
Write = tuple[Any, int | None, int, int]
WRITE = 4

MODIFIED_AT = 1
# Stands in for the time when a directory was modified, until its counts are computed.
MISSING: Any = None

D = TypeVar("D", bound=Directory)


def unpacked(cls: type[D], packed: Packed, known: dict[int, D]) -> D:
    """Return a packed directory as a tree of class `cls`; its entries are unpacked when they are first read. O(1).

    `known` holds the directories that were unpacked, by the identity of their packed form: one that occurs in several
    places becomes one tree.
    """
    tree = known.get(id(packed))
    if tree is None:
        tree = cls(UNREAD, (), *packed[:NAMES])
        remembering: Remembering = tree
        remembering._unread = (packed, {}, known)
        remember(tree, packed)
        tree = known.setdefault(id(packed), tree)
    return tree


def unread(cls: type[D], origin: Unread, mode: int, modified_at: int | None, created_at: int) -> D:
    """Return a packed directory with changes as a tree of class `cls`. O(1).

    Its entries and counts are computed when they are first read. So is the time when it was modified, if
    `modified_at` is `None`.
    """
    tree = cls(UNREAD, (), mode, MISSING if modified_at is None else modified_at, created_at, 0, 0, UNCOUNTED)
    remembering: Remembering = tree
    remembering._unread = origin
    return tree


def stored(cls: type[D], source: Source, mode: int, at: int, counts: tuple[int, int, int]) -> D:
    """Return a directory modified and created at `at`, whose entries `source` makes when they are first read. O(1)."""
    tree = cls(UNREAD, (), mode, at, at, *counts)
    remembering: Remembering = tree
    remembering._unread = source
    return tree


def read(tree: Directory) -> maps.Children:
    """Make the entries of a directory made by `unpacked`, `unread` or `stored`, and return them. O(entries).

    Any number of threads may do so at once.
    """
    origin = tree._unread
    entries = _based_on_packed(type(tree), origin) if isinstance(origin, tuple) else origin()
    places, tree._nodes = maps.parts(entries)
    # Set last, since it shows that the others are set.
    tree._places = places
    return entries


def _based_on_packed(cls: type[Directory], origin: Unread) -> maps.Children:
    packed, changes, known = origin
    part = part_of(packed)
    entries = _unpacked_part(cls, part, known if packed[DIRECTORIES] else None)
    return maps.updated(entries, settled(part, changes, 0)[0]) if changes else entries


def _unpacked_part(cls: type[Directory], part: Packed, known: dict[int, Directory] | None) -> maps.Children:
    """Return a map of entries; `known` may be `None` if there are no subdirectories."""
    if len(part) != 2:
        return tuple([None if below is None else _unpacked_part(cls, below, known) for below in part])
    names, nodes = part
    if known is not None:
        nodes = tuple([unpacked(cls, node, known) if len(node) == LENGTH else node for node in nodes])
    return dict(zip(names, range(len(names)), strict=True)), nodes


def settled(part: Packed, changes: dict[str, Any], modified_at: int) -> tuple[dict[str, Any], int]:
    """Return the changes in a packed directory with its writes as files, and the directory's modification time."""
    entries: dict[str, Any] = {}
    for name, change in changes.items():
        if type(change) is tuple and len(change) == WRITE:
            content, mode, at, first = change
            old = entry_of(part, name)
            if old is not None and type(old[CONTENT]) not in NO_FILE:
                change = (content, old[MODE] if mode is None else mode, at, old[CREATED_AT], bytearray())
            else:
                change = (content, FILE_MODE if mode is None else mode, at, first, bytearray())
                if old is None or old[CONTENT] is WHITEOUT:
                    modified_at = first
        entries[name] = change
    return entries, modified_at


def complete(tree: Directory) -> None:
    """Compute the counts and the modification time of a directory that `unread` made. O(what changed in it and below).

    Any number of threads may call this at once.
    """
    stack = [tree]
    while stack:
        directory = stack[-1]
        packed, changes, _ = cast(Unread, directory._unread)
        below = [one for one in changes.values() if isinstance(one, Directory) and one._total_size == UNCOUNTED]
        if below:
            stack += below
            continue
        stack.pop()
        part = part_of(packed)
        entries, modified_at = settled(part, changes, packed[MODIFIED_AT])
        if directory._modified_at is MISSING:
            directory._modified_at = modified_at
        files, directories, size = recounted(packed, entries, (entry_of(part, name) for name in entries))
        directory._file_count, directory._directory_count = files, directories
        # Set last, since it shows that the others are set.
        directory._total_size = size


def recounted(base: Directory | Packed, entries: dict[str, Any], old: Iterable[Any]) -> tuple[int, int, int]:
    """Return the totals of a directory, computed from its changes and the entries that they replace."""
    files, directories, size = counts_of(base)
    more, less = sums(entries.values()), sums(old)
    return files + more[0] - less[0], directories + more[1] - less[1], size + more[2] - less[2]


def counts_of(directory: Directory | Packed) -> tuple[int, int, int]:
    """Return the numbers of files, directories and bytes below a directory."""
    if isinstance(directory, Directory):
        return directory.file_count, directory.directory_count, directory.total_size
    return directory[3], directory[4], directory[5]


def sums(entries: Iterable[Any]) -> tuple[int, int, int]:
    """Add up the files, directories and bytes of entries, none of which is a draft; `None` counts as nothing."""
    files = directories = size = 0
    for entry in entries:
        if entry is None:
            continue
        if isinstance(entry, Directory) or len(entry) == LENGTH:
            more = counts_of(entry)
            files += more[0]
            directories += more[1] + 1
            size += more[2]
        else:
            files += 1
            size += size_of(entry)
    return files, directories, size
