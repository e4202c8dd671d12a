"""What a survey has seen: the tree, and beside it what the system said of every entry, for the next to compare."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from attrs import define, frozen

from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree import node as trees
from weakfs.reducers.tree.node import FileTree, Node
from weakfs.snapshots.scan.sinks import StatToken
from weakfs.snapshots.store.manifests import NO_STATUS, Status

# The clock that files are stamped with stands still for up to a tick of the kernel, 10 ms at 100 Hz.
TICK = 12_000_000
# Filesystems that keep whole seconds, or even ones.
COARSE_TICK = 2_000_000_000
SECOND = 1_000_000_000

SPECIAL = {
    stat.S_IFIFO: leaves.FIFO,
    stat.S_IFSOCK: leaves.SOCKET,
    stat.S_IFCHR: leaves.DEVICE,
    stat.S_IFBLK: leaves.DEVICE,
}


@define(eq=False)
class Directory:
    """One directory as it was seen. Never changed: a survey makes new ones where something differs."""

    tree: FileTree
    # By the host's own names, as `os.scandir` gives them. `None` where the status says nothing: the entry was
    # changed within the clock's tick of the survey, and may change once more without another stamp.
    statuses: Mapping[str, Status | None]
    below: Mapping[str, Directory]
    status: Status
    token: StatToken | None
    # The digest of the manifest, where manifests are kept.
    ref: bytes | None


@frozen(eq=False)
class Survey:
    """A host directory as it was at one time; and all that the next survey need not look up again.

    `started_at` is the machine's clock in nanoseconds. `files_read` and `bytes_read` tell what was not known.
    """

    root: Directory
    started_at: int
    files_read: int = 0
    bytes_read: int = 0

    @property
    def tree(self) -> FileTree:
        """The tree. Directories that did not change are the very same objects as in the survey before."""
        return self.root.tree

    @property
    def ref(self) -> bytes | None:
        """The digest of the root's manifest; `None` if it was put into no store."""
        return self.root.ref

    def entry(self, segments: tuple[str, ...]) -> Survey:
        """Give what is known of one path, for `survey_entry`. O(depth)."""
        here: Directory | None = self.root
        for name in segments[:-1]:
            here = here.below.get(host_name(name)) if here is not None else None
        name = segments[-1]
        node = trees.find(here.tree, (name,)) if here is not None else None
        if here is None or node is None:
            return Survey(single({}, {}, {}, None), self.started_at)
        host = host_name(name)
        below = {host: here.below[host]} if host in here.below else {}
        return Survey(single({name: node}, {host: here.statuses.get(host)}, below, here.token), self.started_at)


def single(
    nodes: dict[str, Node],
    statuses: Mapping[str, Status | None],
    below: Mapping[str, Directory],
    token: StatToken | None,
) -> Directory:
    """Make the directory that stands for the place of a single entry."""
    return Directory(trees.tree_of(nodes), statuses, below, NO_STATUS, token, None)


def trusted(status: Status, started_at: int) -> bool:
    """Tell whether a later change must give the entry another status than this one."""
    _, _, mtime, ctime, _ = status
    tick = TICK if ctime % SECOND else COARSE_TICK
    return 0 < ctime < started_at - tick and mtime < started_at - tick


def host_name(name: str) -> str:
    """Give the name that the system's calls take for a canonical one."""
    return os.fsdecode(names.to_bytes(name))


def canonical_name(host: str) -> str:
    """Give the canonical name of one that the system gave."""
    return host if host.isascii() and "\\" not in host else names.from_bytes(os.fsencode(host))
