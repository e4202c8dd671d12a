"""The files of an image: its layers, read in place and never changed."""

from __future__ import annotations

import os
from functools import cached_property

from weakfs.backends.container.layers.layer import (
    Attributes,
    Layer,
    Owner,
    Xattrs,
    is_opaque,
    is_whiteout,
    shown,
    xattrs_of,
)
from weakfs.platforms import Opened
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.leaf import CONTENT, DEVICE
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Segments, find, walk
from weakfs.snapshots.directory.entries import host_bytes
from weakfs.snapshots.directory.nodes import ReadableDirectory


class ImageFiles:
    """The layers of an image, the top one first; contents stay on disk until they are read."""

    def __init__(self, layers: tuple[str, ...]) -> None:
        self._layers = [ReadableDirectory(path) for path in layers]

    @cached_property
    def tree(self) -> FileTree:
        """All files of the image. O(entries), once."""
        lower = EMPTY_TREE
        for layer in reversed(self._layers):
            files = layer.whole_directory(())
            lower = Layer(files, _marks(layer, files, lower), "").over(lower)
        return lower

    def attributes(self, segments: Segments) -> tuple[Owner, Xattrs] | None:
        """Return the owner and the extended attributes of an entry; `None` if the image has none at that path."""
        for layer in self._layers:
            status = layer.status(segments)
            if status is not None:
                with Opened(layer.open_directory(segments[:-1])) as directory:
                    name = os.fsdecode(host_bytes(segments[-1])) if segments else "."
                    return (status.st_uid, status.st_gid), shown(xattrs_of(directory, name))
        return None


def _marks(layer: ReadableDirectory, files: FileTree, lower: FileTree) -> Attributes:
    """Return the whiteouts and opaque directories of a layer, which hide entries of the layers below it."""
    whiteouts, opaque = set[str](), set[str]()
    for path, node in walk(files):
        segments = segments_of(path)
        if type(node) is tuple:
            status = layer.status(segments) if node[CONTENT] is DEVICE else None
            if status is not None and is_whiteout(status):
                whiteouts.add(path)
        elif type(find(lower, segments)) is FileTree:
            with Opened(layer.open_directory(segments)) as descriptor:
                if is_opaque(xattrs_of(descriptor, ".")):
                    opaque.add(path)
    return Attributes(whiteouts=frozenset(whiteouts), opaque=frozenset(opaque))
