"""The errors of a session, grouped by their cause: the caller, concurrent work, a file, or a disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from weakfs.errors import WeakfsError

if TYPE_CHECKING:
    from weakfs.session.conflicts.conflict_types import ConflictEntry


class SessionError(WeakfsError):
    """Base class of the errors that a session raises itself."""


class SessionClosed(SessionError, RuntimeError):
    """A change was attempted in a closed session, such as the fork of a cancelled call."""


class TransactionCancelled(SessionClosed):
    """The transaction that this code runs in was cancelled from outside and has already been rolled back."""


class UnknownType(SessionError, LookupError):
    """A type or tag is not in the registry; the message says how to add it."""


class UnknownSnapshot(SessionError, LookupError):
    """There is no such snapshot or record; it may have been dropped or compacted away."""


class MergeConflict(SessionError):
    """Both sides changed the same thing differently; nothing was changed.

    `conflicts` has an entry for each conflict. `paths` names them: the paths of files, and the names or tags of
    other slices.
    """

    def __init__(self, conflicts: tuple[ConflictEntry, ...]) -> None:
        # Most programs never see a conflict.
        from weakfs.session.conflicts.conflict_message import described

        self.conflicts = conflicts
        self.paths = tuple(dict.fromkeys(entry.path for entry in conflicts))
        super().__init__(described(conflicts))

    def described(self, *, ours: str, theirs: str, may_show: Callable[[str], bool]) -> str:
        """Return the message with other names for the sides. It shows no part of files that `may_show` rejects."""
        from weakfs.session.conflicts.conflict_message import described

        return described(self.conflicts, ours=ours, theirs=theirs, may_show=may_show)


class SessionConflict(SessionError):
    """Another process changed the session in its storage first; nothing was changed.

    `expected` is the number of the newest frame that this session has read, and `actual` is the number of the newest
    frame in the storage.
    """

    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        self.session_id, self.expected, self.actual = session_id, expected, actual
        super().__init__(
            f"cannot change session {session_id!r}: it has read up to frame {expected}, but its storage is at frame "
            f"{actual}; call session.refresh() and try again, or open it with on_conflict='merge'"
        )


class RecordsDropped(SessionError):
    """Old records or events are not in storage any more: a compaction dropped them."""


class RollbackIncomplete(SessionError):
    """An external filesystem could not be restored; writes are refused until `session.repair()`.

    `states` maps the id of each attached filesystem to what happened to it.
    """

    def __init__(self, states: Mapping[str, str]) -> None:
        self.states = dict(states)
        described = "; ".join(f"{name}: {state}" for name, state in self.states.items())
        super().__init__(f"the rollback is incomplete ({described}); remove the cause, then call session.repair()")


class SessionFileError(SessionError, ValueError):
    """A session file cannot be read back; `where` is a path into its JSON, such as `$.slices[2].items[0].path`."""

    def __init__(self, message: str, *, where: str = "$") -> None:
        self.where = where
        self.reason = message
        super().__init__(f"{where}: {message}")


class UnsupportedVersion(SessionFileError):
    """The file was written in a format version that this library cannot read."""


class UnknownTag(SessionFileError, UnknownType):
    """A session file names a tag that is not in the registry; the message says how to add it."""


class MissingBlob(SessionFileError):
    """A blob that something refers to is missing or has changed.

    `digest` identifies it where it is known; `where` is then the place where the blob should be.
    """

    def __init__(self, message: str, *, where: str = "$", digest: bytes | None = None) -> None:
        super().__init__(message, where=where)
        self.digest = digest
