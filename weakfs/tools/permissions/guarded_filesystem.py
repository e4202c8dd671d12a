"""A filesystem that allows what a capability and a policy allow, and refuses everything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Literal, cast, overload

from attrs import evolve

from weakfs.filesystem import (
    BaseFilesystem,
    Checkout,
    FileEntry,
    FileStat,
    Filesystem,
    FilesystemSnapshot,
    GlobResult,
    GrepResult,
    Limits,
    ReadBack,
    ReadBytesResult,
    ReadResult,
    RestoreReport,
    Statistics,
    SupportsCheckout,
    WriteMode,
    WriteResult,
)
from weakfs.filesystem.operations.read import PathArg
from weakfs.filesystem.operations.streams import BytesMode, TextMode
from weakfs.filesystem.other_libraries import filesystem_hints
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.filesystem.paths import Parsed
from weakfs.messages import a_type, plural
from weakfs.processes.background import BackgroundProcesses, SupportsProcesses, no_processes
from weakfs.reducers import FileTree
from weakfs.reducers.tree.node import tree_of
from weakfs.session import Reversion, Session
from weakfs.session.external_filesystems import recorded_id
from weakfs.tools.errors import LimitExceeded, ToolValidationError
from weakfs.tools.permissions.decisions import Access, clamped
from weakfs.tools.permissions.guarded_primitives import GuardedPrimitives
from weakfs.tools.permissions.operations import Operation
from weakfs.tools.permissions.reversion_check import check_reversion

if TYPE_CHECKING:
    from weakfs.backends.mounted.mount_point import MountPoint


@filesystem_hints
class GuardedFilesystem:
    """The filesystem `inner` for one call, restricted by `access`; each method counts as its own operation.

    Methods without a docstring do what those of `BaseFilesystem` do.
    """

    __slots__ = ("_access", "_inner", "_primitives")

    def __init__(self, inner: Filesystem, access: Access) -> None:
        self._inner = inner
        self._primitives = cast(BaseFilesystem, inner)
        self._access = access

    def __repr__(self) -> str:
        return f"<Guarded {self._inner!r}>"

    def _as(self, operation: Operation, *, reads: bool = False) -> GuardedPrimitives:
        return GuardedPrimitives(self._primitives, self._access, operation, reads=reads)

    def _parse(self, path: PathArg) -> Parsed:
        return self._primitives._parse(path)

    def _by_canonical_paths(self) -> GuardedFilesystem:
        return GuardedFilesystem(by_canonical_paths(self._inner), self._access)

    @property
    def mount_point(self) -> MountPoint | None:
        """Where the files are mounted, if they are."""
        point: MountPoint | None = getattr(self._inner, "mount_point", None)
        return point

    @property
    def root(self) -> str:
        return self._inner.root

    @property
    def read_only(self) -> bool:
        return self._inner.read_only

    @property
    def limits(self) -> Limits:
        return self._inner.limits

    @property
    def filesystem_id(self) -> str:
        """The id of the filesystem."""
        return self._primitives.filesystem_id

    @property
    def session(self) -> Session | None:
        """The session in which changes are undone, if the filesystem has one."""
        session = getattr(self._inner, "session", None)
        return session if isinstance(session, Session) else None

    @property
    def max_inline_bytes(self) -> int | None:
        """The maximum number of bytes of an answer, if the capability limits it."""
        return self._access.capability.max_inline_bytes

    def may_name(self, path: str) -> bool:
        """Return whether a message may suggest a path: one that may be shown, listed and found."""
        return self._access.may_name(path)

    def may_show(self, path: str) -> bool:
        """Return whether a message may quote the file at a canonical path."""
        return self._access.may_show(path)

    def may_list(self, path: str) -> bool:
        """Return whether an answer may name an entry that the call did not name: one that a listing shows."""
        return self._access.may_list(path)

    def shows(self, operation: Operation, path: str) -> bool:
        """Return whether an answer may show what an operation finds at a path, as far as the policy is concerned."""
        return self._access.shows(operation, path)

    def check_included(self, operation: Operation) -> None:
        """Raise `OperationForbidden` if the capability does not include an operation, for calls without paths."""
        self._access.check_included(operation)

    def check_search(self) -> None:
        """Raise `PermissionError` unless a program may list and search all files, and show what it finds."""
        self._access.check_everything("read", "search", "list", "stat", why="search with a program", withheld=True)

    def check_command(self) -> None:
        """Raise `PermissionError` unless a program may use all files."""
        self._access.check_command()

    def carry(self, origins: Iterable[str]) -> None:
        """Note the files whose withheld contents the call was given: it may not write where these could be seen."""
        self._access.carry(origins)

    def check_reversion(self, done: Reversion, conflicts: Iterable[str]) -> None:
        """Raise `PermissionError` or `LimitExceeded` if a call may not make these changes by undoing work.

        The message names no files, because the call did not name them either.
        """
        filesystem_id = None if self.session is None else recorded_id(self, self.session.attached)
        check_reversion(self._access, filesystem_id, done, conflicts)

    @property
    def _most_read(self) -> int | None:
        """The maximum number of bytes read from a file; a tool that edits a file reads all of it."""
        return None if self._access.operation in ("edit", "patch") else self._access.capability.max_read_bytes

    def _asks_for_all(self, limit: int | None) -> bool:
        """Return whether a tool that may write the file back requests all of it: it must not be cut silently."""
        return limit in (None, -1) and self._access.operation != "read"

    def read(self, path: PathArg, *, offset: int = 0, limit: int | None = None, encoding: str = "utf-8") -> ReadResult:
        """Read text, cut to what the capability allows: to whole lines if at least one fits.

        In a tool that also writes, raises `LimitExceeded` instead if the whole file was requested.
        """
        found = self._as("read").read(path, offset=offset, limit=limit, encoding=encoding)
        most = self._most_read
        size = 0 if most is None else len(found.content.encode(encoding))
        if most is None or size <= most:
            return found
        if self._asks_for_all(limit):
            raise _too_large(found.path, size, most)
        text = found.content.encode(encoding)[:most].decode(encoding, "ignore")
        whole = text[: text.rfind("\n") + 1] or text
        return evolve(found, content=whole, limit=whole.count("\n") or 1, truncated=True)

    def read_bytes(self, path: PathArg, *, offset: int = 0, limit: int | None = None) -> ReadBytesResult:
        """Read bytes, at most as many as the capability allows.

        In a tool that also writes, raises `LimitExceeded` instead if the whole file was requested.
        """
        most = self._most_read
        found = self._as("read").read_bytes(path, offset=offset, limit=clamped(limit, most))
        if most is not None and found.truncated and self._asks_for_all(limit):
            raise _too_large(found.path, found.size_bytes - found.offset, most)
        return found

    def read_lines(self, path: PathArg) -> tuple[str, ...]:
        gate = self._as("read")
        self._check_whole(gate, path)
        return gate.read_lines(path)

    def _check_whole(self, gate: GuardedPrimitives, path: PathArg) -> None:
        most = self._most_read
        size = 0 if most is None else gate.read_bytes(path, limit=0).size_bytes
        if most is not None and size > most:
            raise _too_large(path, size, most)

    @overload
    def open(
        self, path: PathArg, mode: TextMode = "r", *, encoding: str = "utf-8", create_parents: bool = True
    ) -> IO[str]: ...
    @overload
    def open(
        self, path: PathArg, mode: BytesMode, *, encoding: str = "utf-8", create_parents: bool = True
    ) -> IO[bytes]: ...
    def open(
        self,
        path: PathArg,
        mode: TextMode | BytesMode = "r",
        *,
        encoding: str = "utf-8",
        create_parents: bool = True,
    ) -> IO[str] | IO[bytes]:
        if mode not in ("r", "rb"):
            return self._as("write").open(path, mode, encoding=encoding, create_parents=create_parents)
        gate = self._as("read")
        self._check_whole(gate, path)
        return gate.open(path, mode, encoding=encoding)

    def exists(self, path: PathArg) -> bool:
        return self._as("stat").exists(path)

    def is_file(self, path: PathArg) -> bool:
        return self._as("stat").is_file(path)

    def is_directory(self, path: PathArg) -> bool:
        return self._as("stat").is_directory(path)

    def stat(self, path: PathArg) -> FileStat:
        """Return the status of an entry; `target` is "" for a symbolic link that may not be read."""
        found = self._as("stat").stat(path)
        is_hidden = found.is_symlink and self._access.concealment(found.path) is not None
        return evolve(found, target="") if is_hidden else found

    def readlink(self, path: PathArg) -> str:
        gate = self._as("stat")
        concealed = self._access.concealment(gate.stat(path).path)
        if concealed is not None:
            raise concealed
        return gate.readlink(path)

    def statistics(self) -> Statistics:
        self._access.check("stat", "/")
        return self._inner.statistics()

    def list(self, path: PathArg = "/") -> tuple[FileEntry, ...]:
        """List a directory by name, without what may not be listed."""
        return self._as("list").list(path)

    def walk(self, path: PathArg = "/") -> Iterator[FileEntry]:
        """Yield everything below a directory, without what may not be listed."""
        return self._as("list").walk(path)

    def glob(
        self,
        pattern: str,
        *,
        path: PathArg = "/",
        hidden: bool = False,
        sort: Literal["mtime", "path"] = "mtime",
        max_results: int = 1000,
    ) -> GlobResult:
        """Find entries by name, without those that may not be searched."""
        gate = self._as("search")
        most = clamped(max_results, self._access.capability.max_glob_results)
        found = gate.glob(pattern, path=path, hidden=hidden, sort=sort, max_results=-1 if most is None else most)
        return GlobResult(found, truncated=True) if gate.cut else found

    def grep(
        self,
        pattern: str,
        *,
        path: PathArg = "/",
        glob: str | None = None,
        hidden: bool = True,
        case_insensitive: bool = False,
        max_matches: int | None = None,
        max_per_file: int | None = None,
        multiline: bool = False,
    ) -> GrepResult:
        """Find lines, without those of files that may not be searched, read or shown in answers."""
        gate = self._as("search", reads=True)
        asked = self.limits.max_grep_matches if max_matches is None else max_matches
        most = clamped(asked, self._access.capability.max_grep_results)
        found = gate.grep(
            pattern,
            path=path,
            glob=glob,
            hidden=hidden,
            case_insensitive=case_insensitive,
            max_matches=-1 if most is None else most,
            max_per_file=max_per_file,
            multiline=multiline,
        )
        if not (gate.cut or gate.withheld):
            return found
        return GrepResult(
            found,
            truncated=found.truncated or gate.cut,
            files_searched=found.files_searched,
            binary_skipped=found.binary_skipped,
            withheld_skipped=gate.withheld,
        )

    def write(
        self, path: PathArg, content: str, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        return self._as("write").write(path, content, mode=mode, create_parents=create_parents)

    def write_bytes(
        self, path: PathArg, content: bytes, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        return self._as("write").write_bytes(path, content, mode=mode, create_parents=create_parents)

    def append(self, path: PathArg, content: str) -> WriteResult:
        return self._as("write").append(path, content)

    def write_lines(self, path: PathArg, lines: Iterable[str]) -> WriteResult:
        return self._as("write").write_lines(path, lines)

    def splice(self, path: PathArg, pieces: Iterable[tuple[int, int, bytes]]) -> WriteResult:
        return self._as("write").splice(path, pieces)

    def mkdir(self, path: PathArg, *, parents: bool = True, exist_ok: bool = True) -> None:
        self._as("write").mkdir(path, parents=parents, exist_ok=exist_ok)

    def delete(self, path: PathArg, *, recursive: bool = False) -> int:
        return self._as("write").delete(path, recursive=recursive)

    def move(self, src: PathArg, dst: PathArg) -> None:
        self._as("write").move(src, dst)

    def copy(self, src: PathArg, dst: PathArg) -> None:
        self._as("write").copy(src, dst)

    def chmod(self, path: PathArg, mode: int) -> None:
        self._as("write").chmod(path, mode)

    def symlink(self, target: str, path: PathArg) -> None:
        self._as("write").symlink(target, path)

    def check_planned(self, changes: Iterable[tuple[str, int]]) -> None:
        """Raise the error with which these changes, a number of bytes for each canonical path, would be refused."""
        given = tuple(changes)
        for path, size in given:
            self._access.check("write", path)
            self._access.check_size(path, size)
        if given:
            self._access.check_changes(tuple(path for path, _ in given))

    def check_planned_transfer(self, source: str, destination: str) -> None:
        """Raise the error with which moving a file's contents from one canonical path to another would be refused."""
        self._access.check_transfer(source, destination)

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Take a snapshot, if all files may be read."""
        self._access.check_everything("read", why="take a snapshot")
        return self._inner.snapshot(tag)

    def restore(self, snapshot: FilesystemSnapshot, *, dry_run: bool = False, foreign: bool = False) -> RestoreReport:
        """Restore a snapshot, if all files may be written."""
        self._access.check_everything("read", "write", why="restore a snapshot")
        self._access.check_unbounded("restore a snapshot")
        return self._inner.restore(snapshot, dry_run=dry_run, foreign=foreign)

    def tree(self) -> FileTree:
        """Return all files as one value, if all of them may be read."""
        self._access.check_everything("read", why="read the whole tree")
        return self._inner.tree()

    def export_bytes(self) -> bytes:
        """Return all files as one archive, if all of them may be read and shown."""
        self._access.check_everything("read", why="export all files", withheld=True)
        return self._inner.export_bytes()

    def import_bytes(self, data: bytes) -> None:
        """Replace all files, if all of them may be written."""
        self._access.check_everything("write", why="import an archive")
        self._access.check_unbounded("import an archive")
        self._inner.import_bytes(data)

    @contextmanager
    def checkout(
        self,
        path: str = "/",
        *,
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
    ) -> Iterator[Checkout]:
        """Check out the files for a program, which may see all of them; check its changes at the end."""
        if not isinstance(self._inner, SupportsCheckout):
            raise ToolValidationError(f"the files of {a_type(self._inner)} cannot be checked out into a directory")
        self._access.check_command()
        # Done in a transaction, so that changes refused at the end can still be undone.
        with nullcontext() if self.session is None else self.session.transaction():
            with self.judging_own_files(), self._inner.checkout(path, read_back=read_back) as work:
                yield work
            self.judge_changes(work.changed)

    @property
    def background(self) -> BackgroundProcesses:
        """The background processes on the files, which may read and change any of them at any time."""
        if not isinstance(self._inner, SupportsProcesses):
            raise ToolValidationError(no_processes(self._inner))
        self._access.check_command()
        # The changes of processes are not checked, because they could not be undone.
        self._access.check_undivided("write", why="use processes")
        self._access.check_unbounded("use processes")
        return self._inner.background

    @contextmanager
    def judging_own_files(self) -> Iterator[None]:
        """Judge what the block changes in the session's own files, even if it used them without this guard."""
        if self.session is None:
            yield
            return
        tree = self.session[FileTree]
        before = tree.latest()
        yield
        after = tree.latest()
        if after is not before:
            # Imported here because most calls do not need it.
            from weakfs.backends.checkout import changed_paths

            nothing, point = tree_of({}), self.mount_point
            changed = changed_paths(before or nothing, after or nothing, "/")
            self.judge_changes(changed if point is None else map(point.mounted, changed))

    def judge_changes(self, changed: Iterable[str]) -> None:
        """Raise `PermissionError` if changes at these paths, which a program has made already, are not allowed."""
        paths = tuple(changed)
        for path in paths:
            self._access.check("write", path)
            if self._inner.is_file(path):
                self._access.check_size(path, self._inner.stat(path).size_bytes)
        if paths:
            self._access.check_changes(paths)

    def bind(self, session: Session) -> Filesystem:
        """Return the same files of another session, within the same limits."""
        return GuardedFilesystem(self._inner.bind(session), self._access)


def _too_large(path: PathArg, size: int, most: int) -> LimitExceeded:
    return LimitExceeded(
        f"cannot read all of {path!r}: it has {plural(size, 'byte')} and the limit is {most}; read a part of it"
    )
