"""The LOG slices of tools, which rollbacks keep: calls, contents that answers refer to, and versions of files seen."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.session import Session, Slice, append_all, event, reducer
from weakfs.session.slices.slice import Declaration


@event("tools/called", numbers=("first_seq", "last_seq"))
@fast_init
@frozen
class ToolCall:
    """One call and its outcome. The event is the slice's value.

    `arguments` and `receipt` are JSON: text up to 1 KiB, otherwise UTF-8 bytes, and a session file stores equal bytes
    once. Times are nanoseconds of the session's clock. `first_seq` and `last_seq` are the numbers, in its session, of
    the first and the last record that the call made, including its rollback; `None` if it made none.
    """

    call_id: str
    tool: str
    arguments: str | bytes = field(repr=False)
    receipt: str | bytes = field(repr=False)
    status: str
    error_code: str | None
    summary: str
    caller: str | None
    started_at: int
    ended_at: int
    first_seq: int | None
    last_seq: int | None

    def read_arguments(self) -> object:
        """Return the arguments as they were sent, as plain JSON values."""
        from json import loads  # imported here because a process that calls no tools does not need it

        return loads(self.arguments)

    def read_receipt(self) -> object:
        """Return the receipt as plain JSON values; bytes in it are `{"base64": "..."}`."""
        from json import loads

        return loads(self.receipt)


# A second name for the slice, because `session[ToolCalls].all()` says what it returns.
ToolCalls = ToolCall


@event("tools/blob_kept")
@frozen
class KeptBlob:
    """A blob that an answer refers to, by its digest in hexadecimal. The event is the slice's value.

    `origins` are the paths of the files that it comes from and that answers may not show. If there are any, `digest` is
    the digest of an id, not of the contents.
    """

    digest: str
    content: bytes = field(repr=False)
    origins: tuple[str, ...] = ()


@event("tools/file_seen", numbers=("seq",))
@fast_init
@frozen
class FileSeen:
    """A caller saw a version of a file, after record `seq`.

    `version` is the digest of the contents in hexadecimal, the size and modification time of a very large file, or
    `None` if there was no file.
    """

    caller: str
    path: str
    version: str | None
    seq: int
    filesystem: str


# What a caller last saw of a file: the version, and the number of the record after which it was seen. See `FileSeen`.
Sight = tuple[str | None, int]
# What one caller saw, by path, spread over plain dicts: a change copies only one of them, and the garbage collector
# tracks none.
Sights = tuple[dict[str, Sight], ...]
WIDTH = 32
NO_SIGHTS: Sights = ({},) * WIDTH


@event("tools/files_seen")
@frozen
class FilesSeen:
    """Which version of each file each caller last saw: one entry for each caller and path.

    It is a LOG slice, because a rollback changes files but not what a caller has read, which is then stale.
    """

    # By caller: see `_key`.
    sights: dict[str, Sights] = field(factory=dict[str, Sights])

    def sight(self, filesystem: str, caller: str, path: str) -> Sight | None:
        """Return what a caller last saw of a file, or `None` if it never saw it."""
        return self.sights.get(_key(filesystem, caller), NO_SIGHTS)[_place(path)].get(path)

    def paths(self, filesystem: str, caller: str) -> list[str]:
        """List the files of a filesystem that a caller saw."""
        return [path for part in self.sights.get(_key(filesystem, caller), NO_SIGHTS) for path in part]

    @reducer(on=FileSeen)
    def on_file_seen(self, event: FileSeen) -> FilesSeen:
        """Replace what the caller last saw of the file. O(callers + files / 32)."""
        key, place = _key(event.filesystem, event.caller), _place(event.path)
        parts = [*self.sights.get(key, NO_SIGHTS)]
        parts[place] = {**parts[place], event.path: (event.version, event.seq)}
        return FilesSeen({**self.sights, key: tuple(parts)})


def _key(filesystem: str, caller: str) -> str:
    return f"{filesystem}\n{caller}"


def _place(path: str) -> int:
    # A hash that is the same in every process. Imported here because most processes record no versions.
    from zlib import crc32

    return crc32(path.encode("utf-8", "surrogatepass")) % WIDTH


def _newest_seen(values: Iterable[FileSeen]) -> FilesSeen:
    """Convert the list of all sightings that older session files hold."""
    seen = FilesSeen()
    for value in values:
        seen = seen.on_file_seen(value)
    return seen


EVENTS = (ToolCall, KeptBlob, FileSeen)
SLICES = (
    Declaration(ToolCall, kind="log", reducers={ToolCall: append_all}, holds_calls=True),
    Declaration(KeptBlob, kind="log", reducers={KeptBlob: append_all}),
    Declaration(FilesSeen, kind="log", is_safe=True, succeeds={FileSeen: _newest_seen}),
)

T = TypeVar("T")


def install(session: Session) -> Slice[ToolCall]:
    """Return the accessor of the calls; installs the slice if the session lacks it."""
    return _installed(session, ToolCall)


def install_blobs(session: Session) -> Slice[KeptBlob]:
    """Return the accessor of the stored contents; installs the slice if the session lacks it."""
    return _installed(session, KeptBlob)


def install_seen(session: Session) -> Slice[FilesSeen]:
    """Return the accessor of what callers saw; installs the slice if the session lacks it."""
    return session.install(FilesSeen, kind="log")


def _installed(session: Session, type_: type[T]) -> Slice[T]:
    values = session.install(type_, kind="log")
    with suppress(ValueError):  # raised if the reducer is installed already
        values.register(type_, append_all)
    return values
