"""The LOG slices of tools, kept across rollbacks: calls, the contents that answers refer to, and files seen."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TypeVar

from attrs import field, frozen

from weakfs.session import Session, Slice, append_all, event
from weakfs.session.slices.slice import Declaration


@event("tools/called")
@frozen
class ToolCall:
    """One call that was made and what came of it. The event is the slice's value.

    `arguments` and `receipt` are JSON: text up to 1 KiB, else UTF-8 bytes, which a session file holds once for all
    that are equal. Times are readings of the session's clock. `first_seq` and `last_seq` are the numbers that
    the records which the call made have in its session, its rollback among them; `None` if it made none.
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
        return json.loads(self.arguments)

    def read_receipt(self) -> object:
        """Return the receipt as plain JSON values; bytes in it are `{"base64": "..."}`."""
        return json.loads(self.receipt)


# The slice has both names: `session[ToolCalls].all()` reads as what it returns.
ToolCalls = ToolCall


@event("tools/blob_kept")
@frozen
class KeptBlob:
    """A content that an answer refers to, by its digest in hexadecimal. The event is the slice's value.

    `origins` are the paths of the files that it comes from and that answers may not show.
    """

    digest: str
    content: bytes = field(repr=False)
    origins: tuple[str, ...] = ()


@event("tools/file_seen")
@frozen
class FileSeen:
    """What a caller last saw of a file, after record `seq`. The event is the slice's value.

    A LOG slice: a rollback changes files, and not what a caller has read, which is then stale. `version` is the digest
    of the contents in hexadecimal, size and modification time of a very large file, or `None` if there was none.
    """

    caller: str
    path: str
    version: str | None
    seq: int
    filesystem: str


EVENTS = (ToolCall, KeptBlob, FileSeen)
SLICES = (
    Declaration(ToolCall, kind="log", reducers={ToolCall: append_all}),
    Declaration(KeptBlob, kind="log", reducers={KeptBlob: append_all}),
    Declaration(FileSeen, kind="log", reducers={FileSeen: append_all}),
)

T = TypeVar("T")


def install(session: Session) -> Slice[ToolCall]:
    """Return the accessor of the calls; installs the slice if the session lacks it."""
    return _installed(session, ToolCall)


def install_blobs(session: Session) -> Slice[KeptBlob]:
    """Return the accessor of the contents that are kept; installs the slice if the session lacks it."""
    return _installed(session, KeptBlob)


def install_seen(session: Session) -> Slice[FileSeen]:
    """Return the accessor of what callers saw; installs the slice if the session lacks it."""
    return _installed(session, FileSeen)


def _installed(session: Session, type_: type[T]) -> Slice[T]:
    values = session.install(type_, kind="log")
    with suppress(ValueError):  # raised where the reducer is there already
        values.register(type_, append_all)
    return values
