"""Blame: which record put in each line of a file. A session that knows files says so; see `weakfs.Session`."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from weakfs.session.errors import SessionError
from weakfs.session.external import Attachable, External
from weakfs.session.undo.undo import Undo
from weakfs.session.views import Snapshot


@frozen
class BlameLine:
    """One line of a file, without its line end, and the record that put it in. Lines are numbered from 1.

    `call_id` is the cause of the record, which is the id of the call that made it; `tool` and `caller` are those of the
    call, if it is recorded. `at` is the time of the record in nanoseconds. Bytes that are not UTF-8 are shown as
    U+FFFD.

    `kind` is "written", or "found" for lines that another program put in before `record` found them. Lines of kind
    "boundary" are older than all records that are kept: `record` is the last of those that were dropped.
    """

    number: int
    text: str
    record: int
    call_id: str | None
    tool: str | None
    caller: str | None
    at: int | None
    kind: Literal["written", "found", "boundary"] = "written"


class Blame(Undo):
    """The part of a session that says where the lines of its files come from."""

    __slots__ = ()

    def blame(
        self,
        path: str,
        *,
        at: int | str | Snapshot | None = None,
        filesystem: str | External | Attachable | None = None,
    ) -> tuple[BlameLine, ...]:
        """Return the lines of a file, each with the record that put it in and the call that made the record.

        Lines are followed through edits, moves, copies, merges and rollbacks. Work that was taken back is not blamed,
        and lines that come back have their old blame. `at` is a record number, a snapshot, its id or its tag.
        `filesystem` is an external filesystem or its id; the default is the only one, if the session has no files of
        its own.

        The first time costs O(records) and the edits of the file, later only what is new. Raises `FileNotFoundError`,
        `IsADirectoryError`, `ValueError` for a binary file or a link, and `MissingBlob`.
        """
        raise SessionError(
            f"cannot blame {path!r}: session {self.session_id!r} knows no types of files; use weakfs.Session"
        )
