"""Loading trees from their manifests in a store."""

from __future__ import annotations

import stat
import struct
from collections.abc import Callable
from typing import cast

from weakfs.platforms import garbage_collection_paused
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import Node, tree_of
from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.scan.sinks import StatToken
from weakfs.snapshots.scan.stat_cache import SPECIAL, Directory, host_name, trusted
from weakfs.snapshots.store import manifests
from weakfs.snapshots.store.manifests import NO_STATUS, Status

Row = tuple[str, Status, bytes, "str | None"]


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
    # With the garbage collector on, loading 50,000 files takes 0.19 s instead of 0.08 s.
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
                waiting[key] = (*manifests.head(manifest), list(manifests.rows(manifest)))
            except (struct.error, UnicodeDecodeError) as error:
                raise ValueError(f"{key[0].hex()} is not a manifest: {error}") from None
            below = [(row[2], row[1]) for row in waiting[key][2] if stat.S_ISDIR(row[1][0])]
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
    for name, status, digest, target in rows:
        host = name if name.isascii() else host_name(name)
        kind = status[0] & 0o170000
        if kind == stat.S_IFDIR:
            below[host] = loaded[digest, status]
            nodes[name] = below[host].tree
            statuses[host] = status
            continue
        nodes[name] = _leaf(kind, status, digest, target, source)
        statuses[host] = status if trusted(status, scanned_at) else None
    tree = tree_of(nodes, mode=mode, modified_at=modified_at, created_at=modified_at)
    return Directory(tree, statuses, below, key[1], token, key[0])


def _leaf(kind: int, status: Status, digest: bytes, target: str | None, source: ContentSource) -> Leaf:
    mode, size, modified_at, _, _ = status
    if kind == stat.S_IFREG:
        return leaves.file(Stored(digest, size, source), mode=mode & 0o7777, at=modified_at)
    if kind == stat.S_IFLNK:
        return leaves.link(cast(str, target), at=modified_at)
    if kind not in SPECIAL:
        raise ValueError(f"a manifest has an entry of unknown kind {kind:o}")
    return leaves.special(SPECIAL[kind], mode=mode & 0o7777, at=modified_at)
