"""What can happen to a tree of files: frozen facts, small, with what changed and not the whole file.

Paths are canonical (`/src/a.py`); times are integer nanoseconds. Whether a thing may happen was decided
before it became an event; a reducer only places the result.

Each event ends in `filesystem`: `None` for the session's own files, else the id of the external filesystem where
it happened (`weakfs.reducers.external_trees`).
"""

from __future__ import annotations

from attrs import field, frozen

from weakfs.reducers.lower_entries import LowerEntry
from weakfs.reducers.tree.node import FileTree
from weakfs.reducers.validation import EntryPath, Mode, OptionalMode, Path, Target
from weakfs.session import event


@event("fs/file_written")
@frozen
class FileWritten:
    """A file's whole content was set; missing parents were made. `mode` is `None` where it stays (new: 0644)."""

    path: EntryPath
    content: bytes = field(repr=False)
    at: int
    mode: OptionalMode = None
    filesystem: str | None = None


@event("fs/file_appended")
@frozen
class FileAppended:
    """`tail` was added to the end of a file, which was made if it was missing."""

    path: EntryPath
    tail: bytes = field(repr=False)
    at: int
    filesystem: str | None = None


@event("fs/file_spliced")
@frozen
class FileSpliced:
    """Pieces of a file were replaced: `(start, stop, content)` in bytes of the old content, in order."""

    path: EntryPath
    pieces: tuple[tuple[int, int, bytes], ...] = field(repr=False)
    at: int
    filesystem: str | None = None


@event("fs/directory_made")
@frozen
class DirectoryMade:
    """A directory was made, with its missing parents."""

    path: Path
    at: int
    filesystem: str | None = None


@event("fs/entry_deleted")
@frozen
class EntryDeleted:
    """A file, a link, or a directory with all that was in it went away."""

    path: EntryPath
    at: int
    filesystem: str | None = None


@event("fs/entry_moved")
@frozen
class EntryMoved:
    """An entry took another path, in the place of what was there."""

    source: EntryPath
    destination: EntryPath
    at: int
    filesystem: str | None = None


@event("fs/entry_copied")
@frozen
class EntryCopied:
    """An entry was copied to another path, in the place of what was there."""

    source: EntryPath
    destination: EntryPath
    at: int
    filesystem: str | None = None


@event("fs/mode_changed")
@frozen
class ModeChanged:
    """An entry's permission bits were set."""

    path: Path
    mode: Mode
    at: int
    filesystem: str | None = None


@event("fs/link_made")
@frozen
class LinkMade:
    """A symbolic link was made."""

    path: EntryPath
    target: Target
    at: int
    filesystem: str | None = None


@event("fs/tree_mounted")
@frozen
class TreeMounted:
    """A tree from outside was put at a path as one whole. `source` names it; `skipped` tells what was left out."""

    path: Path
    source: str
    tree: FileTree = field(repr=False)
    skipped: tuple[tuple[str, str], ...]
    at: int
    filesystem: str | None = None


@event("fs/tree_restored")
@frozen
class TreeRestored:
    """The whole tree became another: a snapshot that was restored, an archive that was taken in."""

    tree: FileTree = field(repr=False)
    source: str
    at: int
    filesystem: str | None = None


@event("fs/entry_found")
@frozen
class EntryFound:
    """What an outside place held at a path before the first change there.

    `tree` has exactly one entry, named as the path's last segment: a file, a link, or a directory with all that is
    known to lie in it. An empty tree says that nothing was there. For the root `tree` is the root itself.
    """

    path: Path
    tree: FileTree = field(repr=False)
    at: int
    filesystem: str | None = None


@event("fs/entry_put")
@frozen
class EntryPut:
    """An entry that no other event makes was put at a path: a FIFO, a large file whose content lies in a store.

    `tree` has exactly one entry, named as the path's last segment.
    """

    path: EntryPath
    tree: FileTree = field(repr=False)
    at: int
    filesystem: str | None = None


@event("fs/tree_seen")
@frozen
class TreeSeen:
    """All files of an outside place were looked at, as for a snapshot: this is how they were. Nothing changed."""

    tree: FileTree = field(repr=False)
    source: str
    at: int
    filesystem: str | None = None


@event("fs/entry_hidden")
@frozen
class EntryHidden:
    """An entry of the layer below is not to be seen any more. `seen` is what it was."""

    path: EntryPath
    at: int
    seen: LowerEntry | None = None
    filesystem: str | None = None


@event("fs/layer_emptied")
@frozen
class LayerEmptied:
    """A layer over other files holds nothing any more: it was written down, or given up, as `reason` says."""

    reason: str
    at: int
    filesystem: str | None = None


EVENTS = (
    FileWritten,
    FileAppended,
    FileSpliced,
    DirectoryMade,
    EntryDeleted,
    EntryMoved,
    EntryCopied,
    ModeChanged,
    LinkMade,
    TreeMounted,
    TreeRestored,
    EntryFound,
    EntryPut,
    TreeSeen,
    EntryHidden,
    LayerEmptied,
)

Event = (
    FileWritten
    | FileAppended
    | FileSpliced
    | DirectoryMade
    | EntryDeleted
    | EntryMoved
    | EntryCopied
    | ModeChanged
    | LinkMade
    | TreeMounted
    | TreeRestored
    | EntryFound
    | EntryPut
    | TreeSeen
    | EntryHidden
    | LayerEmptied
)
