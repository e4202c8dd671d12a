"""The files of a session for libraries that open files through fsspec: pandas, pyarrow, zarr, universal-pathlib.

The protocol is `weakfs`: `fsspec.open("weakfs:///data.csv", filesystem=files)`. Needs the extra `weakfs[fsspec]`.
"""

from __future__ import annotations

import io
import os
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any

from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.filesystem import FileStat, Filesystem
from weakfs.filesystem.operations.streams import StoredWhenClosed
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.integrations.missing_packages import needed
from weakfs.integrations.past_files import past_files
from weakfs.session import Session as AnySession
from weakfs.tools.permissions.guard import refuse_partial_read

with needed("fsspec"):
    from fsspec.compression import compr
    from fsspec.core import get_compression
    from fsspec.spec import AbstractFileSystem
    from fsspec.transaction import Transaction

if TYPE_CHECKING:
    from datetime import datetime


class _SessionTransaction(Transaction):  # type: ignore[misc]  # fsspec has no types
    """A transaction of the session: all changes of a failed block are rolled back, whatever method made them.

    A block inside another one is a separate transaction.
    """

    fs: Any
    files: Any

    def __init__(self, fs: Any, **options: Any) -> None:
        super().__init__(fs, **options)
        self.files = []
        # For each block, innermost last: its transaction, and how many files were opened for writing before it.
        self._begun: list[tuple[ExitStack, int]] = []

    def start(self) -> None:
        stack = ExitStack()
        session = getattr(self.fs.files, "session", None)
        if isinstance(session, AnySession):
            stack.enter_context(session.transaction(cause=session._cause_of_one_change("fsspec")))
        self._begun.append((stack, len(self.files)))
        self.fs._intrans = True

    def complete(self, commit: bool = True) -> None:
        if not self._begun:
            return
        stack, count = self._begun.pop()
        self.fs._intrans = bool(self._begun)
        opened = self.files[count:]
        if not (commit and self._begun):
            del self.files[count:]
        if commit:
            stack.close()
            return
        for stream in opened:
            # A stream that is still open must not write anything later.
            stream.discard()
        try:
            with stack:
                raise _Discarded
        except _Discarded:
            return

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.complete(commit=exc_type is None)


class _Discarded(Exception):
    """Ends a transaction so that it is rolled back."""


class _Text(StoredWhenClosed, io.TextIOWrapper):
    """Text that is written to a stream."""

    def __init__(self, stream: Any, **options: Any) -> None:
        self._stream = stream
        super().__init__(stream, **options)

    def discard(self) -> None:
        self._stream.discard()


class _Compressed(StoredWhenClosed, io.BufferedIOBase):
    """Bytes that are compressed into a stream. Most compressors leave the stream open, so it would store nothing."""

    def __init__(self, compressor: Any, stream: Any) -> None:
        self._compressor, self._stream = compressor, stream

    def discard(self) -> None:
        self._stream.discard()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        count: int = self._compressor.write(data)
        return count

    def tell(self) -> int:
        position: int = self._compressor.tell()
        return position

    def flush(self) -> None:
        if not self._compressor.closed:
            self._compressor.flush()

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._compressor.close()
        except BaseException:
            self.discard()
            raise
        finally:
            super().close()
            self._stream.close()


class WeakfsFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A weakfs filesystem as an fsspec filesystem.

    Give exactly one of `filesystem`; `session`, for its files in memory; `where`, the session file, folder or URL to
    open; or `root`, a host directory. With `at`, a record number or a snapshot's tag or id, the files are read-only and
    as they were at that moment.

    Times are `created` and `mtime` in seconds, as for fsspec's local files. Links have the type "link" and are not
    followed. A transaction is a transaction of the session.
    """

    protocol = "weakfs"
    root_marker = "/"
    cachable = False
    transaction_type = _SessionTransaction

    def __init__(
        self,
        filesystem: Filesystem | None = None,
        *,
        session: AnySession | None = None,
        where: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        root: str | os.PathLike[str] | None = None,
        at: int | str | None = None,
        **storage_options: Any,
    ) -> None:
        super().__init__(**storage_options)
        given = [one for one in (filesystem, session, where, root) if one is not None]
        if len(given) > 1:
            raise ValueError("give only one of filesystem, session, where and root")
        if where is not None:
            session = _opened(where, session_id)
        if session is not None:
            filesystem = InMemoryFilesystem(session)
        elif root is not None:
            filesystem = HostFilesystem(root)
        files: Filesystem = InMemoryFilesystem() if filesystem is None else filesystem
        # The paths of fsspec begin at the root, so none of them is a path on the host.
        self.files = by_canonical_paths(files if at is None else past_files(files, at))

    def start_transaction(self) -> Any:
        """Begin a transaction, which `end_transaction` commits and `transaction.complete(commit=False)` rolls back."""
        self.transaction.start()
        return self.transaction

    def end_transaction(self) -> None:
        """Commit the transaction that was begun last."""
        self.transaction.complete()

    @property
    def fsid(self) -> str:
        """The id of the filesystem."""
        return f"weakfs:{getattr(self.files, 'filesystem_id', id(self.files))}"

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = os.fspath(path).removeprefix("weakfs://").removeprefix("weakfs:")
        return "/" + text.strip("/")

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the status of an entry as fsspec's dictionary."""
        return _as_info(self.files.stat(self._strip_protocol(path)))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """List a directory, or the one file that `path` names."""
        here = self.files.stat(self._strip_protocol(path))
        names = [entry.path for entry in self.files.list(here.path)] if here.is_directory else [here.path]
        return [_as_info(self.files.stat(name)) for name in names] if detail else names

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Create a directory; raise `FileExistsError` if it exists."""
        self.files.mkdir(self._strip_protocol(path), parents=create_parents, exist_ok=False)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Create a directory with its parents."""
        self.files.mkdir(self._strip_protocol(path), parents=True, exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        """Delete an empty directory."""
        path = self._strip_protocol(path)
        if not self.files.is_directory(path):
            self.files.list(path)
        self.files.delete(path)

    def rm_file(self, path: str) -> None:
        """Delete a file or a link."""
        self.files.delete(self._strip_protocol(path))

    def rm(self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None) -> None:
        """Delete entries; with `recursive`, delete directories with everything in them."""
        for one in path if isinstance(path, list) else [path]:
            if maxdepth is not None or "*" in one:
                super().rm(one, recursive=recursive, maxdepth=maxdepth)
            else:
                self.files.delete(self._strip_protocol(one), recursive=recursive)

    def _rm(self, path: str) -> None:
        self.files.delete(self._strip_protocol(path))

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Copy a file; copying a directory creates an empty one."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.files.is_directory(source):
            self.files.mkdir(target)
        else:
            self.files.copy(source, target)

    def mv(
        self,
        path1: str | list[str],
        path2: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """Move a file or a directory, into `path2` if that is a directory; several are copied and then deleted."""
        if isinstance(path1, list) or isinstance(path2, list) or maxdepth is not None or "*" in path1:
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)
            return
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if source != target and (str(path2).endswith("/") or self.files.is_directory(target)):
            target = f"{target.rstrip('/')}/{source.rpartition('/')[2]}"
        if source != target:
            self.files.move(source, target)

    def mv_file(self, path1: str, path2: str, **_: Any) -> None:
        """Move a file."""
        self.files.move(self._strip_protocol(path1), self._strip_protocol(path2))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Return the bytes of a file, or those from `start` to `end`, which count from the end if negative."""
        name = self._strip_protocol(path)
        first, count = 0, None
        if start is not None or end is not None:
            first, stop, _step = slice(start, end).indices(self.files.stat(name).size_bytes)
            count = max(stop - first, 0)
        found = self.files.read_bytes(name, offset=first, limit=count)
        if found.truncated and (count is None or len(found.content) < count):
            refuse_partial_read(found.path, found.size_bytes, len(found.content))
        return found.content

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Write the bytes of a file."""
        self.files.write_bytes(
            self._strip_protocol(path), bytes(value), mode="create" if mode == "create" else "overwrite"
        )

    def created(self, path: str) -> datetime:
        """Return when an entry was created."""
        return self.files.stat(self._strip_protocol(path)).created_at

    def modified(self, path: str) -> datetime:
        """Return when an entry was modified."""
        return self.files.stat(self._strip_protocol(path)).modified_at

    def chmod(self, path: str, mode: int, **_: Any) -> None:
        """Set permission bits."""
        self.files.chmod(self._strip_protocol(path), mode)

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # passed on
        """Open a file as a stream, as fsspec does; text that is written in a block that raises is dropped too."""
        if "b" not in mode:
            text = {name: options.pop(name) for name in ("encoding", "errors", "newline") if name in options}
            stream = self.open(path, mode.replace("t", "") + "b", **options)
            return io.TextIOWrapper(stream, **text) if mode[0] == "r" else _Text(stream, **text)
        compression = options.pop("compression", None)
        if mode[0] == "r":
            return super().open(path, mode, compression=compression, **options)
        stream = super().open(path, mode, **options)
        kind = get_compression(self._strip_protocol(path), compression)
        return stream if kind is None else _Compressed(compr[kind](stream, mode=mode[0]), stream)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:  # pyright: ignore[reportIncompatibleMethodOverride]  # any file object will do
        if mode not in ("rb", "wb", "xb", "ab"):
            raise ValueError(f"cannot open {path!r} in mode {mode!r}: streams read or write; use rb, wb, xb or ab")
        name = self._strip_protocol(path)
        found: IO[bytes] = self.files.open(name, mode)  # type: ignore[call-overload]  # checked above
        return found


def _opened(where: str | os.PathLike[str], session_id: str | None) -> AnySession:
    import weakfs

    if os.path.isfile(where) and not str(where).endswith((".db", ".sqlite")):
        return weakfs.Session.load(where)
    return weakfs.Session.open(os.fspath(where), session_id)


def _as_info(stat: FileStat) -> dict[str, Any]:
    kind = "directory" if stat.is_directory else "link" if stat.is_symlink else "file"
    info: dict[str, Any] = {
        "name": stat.path,
        "size": 0 if stat.is_directory else stat.size_bytes,
        "type": kind,
        "created": stat.created_ns / 1e9,
        "mtime": stat.modified_ns / 1e9,
        "mode": stat.mode,
        "islink": stat.is_symlink,
    }
    if stat.target is not None:
        info["destination"] = stat.target
    return info
