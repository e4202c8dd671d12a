"""Loading trees from their manifests in a store."""

from __future__ import annotations

import stat
import struct
from collections.abc import Callable
from typing import cast

from weakfs.platforms import garbage_collection_paused
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node
from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.scan.sinks import StatToken
from weakfs.snapshots.scan.stat_cache import SPECIAL, Directory, host_name, trusted
from weakfs.snapshots.store import manifests
from weakfs.snapshots.store.manifests import KIND, NO_STATUS, Row, Status


def load(
    ref: bytes,
    read_manifest: Callable[[bytes], bytes],
    source: ContentSource,
    *,
    scanned_at: int,
    token: StatToken | None,
) -> Directory:
    """Build a directory from its manifest and those below it. O(entries); contents are not read.

    A manifest that occurs in several places is loaded once. Raises `ValueError` for data that is not a manifest, and
    what `read_manifest` raises.
    """
    # Measured on 50,000 files: 0.08 s, and 0.19 s with the garbage collector on.
    with garbage_collection_paused():
        return _loaded(ref, read_manifest, source, scanned_at, token)


def _loaded(
    ref: bytes, read_manifest: Callable[[bytes], bytes], source: ContentSource, scanned_at: int, token: StatToken | None
) -> Directory:
    loaded: dict[tuple[bytes, Status], Directory] = {}
    stack: list[tuple[bytes, Status]] = [(ref, NO_STATUS)]
    waiting: dict[tuple[bytes, Status], tuple[int, int, list[Row]]] = {}
    while stack:
        key = stack[-1]
        if key in loaded:
            stack.pop()
            continue
        if key not in waiting:
            check_interrupted()
            manifest = read_manifest(key[0])
            try:
                waiting[key] = (*manifests.head(manifest), manifests.rows(manifest))
            except (struct.error, UnicodeDecodeError) as error:
                raise ValueError(f"{key[0].hex()} is not a manifest: {error}") from None
            below = [(row[2], row[1]) for row in waiting[key][2] if row[1][0] & KIND == stat.S_IFDIR]
            stack.extend(child for child in below if child not in loaded)
            if any(child in waiting for child in below):
                raise ValueError(f"{key[0].hex()} is not a manifest: it contains itself")
            if below:
                continue
        stack.pop()
        mode, modified_at, rows = waiting.pop(key)
        loaded[key] = _directory(rows, mode, modified_at, key, loaded, source, scanned_at, token)
    return loaded[ref, NO_STATUS]


def _directory(
    rows: list[Row],
    mode: int,
    modified_at: int,
    key: tuple[bytes, Status],
    loaded: dict[tuple[bytes, Status], Directory],
    source: ContentSource,
    scanned_at: int,
    token: StatToken | None,
) -> Directory:
    nodes: dict[str, Node] = {}
    statuses: dict[str, Status | None] = {}
    below: dict[str, Directory] = {}
    files = total_size = 0
    for name, status, digest, target in rows:
        host = name if name.isascii() else host_name(name)
        kind = status[0] & KIND
        if kind == stat.S_IFREG:
            # Most entries are files, and this is most of what reading a snapshot takes.
            size = status[1]
            nodes[name] = leaves.file(Stored(digest, size, source), mode=status[0] & 0o7777, at=status[2])
            total_size += size
        elif kind == stat.S_IFDIR:
            below[host] = loaded[digest, status]
            nodes[name] = below[host].tree
            statuses[host] = status
            continue
        else:
            nodes[name] = _special(kind, status, target)
        files += 1
        statuses[host] = status if trusted(status, scanned_at) else None
    trees = [one.tree for one in below.values()]
    tree = FileTree(
        maps.build(nodes.items()),
        mode,
        modified_at,
        modified_at,
        files + sum([one.file_count for one in trees]),
        len(trees) + sum([one.directory_count for one in trees]),
        total_size + sum([one.total_size for one in trees]),
    )
    return Directory(tree, statuses, below, key[1], token, key[0])


def _special(kind: int, status: Status, target: str | None) -> Leaf:
    mode, _, modified_at, _, _ = status
    if kind == stat.S_IFLNK:
        return leaves.link(cast(str, target), at=modified_at)
    if kind not in SPECIAL:
        raise ValueError(f"a manifest has an entry of unknown kind {kind:o}")
    return leaves.special(SPECIAL[kind], mode=mode & 0o7777, at=modified_at)
