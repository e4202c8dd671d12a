"""The filesystem that a backend extends: all methods, derived from its primitives."""

from __future__ import annotations

from weakfs.filesystem.operations.search import Searching
from weakfs.filesystem.operations.streams import Streaming


class BaseFilesystem(Searching, Streaming):
    """Everything that the protocol asks for except what concerns the whole: snapshots, trees, archives."""

    __slots__ = ()
