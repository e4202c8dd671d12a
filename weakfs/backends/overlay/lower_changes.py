"""What changed in the lower layer since an overlay read, copied up or hid it: the conflicts of a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from errno import EBUSY
from typing import cast

from weakfs.backends.overlay.copy_up_and_whiteouts import describe_entry
from weakfs.backends.overlay.layers import Layers
from weakfs.errors import fault
from weakfs.reducers import FileTree, LowerEntry
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import equal
from weakfs.reducers.tree.node import find, is_whiteout, path_of, walk
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table

# The maximum number of paths named in a message. The others are counted.
NAMED = 20


class LowerEntries:
    """An index of the newest description of each path. It reads each value of the slice once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # A single pair, so that concurrent readers see matching values.
        self._known: tuple[Log[LowerEntry], dict[str, LowerEntry]] = (Log(), {})

    def newest(self, state: Table) -> Mapping[str, LowerEntry]:
        """Return the newest description of each path that was read or hidden. O(new descriptions)."""
        values = cast("Log[LowerEntry]", state.get("fs/lower_entry", Log()))
        known, newest = self._known
        if values is not known:
            goes_on = values.extends(known)
            newest = dict(newest) if goes_on else {}
            newest.update({one.path: one for one in values.since(len(known) if goes_on else 0)})
            self._known = (values, newest)
        return newest


def conflicts(
    layers: Layers, found: FileTree, read: Mapping[str, LowerEntry], below: FileTree, now: FileTree
) -> list[str]:
    """Return the paths that changed below since they were read, copied up or hidden, unless they are now as wanted."""
    changed = {
        *_read_otherwise(layers, read),
        *_found_otherwise(layers, found, below),
        *_new(layers, found, read, below),
    }
    return sorted(path for path in changed if not _is_as_wanted(layers, path, below, now))


def refuse_conflicts(paths: list[str]) -> None:
    """Raise `OSError` (EBUSY) naming the paths, if there are any."""
    if not paths:
        return
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    names = ", ".join(map(repr, paths[:NAMED])) + more
    raise fault(
        OSError,
        EBUSY,
        f"cannot commit the overlay: {names} changed in the lower filesystem after being read; discard the overlay's "
        "changes, or restore the previous version there",
    )


def _is_as_wanted(layers: Layers, path: str, below: FileTree, now: FileTree) -> bool:
    """Return whether the lower filesystem already has what the overlay would write."""
    segments = segments_of(path)
    return layers.held(segments) is not None and equal(find(below, segments), find(now, segments))


def _read_otherwise(layers: Layers, read: Mapping[str, LowerEntry]) -> Iterator[str]:
    for path, entry in read.items():
        segments = segments_of(path)
        node = layers.lower.lookup(segments)
        if node is None:
            yield path
            continue
        content: bytes | None = None
        if type(node) is tuple and leaves.is_file(node) and entry.digest is not None:
            content = layers.lower.content(path, node)
        again = describe_entry(layers.lower, segments, node, content)
        exact = entry.digest is not None
        descriptions = [
            (one.kind, one.mode, one.digest, *(() if exact else (one.size, one.modified_ns))) for one in (entry, again)
        ]
        if descriptions[0] != descriptions[1]:
            yield path


def _found_otherwise(layers: Layers, found: FileTree, below: FileTree) -> Iterator[str]:
    for path, node in walk(found):
        if layers.held(segments_of(path)) is None:
            continue
        there = find(below, segments_of(path))
        if type(node) is FileTree:
            if type(there) is not FileTree or there.mode != node.mode:
                yield path
        elif type(there) is not tuple or not leaves.same(node, there):
            yield path


def _new(layers: Layers, found: FileTree, read: Mapping[str, LowerEntry], below: FileTree) -> Iterator[str]:
    """Yield the paths that the overlay created but that now also exist in the lower layer."""
    for path, node in walk(layers.upper):
        if type(node) is FileTree or is_whiteout(node):
            continue
        segments = segments_of(path)
        if find(found, segments) is None and find(below, segments) is not None and not _was_hidden(read, segments):
            yield path


def _was_hidden(read: Mapping[str, LowerEntry], segments: tuple[str, ...]) -> bool:
    return any(path_of(segments[:depth]) in read for depth in range(1, len(segments) + 1))
