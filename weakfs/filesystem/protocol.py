"""The filesystem protocol, which every backend implements and every tool uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from errno import EFBIG
from typing import IO, Literal, Protocol, overload, runtime_checkable

from weakfs.errors import fault
from weakfs.filesystem.limits import MIB, Limits
from weakfs.filesystem.operations.read import PathArg
from weakfs.filesystem.operations.streams import BytesMode, TextMode
from weakfs.filesystem.results import (
    FileEntry,
    FileStat,
    FilesystemSnapshot,
    GlobResult,
    GrepResult,
    ReadBytesResult,
    ReadResult,
    RestoreReport,
    Statistics,
    WriteMode,
    WriteResult,
)
from weakfs.reducers import FileTree
from weakfs.session import Session

# A tool or a patch holds at most this much of a file in memory, in bytes. `Limits` limits what they write, but files on
# a host may be larger.
MOST_READ = 256 * MIB


@runtime_checkable
class Filesystem(Protocol):
    """Files and directories below one root.

    Every backend returns the same result for the same call; `weakfs.testing.FilesystemConformance` checks it. The
    methods are documented in `BaseFilesystem`.
    """

    @property
    def root(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def limits(self) -> Limits: ...

    def read(
        self, path: PathArg, *, offset: int = 0, limit: int | None = None, encoding: str = "utf-8"
    ) -> ReadResult: ...
    def read_bytes(self, path: PathArg, *, offset: int = 0, limit: int | None = None) -> ReadBytesResult: ...
    def read_lines(self, path: PathArg) -> tuple[str, ...]: ...
    @overload
    def open(
        self, path: PathArg, mode: TextMode = "r", *, encoding: str = "utf-8", create_parents: bool = True
    ) -> IO[str]: ...
    @overload
    def open(
        self, path: PathArg, mode: BytesMode, *, encoding: str = "utf-8", create_parents: bool = True
    ) -> IO[bytes]: ...
    def open(
        self, path: PathArg, mode: TextMode | BytesMode = "r", *, encoding: str = "utf-8", create_parents: bool = True
    ) -> IO[str] | IO[bytes]: ...
    def exists(self, path: PathArg) -> bool: ...
    def is_file(self, path: PathArg) -> bool: ...
    def is_directory(self, path: PathArg) -> bool: ...
    def stat(self, path: PathArg) -> FileStat: ...
    def readlink(self, path: PathArg) -> str: ...
    def list(self, path: PathArg = "/") -> tuple[FileEntry, ...]: ...
    def walk(self, path: PathArg = "/") -> Iterator[FileEntry]: ...
    def glob(
        self,
        pattern: str,
        *,
        path: PathArg = "/",
        hidden: bool = False,
        sort: Literal["mtime", "path"] = "mtime",
        max_results: int = 1000,
    ) -> GlobResult: ...
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
    ) -> GrepResult: ...

    def write(
        self, path: PathArg, content: str, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult: ...
    def write_bytes(
        self, path: PathArg, content: bytes, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult: ...
    def append(self, path: PathArg, content: str) -> WriteResult: ...
    def write_lines(self, path: PathArg, lines: Iterable[str]) -> WriteResult: ...
    def splice(self, path: PathArg, pieces: Iterable[tuple[int, int, bytes]]) -> WriteResult: ...
    def mkdir(self, path: PathArg, *, parents: bool = True, exist_ok: bool = True) -> None: ...
    def delete(self, path: PathArg, *, recursive: bool = False) -> int: ...
    def move(self, src: PathArg, dst: PathArg) -> None: ...
    def copy(self, src: PathArg, dst: PathArg) -> None: ...
    def chmod(self, path: PathArg, mode: int) -> None: ...
    def symlink(self, target: str, path: PathArg) -> None: ...

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot: ...
    def restore(
        self, snapshot: FilesystemSnapshot, *, dry_run: bool = False, foreign: bool = False
    ) -> RestoreReport: ...
    def statistics(self) -> Statistics: ...
    def tree(self) -> FileTree: ...
    def export_bytes(self) -> bytes: ...
    def import_bytes(self, data: bytes) -> None: ...
    def bind(self, session: Session) -> Filesystem: ...


def check_readable(fs: Filesystem, path: str, *, offset: int = 0, most: int | None = None) -> None:
    """Raise what reading a file from `offset` on would raise, including the error of `check_size`."""
    size = fs.read_bytes(path, limit=0).size_bytes - offset
    check_size(path, size, most)


def check_size(path: str, size: int, most: int | None = None) -> None:
    """Raise `OSError` (EFBIG) if reading `size` bytes, or at most `most`, would exceed `MOST_READ`."""
    if (size if most is None else min(size, most)) > MOST_READ:
        raise fault(
            OSError,
            EFBIG,
            f"cannot read all of {path!r}: that is {size} bytes, but at most {MOST_READ} are read at once; read parts "
            f"of it with an offset and a number of bytes, or search it",
        )
