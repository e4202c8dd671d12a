"""Files as streams: readers over a file's bytes, and writers that take effect when they are closed."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import TracebackType
from typing import IO, TYPE_CHECKING, Literal, cast, get_args, overload

from weakfs.filesystem.operations.read import PathArg, check_encoding
from weakfs.filesystem.operations.write import Writing
from weakfs.filesystem.results import WriteMode

TextMode = Literal["r", "w", "x", "a"]
BytesMode = Literal["rb", "wb", "xb", "ab"]
MODES = (*get_args(TextMode), *get_args(BytesMode))

_WRITE_MODES: dict[str, WriteMode] = {"w": "overwrite", "x": "create", "a": "append"}


class StoredWhenClosed:
    """A stream to a file: what was written is stored when it is closed without an error, and dropped otherwise."""

    def discard(self) -> None:
        """Drop what was written."""
        raise NotImplementedError

    if TYPE_CHECKING:  # The stream's own class has it.

        def close(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        # A stream that is garbage-collected unclosed stores nothing.
        self.discard()


class _Pending(StoredWhenClosed, io.BytesIO):
    """Bytes to be written to a file."""

    def __init__(self, store: Callable[[bytes], object]) -> None:
        super().__init__()
        self._store: Callable[[bytes], object] | None = store

    def discard(self) -> None:
        """Drop what was written."""
        self._store = None

    def close(self) -> None:
        if not self.closed:
            store, self._store = self._store, None
            data = self.getvalue()
            super().close()
            if store is not None:
                store(data)


class _PendingText(StoredWhenClosed, io.TextIOWrapper):
    def __init__(self, raw: _Pending, encoding: str) -> None:
        self._raw = raw
        super().__init__(raw, encoding=encoding, newline="\n", write_through=True)

    def discard(self) -> None:
        self._raw.discard()


class Streaming(Writing):
    """The method that opens streams."""

    __slots__ = ()

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
        """Open a file as a stream. Lines of text end at `\\n` only and nothing is translated.

        A written stream takes effect when it is closed; if its `with` block raises, or the stream is garbage-collected
        unclosed, what was written is dropped. "x" is like "w", but the file must not exist on opening or on closing.
        Missing parents are created, unless `create_parents` is false (`FileNotFoundError`). Errors that can be
        detected on opening are raised here, others by `close`.
        """
        if mode not in MODES:
            raise ValueError(f"cannot open {path!r} with mode {mode!r}; use one of {', '.join(MODES)}")
        binary = mode.endswith("b")
        check_encoding(path, encoding)
        if mode[0] == "r":
            data = self.content_stream(*self._file(path, "read"))
            return data if binary else io.TextIOWrapper(data, encoding=encoding, newline="\n")
        write_mode = _WRITE_MODES[mode[0]]
        self._writable_place(path, write_mode, create_parents)

        def store(data: bytes) -> None:
            self._warn_of(self.write_bytes(path, data, mode=write_mode, create_parents=create_parents).notes)

        raw = _Pending(store)
        return raw if binary else cast(IO[str], _PendingText(raw, encoding))
