"""Host directories for tests: a model that is read in a simple way, and scans in one call."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from weakfs.reducers.tree import leaf
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.node import FileTree, Node, tree_of
from weakfs.snapshots import HashOnlySink, Scan, Sink, Store, StoredSnapshot, scan

SPECIAL = {stat.S_IFIFO: leaf.FIFO, stat.S_IFSOCK: leaf.SOCKET, stat.S_IFCHR: leaf.DEVICE, stat.S_IFBLK: leaf.DEVICE}


def model(root: Path) -> FileTree:
    """Read a directory with `os.walk` and whole paths, contents in memory."""
    made: dict[bytes, FileTree] = {}
    for here, directories, others in os.walk(os.fsencode(root), topdown=False):
        nodes: dict[str, Node] = {}
        for name in directories + others:
            path = os.path.join(here, name)
            status = os.lstat(path)
            kind, mode, at = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), status.st_mtime_ns
            node: Node
            if kind == stat.S_IFDIR:
                node = made[path]
            elif kind == stat.S_IFLNK:
                node = leaf.link(names.from_bytes(os.readlink(path)), at=at)
            elif kind == stat.S_IFREG:
                with open(path, "rb") as stream:
                    node = leaf.file(stream.read(), mode=mode, at=at)
            else:
                node = leaf.special(SPECIAL[kind], mode=mode, at=at)
            nodes[names.from_bytes(name)] = node
        status = os.lstat(here)
        made[here] = tree_of(
            nodes, mode=stat.S_IMODE(status.st_mode), modified_at=status.st_mtime_ns, created_at=status.st_mtime_ns
        )
    return made[os.fsencode(root)]


def look(root: Path, known: Scan | None = None, sink: Sink | None = None) -> Scan:
    """Scan a directory, keeping nothing unless there is a sink."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return scan(descriptor, sink or HashOnlySink(), known)
    finally:
        os.close(descriptor)


def snapshot(
    store: Store, root: Path, name: str, known: Scan | None = None, *, tag: str | None = None
) -> tuple[StoredSnapshot, Scan]:
    """Take a snapshot of a directory."""
    with store.writer() as writer:
        seen = look(root, known, writer)
        return writer.commit(seen, snapshot_id=name, created_ns=0, tag=tag), seen


def settle(*roots: Path) -> None:
    """Make everything look as if it had been changed long ago, by waiting for the next tick of the clock."""
    marker = roots[0].parent / ".settled"
    newest = max(os.lstat(path).st_ctime_ns for root in roots for path in (root, *root.rglob("*")))
    while True:
        marker.write_bytes(b"x")
        if os.stat(marker).st_ctime_ns - newest > 30_000_000:
            marker.unlink()
            return


def files_of(folder: Path) -> list[str]:
    """List a store's packs and entries."""
    return sorted(
        str(path.relative_to(folder)) for name in ("packs", "snapshots") for path in (folder / name).iterdir()
    )
