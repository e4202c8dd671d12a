"""Layers: the differences between a container's files and its image, as one tree.

An overlay mount stores them in a directory: new and changed entries, a character device 0:0 in place of a deleted entry
(a whiteout), and an extended attribute on a directory that hides the lower entries below it (an opaque directory). A
layer is the scan of that directory, together with the attributes that a tree does not hold: owners, extended
attributes, hard links.
"""

from __future__ import annotations

import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from errno import ENODATA, ENOENT, ENOTSUP
from functools import cache, cached_property
from typing import Any, cast

import orjson
from attrs import field

from weakfs.backends.overlay.layers import bare, merged
from weakfs.class_decorators import frozen
from weakfs.platforms import Opened
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import WHITEOUT
from weakfs.reducers.tree.node import FileTree, Segments, find, put, remove, tree_of
from weakfs.session.blobs.rope import Content
from weakfs.snapshots.directory.entries import canonical_name, check_name
from weakfs.snapshots.directory.held_directory import HeldDirectory
from weakfs.snapshots.scan.stat_cache import Directory

# The names in the tree that a snapshot stores.
FILES, ATTRIBUTES = "files", "attributes.json"

# The prefixes of the attributes that the kernel and fuse-overlayfs write for their own use.
TRUSTED, UNPRIVILEGED = ("trusted.overlay.",), ("user.overlay.", "user.fuseoverlayfs.")

Owner = tuple[int, int]
ROOT: Owner = (0, 0)
Xattrs = Mapping[str, bytes]


@frozen
class Attributes:
    """The attributes of a layer's entries that a tree does not hold, by canonical path.

    The owner of an entry is left out if it is root.
    """

    owners: Mapping[str, Owner] = field(factory=dict[str, Owner])
    xattrs: Mapping[str, Xattrs] = field(factory=dict[str, Xattrs])
    whiteouts: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()
    # The names of each file that has several hard links.
    links: tuple[tuple[str, ...], ...] = ()

    def encode(self, base: str) -> bytes:
        """Return the attributes as JSON, together with the identity of the image below."""
        return orjson.dumps(
            {
                "base": base,
                "owners": self.owners,
                "xattrs": {
                    path: {name: b64encode(value).decode() for name, value in found.items()}
                    for path, found in self.xattrs.items()
                },
                "whiteouts": sorted(self.whiteouts),
                "opaque": sorted(self.opaque),
                "links": self.links,
            },
            option=orjson.OPT_SORT_KEYS,
        )


@frozen(eq=False, slots=False)
class Layer:
    """The entries that differ from an image, and their attributes.

    `base` identifies the image. It is empty if there is none, and the layer holds all files.
    """

    files: FileTree
    attributes: Attributes
    base: str

    def packed(self, encoded: Content) -> FileTree:
        """Return the layer as one tree, given its encoded attributes."""
        return tree_of({FILES: self.files, ATTRIBUTES: leaves.file(encoded, at=0)})

    @classmethod
    def unpacked(cls, tree: FileTree) -> Layer:
        """Return the layer that a tree holds. Raises `ValueError` if it holds none."""
        files, encoded = find(tree, (FILES,)), find(tree, (ATTRIBUTES,))
        if type(files) is not FileTree or type(encoded) is not tuple:
            raise ValueError("it does not hold the files of a container")
        try:
            found = cast("dict[str, Any]", orjson.loads(leaves.content_of(encoded)))
            attributes = Attributes(
                {path: (int(uid), int(gid)) for path, (uid, gid) in found["owners"].items()},
                {
                    path: {name: b64decode(value) for name, value in one.items()}
                    for path, one in found["xattrs"].items()
                },
                frozenset(found["whiteouts"]),
                frozenset(found["opaque"]),
                tuple(tuple(names) for names in found["links"]),
            )
            base = str(found["base"])
        except (KeyError, TypeError, AttributeError, orjson.JSONDecodeError) as error:
            raise ValueError(f"its attributes cannot be read ({error})") from error
        for path in {*attributes.owners, *attributes.xattrs, *(name for names in attributes.links for name in names)}:
            for name in segments_of(path):
                check_name(name)
        return cls(files, attributes, base)

    @cached_property
    def encoded(self) -> bytes:
        """The attributes in the form in which a snapshot stores them."""
        return self.attributes.encode(self.base)

    def without(self, hidden: Iterable[str]) -> Layer:
        """Return the layer without some entries, such as mount points, and without the devices of whiteouts."""
        own = self.attributes
        hidden = frozenset(hidden)
        shown = Attributes(
            {path: owner for path, owner in own.owners.items() if not _is_in(path, hidden)},
            {path: found for path, found in own.xattrs.items() if not _is_in(path, hidden)},
            own.whiteouts - hidden,
            own.opaque,
            tuple(names for names in own.links if not any(_is_in(name, hidden) for name in names)),
        )
        return Layer(without(self.files, (*hidden, *own.whiteouts)), shown, self.base)

    def over(self, lower: FileTree) -> FileTree:
        """Return all files: those of the layer over those of the image. O(layer)."""
        upper = self.files
        for path in self.attributes.whiteouts:
            upper = _with_whiteout(upper, segments_of(path))
        for path in self.attributes.opaque:
            segments = segments_of(path)
            below = find(lower, segments)
            if type(below) is FileTree:
                # The image is hidden at any depth.
                lower = put(lower, segments, bare(below), below.modified_at) if segments else bare(below)
        return merged(upper, lower)


