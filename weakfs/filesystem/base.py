"""The base class of backends: all methods, derived from a backend's primitives."""

from __future__ import annotations

from weakfs.filesystem.operations.search import Searching
from weakfs.filesystem.operations.streams import Streaming


class BaseFilesystem(Searching, Streaming):
    """All methods of the protocol except those for whole trees: snapshots, trees, archives."""

    __slots__ = ()
