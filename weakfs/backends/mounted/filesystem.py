"""A filesystem whose files have the same paths for tools and for commands: both find them below one mount point."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from errno import EACCES, ENOTSUP
from io import BufferedReader
from typing import Any, cast

import attrs

from weakfs.backends.mounted.mount_point import MountPoint, recorded_mount, refuse_overlap
from weakfs.errors import fault
from weakfs.filesystem import (
    BaseFilesystem,
    Checkout,
    FileEntry,
    Filesystem,
    FilesystemSnapshot,
    Limits,
    Note,
    ReadBack,
    RestoreReport,
    Statistics,
    SupportsCheckout,
    SymlinkPolicy,
)
from weakfs.filesystem.errors import not_found
from weakfs.filesystem.paths import Parsed, is_within, parse
from weakfs.filesystem.primitives import Searched
from weakfs.messages import a_type
from weakfs.processes.background import BackgroundProcesses, SupportsProcesses, no_processes
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.reducers.events import EntryDeleted, Event
from weakfs.reducers.mount_points import FilesystemMounted
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import Listing, Node, Segments, path_of, tree_of
from weakfs.session import Session

OUTSIDE = ".."
# The fields of events that are paths of the files.
PATHS = ("path", "source", "destination")


class MountedFilesystem(BaseFilesystem):
    """The files of another filesystem, with paths below a mount point: its `/a.py` is `/workspace/a.py` here.

    A sandbox shows the files to commands at the same path, so that both mean the same file. Relative paths start at the
    mount point; a host path below the directory of a host filesystem means the file that is there. There is nothing
    outside the mount point. By default, `mounted_at` is where the session last had these files mounted; it is saved
    with the session. Trees, snapshots, archives, and the paths in a session's records are the same as those of `files`.

    Raises `ValueError` for a mount point that is not a canonical path, is `/` or one of the system's directories, or is
    above or below the directory of a host filesystem.
    """

    __slots__ = ("_files", "_point")

    def __init__(self, files: Filesystem, mounted_at: str | None = None) -> None:
        if not isinstance(files, BaseFilesystem) or isinstance(files, MountedFilesystem):
            raise TypeError(
                f"cannot mount {files!r:.80}: it is {a_type(files)}; pass a filesystem that derives from "
                f"BaseFilesystem and is not mounted yet, such as an InMemoryFilesystem or a HostFilesystem"
            )
        self._files: BaseFilesystem = files
        known = recorded_mount(self.session, files.filesystem_id)
        if mounted_at is None and known is None:
            raise ValueError(
                f"cannot tell where to mount {files!r}: its session does not say where it was mounted; pass "
                f"mounted_at='/workspace'"
            )
        self._point = MountPoint.at(cast(str, known if mounted_at is None else mounted_at))
        refuse_overlap(self._point, files)
        if mounted_at is not None and mounted_at != known and self.session is not None and not files.read_only:
            self.session.dispatch(FilesystemMounted(mounted_at, self.session.now(), files.filesystem_id))

    def __repr__(self) -> str:
        return f"<MountedFilesystem {self._files!r} at {self.mounted_at!r}>"

    @property
    def files(self) -> Filesystem:
        """The filesystem that is mounted."""
        return cast(Filesystem, self._files)

    @property
    def mounted_at(self) -> str:
        """The path at which the files are found."""
        return self._point.path

    @property
    def mount_point(self) -> MountPoint:
        """The mount point, which converts one form of a path to the other."""
        return self._point

    @property
    def session(self) -> Session | None:
        """The session that records the changes, if there is one."""
        session = getattr(self._files, "session", None)
        return session if isinstance(session, Session) else None

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # cannot be set here
        """The limits of the files."""
        return self._files.limits

    @property
    def follow_symlinks(self) -> SymlinkPolicy:
        """The policy for symbolic links in paths."""
        return self._files.follow_symlinks

    @follow_symlinks.setter
    def follow_symlinks(  # pyright: ignore[reportIncompatibleVariableOverride]  # a variable in the base class
        self, policy: SymlinkPolicy
    ) -> None:
        self._files = copy(self._files)
        self._files.follow_symlinks = policy

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self._files.read_only

    @property
    def root(self) -> str:
        """Where the files are: a host directory, or `/` for files without any other location."""
        return self._files.root

    @property
    def filesystem_id(self) -> str:
        """The id of the files in snapshots and records."""
        return self._files.filesystem_id

    def bind(self, session: Session) -> MountedFilesystem:
        """Return the same files bound to another session, such as a fork, at the same path."""
        bound = object.__new__(MountedFilesystem)
        bound._files = cast(BaseFilesystem, self.files.bind(session))
        bound._point = self._point
        return bound

    # Paths

    def _parse(self, path: str | os.PathLike[str]) -> Parsed:
        canonical, segments = parse(path)
        text = os.fspath(path)
        point = self._point
        if not text.startswith(("/", "\\")):
            return point.mounted(canonical), (*point.segments, *segments)
        if point.holds(segments):
            return canonical, segments
        for spelled in (text, canonical):
            own = self._files._below_host_root(spelled)
            if own is not None:
                canonical, segments = parse(own)
                return point.mounted(canonical), (*point.segments, *segments)
        return canonical, segments

    def _own(self, segments: Segments) -> Segments | None:
        """Return the segments of a path within `files`; `None` for a path outside the mount point."""
        if self._point.holds(segments):
            return segments[len(self._point.segments) :]
        return segments if segments[:1] == (OUTSIDE,) else None

    def _own_path(self, path: str) -> str:
        """Return the path within `files`, for a call that names a file by its path."""
        own = self._point.own(path)
        return path if own is None else own

    def _climb(self, done: list[str], path: str) -> None:
        inside = done if done[:1] == [OUTSIDE] else done[len(self._point.segments) :]
        self._files._climb(inside, path)
        done[:] = inside if inside[:1] == [OUTSIDE] else [*self._point.segments, *inside]

    def _from_the_top(self, target: str, path: str) -> tuple[list[str], str]:
        if is_within(target, self.mounted_at):
            return [], target
        own = self._files._below_host_root(target)
        if own is not None:
            return [*self._point.segments], own
        done, rest = self._files._from_the_top(target, path)
        if done[:1] != [OUTSIDE]:
            # Commands find the system's own entries there.
            raise self._outside(path)
        return done, rest

    def _check_new(self, path: str, segments: Segments, verb: str, create_parents: bool) -> int:
        if self._own(segments) is None:
            raise self._not_here(path, verb)
        return super()._check_new(path, segments, verb, create_parents)

    def _missing(self, path: str, segments: Segments, verb: str) -> OSError:
        if self._own(segments) is None:
            return not_found(
                path,
                f"cannot {verb} {path!r}: the files are below {self.mounted_at!r}",
                f"list {self.mounted_at!r} to see what is there",
            )
        return super()._missing(path, segments, verb)

    def _not_here(self, path: str, verb: str) -> PermissionError:
        return fault(
            PermissionError,
            EACCES,
            f"cannot {verb} {path!r}: the files are below {self.mounted_at!r}; use a path such as "
            f"{self._point.mounted(path)!r}",
        )

    def _naming(self) -> AbstractContextManager[None]:
        return self._point.named(self._is_elsewhere)

    def _is_elsewhere(self, path: str) -> bool:
        """Return whether a path in a message is a host path: of the directory, or of the store of snapshots."""
        store = getattr(self._files, "store", None)
        return self._files._below_host_root(path) is not None or (store is not None and is_within(path, store.path))

    # Primitives

    def lookup(self, segments: Segments) -> Node | None:
        own = self._own(segments)
        if own is not None:
            with self._naming():
                return self._files.lookup(own)
        return self._above() if self._point.is_above(segments) else None

    def _above(self) -> FileTree:
        """Return a directory on the way to the mount point, with the times of the files' root."""
        top = self._files.lookup(())
        at = top.modified_at if type(top) is FileTree else 0
        return tree_of({}, modified_at=at)

    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        own = self._own(segments)
        if own is not None:
            with self._naming():
                return self._files.entries(own)
        name = self._point.segments[len(segments)]
        return ((name, cast(Node, self.lookup((*segments, name)))),)

    def readable_entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        own = self._own(segments)
        return self.entries(segments) if own is None else self._files.readable_entries(own)

    def list_entries(self, segments: Segments, prefix: str) -> tuple[FileEntry, ...]:
        own = self._own(segments)
        if own is None:
            return super().list_entries(segments, prefix)
        with self._naming():
            return self._files.list_entries(own, prefix)

    def search_listing(self, segments: Segments) -> Listing:
        own = self._own(segments)
        return super().search_listing(segments) if own is None else self._files.search_listing(own)

    def read_view(self) -> MountedFilesystem | None:
        view = self._files.read_view()
        if not isinstance(view, BaseFilesystem):
            return None
        made = object.__new__(MountedFilesystem)
        made._files, made._point = view, self._point
        return made

    def content(self, path: str, leaf: Leaf) -> bytes:
        with self._naming():
            return self._files.content(self._own_path(path), leaf)

    def content_range(self, path: str, leaf: Leaf, start: int, stop: int) -> bytes:
        with self._naming():
            return self._files.content_range(self._own_path(path), leaf, start, stop)

    def content_stream(self, path: str, leaf: Leaf) -> BufferedReader:
        with self._naming():
            return self._files.content_stream(self._own_path(path), leaf)

    def readable_content(self, path: str, leaf: Leaf) -> bytes | None:
        return self._files.readable_content(self._own_path(path), leaf)

    def readable_contents(self, segments: Segments, prefix: str, files: Sequence[Searched]) -> Iterator[bytes | None]:
        own = self._own(segments) or ()
        with self._naming():
            yield from self._files.readable_contents(own, path_of(own) if own else "", files)

    def _content_searched_alone(self, path: str, leaf: Leaf) -> bytes | None:
        return self._files._content_searched_alone(self._own_path(path), leaf)

    def _record_read(self, path: str, leaf: Leaf, verb: str) -> Leaf:
        with self._naming():
            return self._files._record_read(self._own_path(path), leaf, verb)

    def _file(self, path: str | os.PathLike[str], verb: str) -> tuple[str, Leaf]:
        canonical, leaf = super()._file(path, verb)
        return canonical, self._record_read(canonical, leaf, verb)

    def _check_repeats(self, segments: Segments) -> None:
        self._files._check_repeats(self._own(segments) or ())

    def totals(self, segments: Segments) -> tuple[int, int, int]:
        with self._naming():
            return self._files.totals(self._own(segments) or ())

    def height(self, segments: Segments) -> int:
        with self._naming():
            return self._files.height(self._own(segments) or ())

    def creation_time(self, segments: Segments, node: Node) -> int:
        own = self._own(segments)
        return super().creation_time(segments, node) if own is None else self._files.creation_time(own, node)

    def hard_links(self, segments: Segments) -> tuple[Segments, ...]:
        own = self._own(segments)
        links = () if own is None else self._files.hard_links(own)
        return tuple((*self._point.segments, *link) for link in links)

    def now(self) -> int:
        return self._files.now()

    def lock(self) -> AbstractContextManager[object]:
        return self._files.lock()

    def notify_subscribers(self) -> None:
        self._files.notify_subscribers()

    def apply(self, event: Event) -> tuple[Note, ...] | None:
        changes: dict[str, Any] = {}
        for name in PATHS:
            path = getattr(event, name, None)
            if isinstance(path, str):
                changes[name] = self._changed_path(event, path)
        with self._naming():
            notes = self._files.apply(attrs.evolve(event, **changes))
        return None if notes is None else tuple(map(self._point.mounted_note, notes))

    def _changed_path(self, event: Event, path: str) -> str:
        own = self._point.own(path)
        if own is None:
            raise self._not_here(path, "change")
        if own == "/" and isinstance(event, EntryDeleted):
            raise fault(
                PermissionError,
                EACCES,
                f"cannot delete {path!r}: it is the root of the files; delete its entries instead",
            )
        return own

    # Whole trees, which are those of the files

    def tree(self) -> FileTree:
        """Return all files as one immutable value, as `files` does."""
        return self._files.tree()

    def statistics(self) -> Statistics:
        """Count bytes, files and directories; the mount point itself is not counted."""
        return self._files.statistics()

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Take a snapshot of the files."""
        return self.files.snapshot(tag)

    def restore(
        self, snapshot: FilesystemSnapshot | ExternalFsSnapshot, *, dry_run: bool = False, foreign: bool = False
    ) -> RestoreReport:
        """Restore a snapshot of the files."""
        with self._naming():
            found = self._files.restore(snapshot, dry_run=dry_run, foreign=foreign)
        named = self._point.mounted
        return attrs.evolve(
            found,
            written=tuple(map(named, found.written)),
            removed=tuple(map(named, found.removed)),
            notes=tuple(map(self._point.mounted_note, found.notes)),
        )

    def export_bytes(self) -> bytes:
        """Return the files as one tar archive, without the mount point."""
        return self.files.export_bytes()

    def import_bytes(self, data: bytes) -> None:
        """Replace the files with those of a tar archive."""
        with self._naming():
            self.files.import_bytes(data)

    # Programs

    @contextmanager
    def checkout(
        self,
        path: str = "/",
        *,
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
    ) -> Iterator[Checkout]:
        """Check the files out for a program to work on; see `SupportsCheckout`.

        Raises `OSError` (ENOTSUP) if no program can work on the files.
        """
        from weakfs.backends.mounted.workplace import mounted_checkout

        segments = self._parse(path)[1]
        own = self._own(segments)
        if own is None and not self._point.is_above(segments):
            raise self._not_here(path_of(segments), "run a program in")
        files = self._files
        if not isinstance(files, SupportsCheckout):
            raise fault(
                OSError,
                ENOTSUP,
                f"cannot run a program on {a_type(files)}; use another filesystem",
            )
        manager = files.checkout(path_of(own or ()), read_back=read_back)
        with self._naming():
            work = manager.__enter__()
        try:
            yield mounted_checkout(work, self._point)
        except BaseException as error:
            # An exception raised by the program is not about the files, so its message is not changed.
            if not manager.__exit__(type(error), error, error.__traceback__):
                raise
        else:
            with self._naming():
                manager.__exit__(None, None, None)

    @property
    def background(self) -> BackgroundProcesses:
        """The background processes that work on the files, which they see at the mount point.

        Raises `OSError` (ENOTSUP) if no process can work on the files.
        """
        from weakfs.backends.mounted.workplace import MountedWorkplace

        if not isinstance(self._files, SupportsProcesses):
            raise fault(OSError, ENOTSUP, no_processes(self._files))
        return self._files.background.with_workplace(lambda place: MountedWorkplace(place, self._point))