def _with_whiteout(tree: FileTree, segments: Segments) -> FileTree:
    parent = find(tree, segments[:-1])
    at = parent.modified_at if type(parent) is FileTree else 0
    return put(tree, segments, leaves.special(WHITEOUT, at=at), at)


def _is_in(path: str, hidden: frozenset[str]) -> bool:
    return bool(hidden) and any(path == one or path.startswith(f"{one}/") for one in hidden)


def without(tree: FileTree, paths: Iterable[str]) -> FileTree:
    """Return a tree without some entries; their directories keep their times."""
    for path in paths:
        segments = segments_of(path)
        parent = find(tree, segments[:-1])
        if type(parent) is FileTree and parent._entry(segments[-1]) is not None:
            tree = remove(tree, segments, parent.modified_at)
    return tree


@frozen
class Entry:
    """The attributes of one entry of a layer, and its inode if it has several names."""

    owner: Owner
    xattrs: Xattrs
    is_whiteout: bool
    is_opaque: bool
    inode: int | None


class AttributeReader:
    """Reads the attributes of scanned entries. A directory that has not changed since is not read again."""

    def __init__(self, directory: HeldDirectory) -> None:
        self.directory = directory
        # By the `id` of a scanned directory, which is kept alive so that its `id` is not reused.
        self._known: dict[int, tuple[Directory, dict[str, Entry]]] = {}

    def read(self, top: Directory) -> Attributes:
        """Return the attributes of all entries below a scanned directory. O(what changed) system calls."""
        known: dict[int, tuple[Directory, dict[str, Entry]]] = {}
        owners: dict[str, Owner] = {}
        xattrs: dict[str, Xattrs] = {}
        whiteouts, opaque = set[str](), set[str]()
        inodes: dict[int, list[str]] = {}
        stack: list[tuple[Segments, Directory]] = [((), top)]
        own = self._entry_of(self.directory.descriptor, ".")
        found: list[tuple[str, Entry]] = [("/", own)] if own is not None else []
        while stack:
            segments, directory = stack.pop()
            held = self._known.get(id(directory))
            entries = held[1] if held is not None else self._entries(segments, directory)
            known[id(directory)] = directory, entries
            path = "/".join(("", *segments))
            found += [(f"{path}/{name}", entry) for name, entry in entries.items()]
            stack += [((*segments, canonical_name(host)), below) for host, below in directory.below.items()]
        self._known = known
        for path, entry in found:
            if entry.is_whiteout:
                whiteouts.add(path)
                continue
            if entry.owner != ROOT:
                owners[path] = entry.owner
            if entry.xattrs:
                xattrs[path] = entry.xattrs
            if entry.is_opaque:
                opaque.add(path)
            if entry.inode is not None:
                inodes.setdefault(entry.inode, []).append(path)
        links = tuple(sorted(tuple(sorted(names)) for names in inodes.values() if len(names) > 1))
        return Attributes(owners, xattrs, frozenset(whiteouts), frozenset(opaque), links)

    def _entries(self, segments: Segments, directory: Directory) -> dict[str, Entry]:
        try:
            descriptor = self.directory.open_directory(segments)
        except (FileNotFoundError, NotADirectoryError):
            # A running process has removed it since it was scanned.
            return {}
        with Opened(descriptor):
            found = {canonical_name(host): self._entry_of(descriptor, host) for host in directory.statuses}
        return {name: entry for name, entry in found.items() if entry is not None}

    def _entry_of(self, descriptor: int, host: str) -> Entry | None:
        try:
            status = os.stat(host, dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if is_whiteout(status):
            return Entry(ROOT, {}, True, False, None)
        found = xattrs_of(descriptor, host)
        is_directory = stat.S_ISDIR(status.st_mode)
        inode = status.st_ino if status.st_nlink > 1 and not is_directory else None
        return Entry((status.st_uid, status.st_gid), shown(found), False, is_directory and is_opaque(found), inode)


def is_whiteout(status: os.stat_result) -> bool:
    """Return whether an entry of a layer stands for a deleted one."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


@cache
def overlay_prefixes() -> tuple[str, ...]:
    """Return the prefix of the attributes by which an overlay marks entries.

    Overlays that root mounts outside of a user namespace use trusted attributes only; any program in the container may
    set the others, which mean nothing there.
    """
    with suppress(OSError), open("/proc/self/uid_map") as ids:
        if os.geteuid() == 0 and ids.read().split() == ["0", "0", str(2**32 - 1)]:
            return TRUSTED
    return TRUSTED + UNPRIVILEGED


def is_opaque(xattrs: Xattrs) -> bool:
    """Return whether a directory of a layer hides the lower entries below it."""
    return any(xattrs.get(f"{prefix}opaque") == b"y" for prefix in overlay_prefixes())


def shown(xattrs: Xattrs) -> dict[str, bytes]:
    """Return the extended attributes that a program in the container sees."""
    return {name: value for name, value in xattrs.items() if not name.startswith(overlay_prefixes())}


def xattrs_of(descriptor: int, host: str) -> dict[str, bytes]:
    """Return the extended attributes of an entry of an open directory; a link is not followed."""
    place = f"/proc/self/fd/{descriptor}/{host}"
    try:
        return {
            name: os.getxattr(place, name, follow_symlinks=False) for name in os.listxattr(place, follow_symlinks=False)
        }
    except OSError as error:
        if error.errno in (ENOTSUP, ENODATA, ENOENT):
            return {}
        raise
