"""Restoring the attributes that a tree does not hold: owners, extended attributes and hard links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from weakfs.backends.container.layers.image_files import ImageFiles
from weakfs.backends.container.layers.layer import ROOT, Layer, Owner, Xattrs, overlay_prefixes, shown, xattrs_of
from weakfs.class_decorators import frozen
from weakfs.platforms import Opened
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.leaf import CONTENT, DEVICE
from weakfs.reducers.tree.node import FileTree, Segments, find, path_of, walk
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import host_bytes, set_status, temporary_name
from weakfs.snapshots.restore import Plan


@frozen(eq=False)
class AttributeRestore:
    """Restores attributes when files change from one layer (`now`, `None` if unknown) to another, over an image.

    `wanted` are all files after the restore, whose contents are already in place; `at` is their place in the image.
    """

    disk: HostDirectory
    image: ImageFiles | None
    at: Segments
    now: Layer | None
    layer: Layer
    wanted: FileTree

    def run(self, plan: Plan) -> None:
        """Set the attributes of all entries that the plan has put in place or that differ only in attributes."""
        separated = [*self._separate()]
        for path in sorted({*self._put(plan), *self._differing(), *separated}):
            check_interrupted()
            segments = segments_of(path)
            node = find(self.wanted, segments)
            if node is not None:
                self._set(segments, *self._attributes(path, segments))
        for names in self.layer.attributes.links:
            self._link(names)

    def _separate(self) -> Iterator[str]:
        """Replace names that are still hard links to one file with copies, if they should be separate files."""
        wanted = {name: group[0] for group in self.layer.attributes.links for name in group}
        for names in () if self.now is None else self.now.attributes.links:
            kept: dict[tuple[int, int], str] = {}
            for name in names:
                segments, group = segments_of(name), wanted.get(name, name)
                leaf, status = find(self.wanted, segments), self.disk.status(segments)
                if type(leaf) is not tuple or status is None or leaf[CONTENT] is DEVICE:
                    continue
                if kept.setdefault((status.st_dev, status.st_ino), group) != group:
                    self.disk.put_leaf(segments, leaf)
                    self._stamp_above(segments)
                    yield name

    def _put(self, plan: Plan) -> Iterator[str]:
        for segments, node in (*plan.steps, *plan.statuses):
            path = path_of(segments)
            yield path
            if type(node) is FileTree:
                yield from (below for below, _ in walk(node, path))
        yield from (path_of(segments) for segments, _, _ in plan.directories)

    def _differing(self) -> Iterator[str]:
        theirs = self.layer.attributes
        if self.now is None:
            yield from (*theirs.owners, *theirs.xattrs)
            return
        ours = self.now.attributes
        for path in {*ours.owners, *ours.xattrs, *theirs.owners, *theirs.xattrs}:
            if ours.owners.get(path) != theirs.owners.get(path) or ours.xattrs.get(path) != theirs.xattrs.get(path):
                yield path
        # An entry that is in only one of the layers comes from the image in the other.
        yield from (path for path, _ in walk(self.now.files) if find(self.layer.files, segments_of(path)) is None)
        yield from (path for path, _ in walk(self.layer.files) if find(self.now.files, segments_of(path)) is None)

    def _attributes(self, path: str, segments: Segments) -> tuple[Owner, Xattrs]:
        own = self.layer.attributes
        if self.image is not None and find(self.layer.files, segments) is None:
            below = self.image.attributes((*self.at, *segments))
            if below is not None:
                return below
        return own.owners.get(path, ROOT), own.xattrs.get(path, {})

    def _set(self, segments: Segments, owner: Owner, xattrs: Xattrs) -> None:
        with Opened(self.disk.open_directory(segments[:-1])) as directory:
            raw = host_bytes(segments[-1]) if segments else b"."
            name = os.fsdecode(raw)
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            place = f"/proc/self/fd/{directory}/{name}"
            if (status.st_uid, status.st_gid) != owner:
                os.chown(name, *owner, dir_fd=directory, follow_symlinks=False)
                # The kernel clears set-id bits.
                set_status(directory, raw, mode=stat.S_IMODE(status.st_mode))
            there = shown(xattrs_of(directory, name))
            for old in there.keys() - xattrs.keys():
                os.removexattr(place, old, follow_symlinks=False)
            for new, value in xattrs.items():
                if there.get(new) != value and not new.startswith(overlay_prefixes()):
                    os.setxattr(place, new, value, follow_symlinks=False)

    def _link(self, names: tuple[str, ...]) -> None:
        """Link paths that a restore has created as separate files, so that they are hard links to one file again."""
        first, *others = (segments_of(name) for name in names)
        status = self.disk.status(first)
        for other in others:
            there = self.disk.status(other)
            if status is None or there is None or (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino):
                continue
            temporary = (*other[:-1], temporary_name().decode())
            self.disk.link(first, temporary)
            self.disk.rename(temporary, other)
            self._stamp_above(other)

    def _stamp_above(self, segments: Segments) -> None:
        parent = find(self.wanted, segments[:-1])
        if type(parent) is FileTree:
            self.disk.stamp(segments[:-1], parent.modified_at)
