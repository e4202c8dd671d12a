"""The primitives of a filesystem, which a backend implements; everything else is derived from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from errno import EACCES, EFBIG, ELOOP, ENOENT, ENOTDIR, EPERM
from io import BufferedReader, BytesIO, RawIOBase
from operator import itemgetter
from typing import Literal, cast, get_args

from weakfs.filesystem.limits import Limits
from weakfs.filesystem.results import FileEntry, Note
from weakfs.reducers.events import Event
from weakfs.reducers.tree.leaf import CREATED_AT, Leaf, is_file, is_link
from weakfs.reducers.tree.listing import listing_of
from weakfs.reducers.tree.node import FileTree, Listing, Node, Segments

SymlinkPolicy = Literal["deny", "within_root_only", "allow"]


def check_symlink_policy(policy: SymlinkPolicy) -> None:
    """Raise `ValueError` for anything but one of the three policies."""
    if policy not in get_args(SymlinkPolicy):
        raise ValueError(f"follow_symlinks is {policy!r:.60}; use 'deny', 'within_root_only' or 'allow'")


# A file to be searched: its name, and its bytes or its leaf.
Searched = tuple[str, bytes | Leaf]

# A search skips files whose lookup or reading fails with one of these errors.
UNSEARCHABLE = (EACCES, EPERM, ENOENT, ENOTDIR, ELOOP, EFBIG)

_name: Callable[[tuple[str, Node]], str] = itemgetter(0)


class FilesystemPrimitives(ABC):
    """The part of a filesystem that differs between backends. Programs that use a filesystem do not call these methods.

    Paths are tuples of segments that have been checked: `/src/app.py` is `("src", "app.py")`, and the root is `()`.
    Nodes are a `FileTree` for a directory, and a `Leaf` for a file or a link. A backend that stores files elsewhere
    returns leaves with lazy content and directories without children; only the backend itself looks inside them.
    """

    limits: Limits
    follow_symlinks: SymlinkPolicy

    @property
    @abstractmethod
    def read_only(self) -> bool:
        """Whether every change is refused."""

    @property
    @abstractmethod
    def root(self) -> str:
        """Where the files are: a host directory, or `/` for files without any other location."""

    @property
    @abstractmethod
    def filesystem_id(self) -> str:
        """The id of this filesystem in snapshots. A snapshot is restored on the filesystem with the same id."""

    @abstractmethod
    def lookup(self, segments: Segments) -> Node | None:
        """Return the node at exactly this path, following no link; `None` if there is none."""

    @abstractmethod
    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        """Return the entries of a directory as pairs of name and node, in any order."""

    @abstractmethod
    def content(self, path: str, leaf: Leaf) -> bytes:
        """Return a file's bytes."""

    @abstractmethod
    def totals(self, segments: Segments) -> tuple[int, int, int]:
        """Return the numbers of bytes, files (including links) and directories below a directory, excluding itself."""

    @abstractmethod
    def height(self, segments: Segments) -> int:
        """Return the depth of the deepest entry below a node, in segments relative to the node."""

    @abstractmethod
    def tree(self) -> FileTree:
        """Return all files as one immutable value."""

    @abstractmethod
    def apply(self, event: Event) -> tuple[Note, ...] | None:
        """Make a change that has been checked; return what the files lost in the process, if anything."""

    @abstractmethod
    def now(self) -> int:
        """Read the clock, in integer nanoseconds."""

    @abstractmethod
    def lock(self) -> AbstractContextManager[object]:
        """Return a context manager that holds off other changes while one is checked and applied."""

    # Optional primitives: for speed, or for features that only some backends have

    def list_entries(self, segments: Segments, prefix: str) -> tuple[FileEntry, ...]:
        """Return the entries of a directory for `list`, by name. Their paths start with `prefix`."""
        return tuple(entry_of(name, prefix + name, node) for name, node in sorted(self.entries(segments), key=_name))

    def content_range(self, path: str, leaf: Leaf, start: int, stop: int) -> bytes:
        """Return part of a file's bytes."""
        return self.content(path, leaf)[start:stop]

    def content_stream(self, path: str, leaf: Leaf) -> BufferedReader:
        """Open a file's current bytes for reading."""
        return BufferedReader(cast(RawIOBase, BytesIO(self.content(path, leaf))))

    def readable_entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        """Return the entries of a directory for a search; none if it may not be listed or is gone."""
        try:
            return self.entries(segments)
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            return ()

    def search_listing(self, segments: Segments) -> Listing:
        """Return a directory's listing for a search, without entries that the search may not read."""
        return listing_of(self.readable_entries(segments))

    def readable_content(self, path: str, leaf: Leaf) -> bytes | None:
        """Return a file's bytes for a search; `None` if it may not be read, is gone or is too large."""
        try:
            return self.content(path, leaf)
        except OSError as error:
            if error.errno in UNSEARCHABLE:
                return None
            raise

    def readable_contents(self, segments: Segments, prefix: str, files: Sequence[Searched]) -> Iterator[bytes | None]:
        """Yield the bytes of files of one directory, as `readable_content` returns them. Paths start with `prefix`."""
        for name, file in files:
            yield file if type(file) is bytes else self.readable_content(f"{prefix}/{name}", cast(Leaf, file))

    def read_view(self) -> FilesystemPrimitives | None:
        """Return an immutable view of the current files, for a call that reads many of them; `None` if there is none.

        The view is a `BaseFilesystem` too.
        """
        return None

    def creation_time(self, segments: Segments, node: Node) -> int:
        """Return when an entry was created, in nanoseconds."""
        return node.created_at if type(node) is FileTree else node[CREATED_AT]

    def hard_links(self, segments: Segments) -> tuple[Segments, ...]:
        """Return the other paths of the same file, which change along with it."""
        return ()

    def notify_subscribers(self) -> None:
        """Notify subscribers of a change, after `lock` has been released."""
        return


def entry_of(name: str, path: str, node: Node) -> FileEntry:
    """Return a node as an entry of a listing."""
    if type(node) is FileTree:
        return FileEntry(name, path, False, True)
    return FileEntry(name, path, True, False) if is_file(node) else FileEntry(name, path, False, False, is_link(node))
