"""File events: small frozen facts that hold what changed rather than the whole file.

Paths are canonical (`/src/a.py`); times are integer nanoseconds. Whether something is allowed is decided before it
becomes an event; a reducer only applies the result.

Each event ends in `filesystem`: `None` for the session's own files, else the id of the external filesystem where
it happened (`weakfs.reducers.external_trees`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from attrs import field

from weakfs.attribute_hints import attribute_hints
from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.reducers.timestamps import as_datetime
from weakfs.reducers.tree.node import FileTree
from weakfs.reducers.validation import EntryPath, Mode, OptionalMode, Path, Target
from weakfs.session import event
from weakfs.session.blobs.blob import Stored
from weakfs.session.slices.tags import STORED_AS, tag_of

if TYPE_CHECKING:
    from datetime import datetime


@event("fs/file_written")
@fast_init
@frozen
class FileWritten:
    """A file's whole content was set; missing parents were made. `mode` is `None` if unchanged (new files: 0644)."""

    path: EntryPath
    content: bytes = field(repr=False)
    at: int
    mode: OptionalMode = None
    filesystem: str | None = None


@event("fs/file_appended")
@fast_init
@frozen
class FileAppended:
    """`tail` was added to the end of a file, which was created if it was missing."""

    path: EntryPath
    tail: bytes = field(repr=False)
    at: int
    filesystem: str | None = None


@event("fs/file_spliced")
@fast_init
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
    """A file, a link, or a directory with everything in it was deleted."""

    path: EntryPath
    at: int
    filesystem: str | None = None


@event("fs/entry_moved")
@frozen
class EntryMoved:
    """An entry was moved to another path and replaced what was there."""

    source: EntryPath
    destination: EntryPath
    at: int
    filesystem: str | None = None


@event("fs/entry_copied")
@frozen
class EntryCopied:
    """An entry was copied to another path and replaced what was there."""

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
    """An external tree was mounted at a path as a whole. `source` names it; `skipped` lists what was left out."""

    path: Path
    source: str
    tree: FileTree = field(repr=False)
    skipped: tuple[tuple[str, str], ...]
    at: int
    filesystem: str | None = None


@event("fs/tree_restored")
@frozen
class TreeRestored:
    """The whole tree was replaced: by a restored snapshot or an imported archive."""

    tree: FileTree = field(repr=False)
    source: str
    at: int
    filesystem: str | None = None


@event("fs/entry_found")
@frozen
class EntryFound:
    """What an external filesystem held at a path before the first change there.

    `tree` has exactly one entry, named as the path's last segment: a file, a link, or a directory with everything known
    to be in it. An empty tree means that nothing was there. For the root, `tree` is the root itself. For an entry that
    an overlay changes, the directories above it are nested in the same tree.
    """

    path: Path
    tree: FileTree = field(repr=False)
    at: int
    filesystem: str | None = None


@event("fs/entry_put")
@frozen
class EntryPut:
    """An entry that no other event can create was put at a path: a FIFO, or a large file whose content is in a store.

    `tree` has exactly one entry, named as the path's last segment.
    """

    path: EntryPath
    tree: FileTree = field(repr=False)
    at: int
    filesystem: str | None = None


@event("fs/tree_seen")
@frozen
class TreeSeen:
    """All files of an external filesystem were scanned, as for a snapshot: this is their state. Nothing changed."""

    tree: FileTree = field(repr=False)
    source: str
    at: int
    filesystem: str | None = None


@event("fs/entry_hidden")
@frozen
class EntryHidden:
    """An entry of the lower layer was hidden by a whiteout. `seen` is its last known state."""

    path: EntryPath
    at: int
    seen: LowerEntry | None = None
    filesystem: str | None = None


@event("fs/layer_emptied")
@frozen
class LayerEmptied:
    """A layer over other files was emptied: it was committed or discarded, according to `reason`."""

    reason: str
    at: int
    filesystem: str | None = None


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
EVENTS: tuple[type, ...] = get_args(Event)

# The tags of the events that change an entry.
CHANGING = {tag_of(type_) for type_ in EVENTS if type_ not in (EntryFound, TreeSeen, TreeRestored, LayerEmptied)}


@event("fs/lower_entry")
@frozen
class LowerEntry:
    """One entry of the lower layer as it was when it was read or hidden: an event, and a value of its slice.

    `kind` is the kind of a leaf, or "directory". `digest` is the digest of a file's content if it was read (in hex, see
    `weakfs.session.blobs.blob.digest_of`); for a directory, it is a digest of the names, kinds, sizes and times below
    it.
    """

    path: Path
    kind: str
    size: int
    modified_ns: int
    mode: int
    digest: str | None


@attribute_hints(commit_ref="ref")
@event("fs/external_snapshot")
@frozen
class ExternalFsSnapshot:
    """One snapshot of an external filesystem: an event, and at the same time a value of its LOG slice.

    `kind` is "tree", "git" or "tar"; `ref` identifies the snapshot in the store of that kind. The time is in
    integer nanoseconds in `created_ns`, and an aware datetime in `created_at`. `data` is the content of kinds that
    store it in the slice, such as an archive.
    """

    snapshot_id: str
    filesystem_id: str
    created_ns: int = field(metadata={STORED_AS: "created_at"})
    kind: str
    ref: str
    root_path: str
    git_dir: str | None = None
    tag: str | None = None
    data: Stored | bytes | None = field(default=None, repr=False)

    @property
    def created_at(self) -> datetime:
        """When the snapshot was taken, in UTC."""
        return as_datetime(self.created_ns)
