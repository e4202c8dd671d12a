"""The base class of backends: all methods, derived from a backend's primitives."""

from __future__ import annotations

from weakfs.filesystem.operations.restore import Restoring
from weakfs.filesystem.operations.search import Searching
from weakfs.filesystem.operations.streams import Streaming
from weakfs.filesystem.other_libraries import filesystem_hints


@filesystem_hints
class BaseFilesystem(Searching, Streaming, Restoring):
    """All methods of the protocol except `export_bytes`, `import_bytes` and `bind`, derived from the primitives."""

    __slots__ = ()
