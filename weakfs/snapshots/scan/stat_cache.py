"""The stat cache: a scan's tree and the status of every entry, with which the next scan compares what it finds.

What has not changed is reused, so that equal files and directories of two scans are the same objects.
"""

from __future__ import annotations

from collections.abc import Mapping

from weakfs.class_decorators import define, frozen
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node, find, tree_of
from weakfs.session.blobs.blob import Stored
from weakfs.snapshots.directory.entries import host_name
from weakfs.snapshots.scan.manifests import NO_STATUS, Status
from weakfs.snapshots.scan.sinks import Sink, StatToken

# The clock for file times advances once per kernel tick, 10 ms at 100 Hz.
TICK = 12_000_000
# For filesystems that store times in whole seconds, or in steps of two seconds.
COARSE_TICK = 2_000_000_000
SECOND = 1_000_000_000


@define(eq=False)
class Directory:
    """One directory as it was scanned. Immutable: a scan creates new objects for directories that differ."""

    tree: FileTree
    # By the host's names, as `os.scandir` returns them. `None` if the status cannot be trusted: the entry was changed
    # within a clock tick of the scan, and may change again without getting a new time.
    statuses: Mapping[str, Status | None]
    below: Mapping[str, Directory]
    status: Status
    token: StatToken | None
    # The digest of the manifest, if manifests are kept.
    ref: bytes | None


@frozen(eq=False)
class Scan:
    """A host directory at one time, with everything that the next scan can reuse.

    `started_at` is the machine's clock in nanoseconds. `files_read` counts files that were not in the
    cache.
    """

    root: Directory
    started_at: int
    files_read: int = 0

    @property
    def tree(self) -> FileTree:
        """The tree. Directories that did not change are the same objects as in the previous scan."""
        return self.root.tree

    @property
    def ref(self) -> bytes | None:
        """The digest of the root's manifest; `None` if manifests are not kept."""
        return self.root.ref

    def entry(self, segments: tuple[str, ...]) -> Scan:
        """Return the cached part for one path, for `scan_entry`. O(depth)."""
        here: Directory | None = self.root
        for name in segments[:-1]:
            here = here.below.get(host_name(name)) if here is not None else None
        name = segments[-1]
        node = find(here.tree, (name,)) if here is not None else None
        if here is None or node is None:
            return Scan(single({}, {}, {}, None), self.started_at)
        host = host_name(name)
        below = {host: here.below[host]} if host in here.below else {}
        return Scan(single({name: node}, {host: here.statuses.get(host)}, below, here.token), self.started_at)


def single(
    nodes: dict[str, Node],
    statuses: Mapping[str, Status | None],
    below: Mapping[str, Directory],
    token: StatToken | None,
) -> Directory:
    """Return a directory that holds a single entry."""
    return Directory(tree_of(nodes), statuses, below, NO_STATUS, token, None)


def trusted(status: Status, started_at: int) -> bool:
    """Return whether any later change is certain to give the entry a different status."""
    _, _, mtime, ctime, _ = status
    tick = TICK if ctime % SECOND else COARSE_TICK
    return 0 < ctime < started_at - tick and mtime < started_at - tick


def unchanged_leaf(leaf: Leaf, known: Directory, sink: Sink) -> Leaf | None:
    """Return the leaf of an unchanged entry, read from the sink's source; `None` if the sink does not keep its content.

    `known` is the directory as the earlier scan found it.
    """
    content = leaf[leaves.CONTENT]
    if sink.trusts(known.token) or type(content) is not Stored:
        return leaf
    if not sink.keeps(content.digest):
        return None
    if content.source is sink.source:
        return leaf
    here = Stored(content.digest, content.size, sink.source)
    return leaves.file(here, mode=leaf[leaves.MODE], at=leaf[leaves.MODIFIED_AT])


def can_replace(old: Leaf, new: Leaf, *, is_kept: bool) -> bool:
    """Return whether a cached leaf can replace a new one: equal in all respects, and read from the right source."""
    one, other = old[leaves.CONTENT], new[leaves.CONTENT]
    if old[leaves.MODE] != new[leaves.MODE] or old[leaves.MODIFIED_AT] != new[leaves.MODIFIED_AT]:
        return False
    if type(one) is Stored and type(other) is Stored:
        return one == other and (is_kept or one.source is other.source)
    return type(one) is type(other) and one == other


def has_exactly(tree: FileTree, nodes: dict[str, Node], mode: int, modified_at: int) -> bool:
    """Return whether a tree has exactly these node objects, and this mode and time."""
    if tree.mode != mode or tree.modified_at != modified_at:
        return False
    known = dict(maps.items(tree._children))
    return len(known) == len(nodes) and all(known.get(name) is node for name, node in nodes.items())
