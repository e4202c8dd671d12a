"""A scripted filesystem for tests: it records every call and returns the configured answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from io import IOBase
from threading import Lock
from types import MappingProxyType, NoneType
from typing import IO, Literal, TypeVar, cast, overload

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.errors import WeakfsError
from weakfs.filesystem import (
    FileEntry,
    FileStat,
    Filesystem,
    FilesystemSnapshot,
    GlobResult,
    GrepResult,
    Limits,
    ReadBytesResult,
    ReadResult,
    RestoreReport,
    Statistics,
    WriteMode,
    WriteResult,
    normalize,
)
from weakfs.filesystem.operations.read import PathArg
from weakfs.filesystem.operations.streams import BytesMode, TextMode
from weakfs.reducers import FileTree
from weakfs.session import Session

T = TypeVar("T")


class UnansweredCallError(WeakfsError, LookupError):
    """Raised for a call to which the script has no answer.

    It is neither an `OSError` nor a `ValueError`: a tool must not turn a gap in a script into a receipt.
    """


def _frozen(arguments: Mapping[str, object]) -> Mapping[str, object]:
    return MappingProxyType(dict(arguments))


@frozen
class Call:
    """One call: the method and all its arguments by name, including defaults."""

    name: str
    arguments: Mapping[str, object] = field(converter=_frozen, hash=False)

    @property
    def path(self) -> str | None:
        """The path of the call in canonical form; `src` for a move or copy; `None` if it has none.

        A path that has no canonical form (it climbs above the root, or contains a NUL) is returned unchanged.
        """
        path = self.arguments.get("path", self.arguments.get("src"))
        return None if path is None else _canonical(cast(PathArg, path))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


@define(eq=False)
class _Answer:
    result: object
    path: str | None
    left: int | None


class MockFilesystem:
    """A filesystem that holds no files.

    `answer` adds to the script; `calls` and `calls_to` return the recorded calls. A call that the script does not
    answer raises `UnansweredCallError`; only `bind` has a default answer, the filesystem itself. Nothing is checked
    or normalized: `read_only` and `limits` have the given values but refuse nothing.
    """

    def __init__(self, *, root: str = "/", read_only: bool = False, limits: Limits | None = None) -> None:
        self._root = root
        self._read_only = read_only
        self._limits = Limits() if limits is None else limits
        self._calls: list[Call] = []
        self._answers: dict[str, list[_Answer]] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<MockFilesystem after {len(self._calls)} calls>"

    # The script

    def answer(self, name: str, result: object, *, path: PathArg | None = None, times: int | None = None) -> None:
        """Answer calls of the method `name` with `result`; an exception instance or class is raised.

        With `path`, only calls with that path are answered; with `times`, only that many. Answers with a path take
        precedence over those without. Otherwise the oldest answer that is not used up comes first, and one without
        `times` replaces an earlier one without `times`.

        Raises `ValueError` if `name` is not a method of a filesystem, or `times` is below 1. The call raises
        `TypeError` if `result` is not of the method's return type; `list`, `walk` and `read_lines` need tuples.
        """
        if name not in _METHODS:
            raise ValueError(
                f"cannot answer {name!r}: a filesystem has no such method; use one of {', '.join(_METHODS)}"
            )
        if times is not None and times < 1:
            raise ValueError(f"cannot answer {name!r} {times} times; use a number of at least 1, or None for always")
        wanted = None if path is None else _canonical(path)
        with self._lock:
            answers = self._answers.setdefault(name, [])
            if times is None:
                answers[:] = [old for old in answers if old.path != wanted or old.left is not None]
            answers.append(_Answer(result, wanted, times))

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls so far, in order, whether answered or not."""
        return tuple(self._calls)

    def calls_to(self, name: str) -> tuple[Call, ...]:
        """Return the calls of one method, in order. Raises `ValueError` if there is no such method."""
        if name not in _METHODS:
            raise ValueError(f"no calls of {name!r}: a filesystem has no such method; use one of {', '.join(_METHODS)}")
        return tuple(call for call in self._calls if call.name == name)

    def _reply(self, kind: type[T], name: str, **arguments: object) -> T:
        call = Call(name, arguments)
        with self._lock:
            self._calls.append(call)
            result = self._next_answer(call).result
        if isinstance(result, BaseException) or (isinstance(result, type) and issubclass(result, BaseException)):
            raise result
        if not isinstance(result, kind):
            raise TypeError(
                f"cannot answer {call} with {result!r}: the method returns {kind.__name__}; "
                f"correct the answer to {name!r}"
            )
        return result

    def _next_answer(self, call: Call) -> _Answer:
        path = call.path
        answers = self._answers.get(call.name, [])
        matching = [answer for answer in answers if answer.path is not None and answer.path == path]
        matching += [answer for answer in answers if answer.path is None]
        if not matching:
            about = "" if path is None else f", path={path!r}"
            raise UnansweredCallError(
                f"no answer to {call}: the script has none left for it; "
                f"add one with answer({call.name!r}, result{about})"
            )
        chosen = matching[0]
        if chosen.left is not None:
            chosen.left -= 1
            if not chosen.left:
                answers.remove(chosen)
        return chosen

    # The filesystem

    @property
    def root(self) -> str:
        """The root given to the constructor."""
        return self._root

    @property
    def read_only(self) -> bool:
        """The value given to the constructor; nothing is refused because of it."""
        return self._read_only

    @property
    def limits(self) -> Limits:
        """The value given to the constructor; nothing is refused because of it."""
        return self._limits

    def read(self, path: PathArg, *, offset: int = 0, limit: int | None = None, encoding: str = "utf-8") -> ReadResult:
        return self._reply(ReadResult, "read", path=path, offset=offset, limit=limit, encoding=encoding)

    def read_bytes(self, path: PathArg, *, offset: int = 0, limit: int | None = None) -> ReadBytesResult:
        return self._reply(ReadBytesResult, "read_bytes", path=path, offset=offset, limit=limit)

    def read_lines(self, path: PathArg) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self._reply(tuple, "read_lines", path=path))

    @overload
    def open(
        self,
        path: PathArg,
        mode: Literal["r", "w", "x", "a"] = "r",
        *,
        encoding: str = "utf-8",
        create_parents: bool = True,
    ) -> IO[str]: ...
    @overload
    def open(
        self,
        path: PathArg,
        mode: Literal["rb", "wb", "xb", "ab"],
        *,
        encoding: str = "utf-8",
        create_parents: bool = True,
    ) -> IO[bytes]: ...
    def open(
        self,
        path: PathArg,
        mode: TextMode | BytesMode = "r",
        *,
        encoding: str = "utf-8",
        create_parents: bool = True,
    ) -> IO[str] | IO[bytes]:
        stream = self._reply(IOBase, "open", path=path, mode=mode, encoding=encoding, create_parents=create_parents)
        return cast("IO[str] | IO[bytes]", stream)

    def exists(self, path: PathArg) -> bool:
        return self._reply(bool, "exists", path=path)

    def is_file(self, path: PathArg) -> bool:
        return self._reply(bool, "is_file", path=path)

    def is_directory(self, path: PathArg) -> bool:
        return self._reply(bool, "is_directory", path=path)

    def stat(self, path: PathArg) -> FileStat:
        return self._reply(FileStat, "stat", path=path)

    def readlink(self, path: PathArg) -> str:
        return self._reply(str, "readlink", path=path)

    def list(self, path: PathArg = "/") -> tuple[FileEntry, ...]:
        return cast("tuple[FileEntry, ...]", self._reply(tuple, "list", path=path))

    def walk(self, path: PathArg = "/") -> Iterator[FileEntry]:
        return iter(cast("tuple[FileEntry, ...]", self._reply(tuple, "walk", path=path)))

    def glob(
        self,
        pattern: str,
        *,
        path: PathArg = "/",
        hidden: bool = False,
        sort: Literal["mtime", "path"] = "mtime",
        max_results: int = 1000,
    ) -> GlobResult:
        return self._reply(
            GlobResult, "glob", pattern=pattern, path=path, hidden=hidden, sort=sort, max_results=max_results
        )

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
        return self._reply(
            GrepResult,
            "grep",
            pattern=pattern,
            path=path,
            glob=glob,
            hidden=hidden,
            case_insensitive=case_insensitive,
            max_matches=max_matches,
            max_per_file=max_per_file,
            multiline=multiline,
        )

    def write(
        self, path: PathArg, content: str, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        return self._reply(WriteResult, "write", path=path, content=content, mode=mode, create_parents=create_parents)

    def write_bytes(
        self, path: PathArg, content: bytes, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        return self._reply(
            WriteResult, "write_bytes", path=path, content=content, mode=mode, create_parents=create_parents
        )

    def append(self, path: PathArg, content: str) -> WriteResult:
        return self._reply(WriteResult, "append", path=path, content=content)

    def write_lines(self, path: PathArg, lines: Iterable[str]) -> WriteResult:
        return self._reply(WriteResult, "write_lines", path=path, lines=tuple(lines))

    def splice(self, path: PathArg, pieces: Iterable[tuple[int, int, bytes]]) -> WriteResult:
        return self._reply(WriteResult, "splice", path=path, pieces=tuple(pieces))

    def mkdir(self, path: PathArg, *, parents: bool = True, exist_ok: bool = True) -> None:
        self._reply(NoneType, "mkdir", path=path, parents=parents, exist_ok=exist_ok)

    def delete(self, path: PathArg, *, recursive: bool = False) -> int:
        return self._reply(int, "delete", path=path, recursive=recursive)

    def move(self, src: PathArg, dst: PathArg) -> None:
        self._reply(NoneType, "move", src=src, dst=dst)

    def copy(self, src: PathArg, dst: PathArg) -> None:
        self._reply(NoneType, "copy", src=src, dst=dst)

    def chmod(self, path: PathArg, mode: int) -> None:
        self._reply(NoneType, "chmod", path=path, mode=mode)

    def symlink(self, target: str, path: PathArg) -> None:
        self._reply(NoneType, "symlink", target=target, path=path)

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        return self._reply(FilesystemSnapshot, "snapshot", tag=tag)

    def restore(self, snapshot: FilesystemSnapshot, *, dry_run: bool = False, foreign: bool = False) -> RestoreReport:
        return self._reply(RestoreReport, "restore", snapshot=snapshot, dry_run=dry_run, foreign=foreign)

    def statistics(self) -> Statistics:
        return self._reply(Statistics, "statistics")

    def tree(self) -> FileTree:
        return self._reply(FileTree, "tree")

    def export_bytes(self) -> bytes:
        return self._reply(bytes, "export_bytes")

    def import_bytes(self, data: bytes) -> None:
        self._reply(NoneType, "import_bytes", data=data)

    def bind(self, session: Session) -> Filesystem:
        if "bind" in self._answers:
            return cast(Filesystem, self._reply(object, "bind", session=session))
        with self._lock:
            self._calls.append(Call("bind", {"session": session}))
        return self


_METHODS = tuple(name for name, member in vars(Filesystem).items() if not name.startswith("_") and callable(member))


def _canonical(path: PathArg) -> str:
    try:
        return normalize(path)
    except (OSError, ValueError):
        return os.fspath(path)
