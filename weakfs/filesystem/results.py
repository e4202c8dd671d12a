"""Result types of a filesystem's methods: frozen values with canonical paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from attrs import field

from weakfs.attribute_hints import attribute_hints
from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init, open_class
from weakfs.reducers import FileTree
from weakfs.reducers.timestamps import as_datetime
from weakfs.session import event
from weakfs.session.blobs.blob import Stored
from weakfs.session.slices.tags import STORED_AS
from weakfs.short_repr import short_repr

if TYPE_CHECKING:
    from datetime import datetime

T = TypeVar("T")

WriteMode = Literal["overwrite", "create", "append"]


def count_lines(text: str) -> int:
    """Count lines, which end at `\\n` only; a last line without `\\n` counts too."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


@fast_init
@frozen
class FileStat:
    """The status of an entry, available without reading it.

    `size_bytes` is 0 for directories and links. Times are integer nanoseconds, and aware datetimes in `created_at` and
    `modified_at`. `mode` holds the permission bits. A link is reported as a link: it is neither a file nor a directory,
    and `target` is where it points, or "" if a policy hides that. FIFOs, sockets and devices are none of the three.
    """

    path: str
    is_file: bool
    is_directory: bool
    size_bytes: int
    created_ns: int
    modified_ns: int
    mode: int
    target: str | None = None

    @property
    def is_symlink(self) -> bool:
        """Whether the entry is a symbolic link."""
        return self.target is not None

    @property
    def created_at(self) -> datetime:
        """When the entry was created, in UTC."""
        return as_datetime(self.created_ns)

    @property
    def modified_at(self) -> datetime:
        """When the entry last changed, in UTC."""
        return as_datetime(self.modified_ns)


@attribute_hints(kind="is_file and is_directory", size_bytes="stat(path).size_bytes")
@fast_init
@frozen
class FileEntry:
    """An entry of a directory. A link is neither a file nor a directory; a FIFO or the like is none of the three."""

    name: str
    path: str
    is_file: bool
    is_directory: bool
    is_symlink: bool = False


@fast_init
@frozen
class ReadResult:
    """Text of a file: `offset` lines were skipped, and at most `limit` (`None`: all) were read.

    `truncated` is true if more lines follow.
    """

    content: str
    path: str
    total_lines: int
    offset: int
    limit: int | None
    truncated: bool

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> int:
            # Called for attributes that are not set: see `whole_text`.
            if name != "total_lines":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            total = count_lines(self.content)
            object.__setattr__(self, name, total)
            return total


_OpenReadResult = open_class(ReadResult)


def whole_text(content: str, path: str) -> ReadResult:
    """Return the result of reading all of a file. Its lines are counted when their number is first read."""
    made = _OpenReadResult()
    made.content = content
    made.path = path
    made.offset = 0
    made.limit = None
    made.truncated = False
    made.__class__ = ReadResult
    result: ReadResult = made
    return result


@fast_init
@frozen
class ReadBytesResult:
    """Bytes of a file from `offset` on; `size_bytes` is the size of the whole file."""

    content: bytes
    path: str
    size_bytes: int
    offset: int
    limit: int | None
    truncated: bool


@frozen
class Note:
    """Something that a file lost, such as a hard link, because the system does not allow it to be kept."""

    path: str
    cause: str

    def __str__(self) -> str:
        return f"{self.path}: {self.cause}"


@fast_init
@frozen
class WriteResult:
    """The result of a write: `bytes_written` is the length of the caller's content, `mode` the write mode.

    `notes` lists what the file lost in the process, such as a hard link. It is usually empty; in memory, it always is.
    """

    path: str
    bytes_written: int
    mode: WriteMode
    notes: tuple[Note, ...] = ()


@fast_init
@frozen
class GlobMatch:
    """An entry that matches a pattern; `is_file` is false for directories, links, FIFOs and the like."""

    path: str
    is_file: bool


@fast_init
@frozen
class GrepMatch:
    """A matching line. `line_number` counts from 1, `line_content` has no line ending, offsets are in characters."""

    path: str
    line_number: int
    line_content: str
    match_start: int
    match_end: int


class _Results(Sequence[T]):
    """A sequence of matches that also reports whether it was truncated."""

    __slots__ = ("_matches", "truncated")

    def __init__(self, matches: Sequence[T], *, truncated: bool) -> None:
        self._matches = tuple(matches)
        self.truncated = truncated

    def __len__(self) -> int:
        return len(self._matches)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._matches[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Results):
            return self._matches == other._matches and self.truncated == other.truncated
        return self._matches == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._matches)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({short_repr(list(self._matches))}, truncated={self.truncated})"


class GlobResult(_Results[GlobMatch]):
    """The matches of a pattern; `truncated` is true if there were more."""

    __slots__ = ()


class GrepResult(_Results[GrepMatch]):
    """The matching lines, and how many files were searched and how many binary files were skipped.

    `withheld_skipped` counts files that were not searched because a policy keeps their contents out of answers.
    """

    __slots__ = ("binary_skipped", "files_searched", "withheld_skipped")

    def __init__(
        self,
        matches: Sequence[GrepMatch],
        *,
        truncated: bool,
        files_searched: int,
        binary_skipped: int,
        withheld_skipped: int = 0,
    ) -> None:
        super().__init__(matches, truncated=truncated)
        self.files_searched = files_searched
        self.binary_skipped = binary_skipped
        self.withheld_skipped = withheld_skipped


@frozen
class Statistics:
    """Totals of a filesystem; the root itself is not counted, links count as files of size 0."""

    total_size: int
    file_count: int
    directory_count: int

    @property
    def node_count(self) -> int:
        """The number of files, links and directories."""
        return self.file_count + self.directory_count


@attribute_hints(commit_ref="ref")
@event("fs/snapshot")
@frozen
class FilesystemSnapshot:
    """A snapshot of one filesystem.

    `kind` says how it is stored, and `ref` is its identifier there; `tree` refers to the files themselves if they are
    in memory, and `data` is the archive of kind "tar". The time is in integer nanoseconds in `created_ns`, and an aware
    datetime in `created_at`.
    """

    snapshot_id: str
    filesystem_id: str
    created_ns: int = field(metadata={STORED_AS: "created_at"})
    kind: str
    ref: str
    root_path: str
    tag: str | None = None
    git_dir: str | None = None
    tree: FileTree | None = field(default=None, repr=False, eq=False)
    data: Stored | bytes | None = field(default=None, repr=False, eq=False)

    @property
    def created_at(self) -> datetime:
        """When the snapshot was taken, in UTC."""
        return as_datetime(self.created_ns)


@frozen
class RestoreReport:
    """What a restore changed, or with `dry_run` would change: lists of paths, each sorted.

    Times are restored as well, but an entry that differs only in its time is not listed. `notes` lists what files lost,
    such as a hard link or an owner; it is empty for a dry run.
    """

    snapshot_id: str
    written: tuple[str, ...]
    removed: tuple[str, ...]
    dry_run: bool
    notes: tuple[Note, ...] = ()

    @property
    def changed(self) -> int:
        """The number of entries that differ."""
        return len(self.written) + len(self.removed)
