"""What a session raises, divided by who is to blame: the caller, another line of work, a file, or a disk."""

from __future__ import annotations

from collections.abc import Mapping

from weakfs.errors import WeakfsError


class SessionError(WeakfsError):
    """Any error that a session raises by itself."""


class SessionClosed(SessionError, RuntimeError):
    """A closed session, such as the fork of a cancelled call, was asked to change."""


class TransactionCancelled(SessionClosed):
    """The transaction that this code runs in was cancelled from outside; what it did is undone already."""


class UnknownType(SessionError, LookupError):
    """A type or a tag is not in the registry; the message says how to put it there."""


class UnknownSnapshot(SessionError, LookupError):
    """No snapshot or record answers to what was given; it may have been dropped or compacted away."""


class MergeConflict(SessionError):
    """Both sides changed the same thing differently; nothing was changed.

    `conflicts`, also called `paths`, names every one: paths of a file tree, tags of other slices.
    """

    def __init__(self, conflicts: tuple[str, ...]) -> None:
        self.conflicts = self.paths = conflicts
        shown = ", ".join(conflicts[:10]) + (f" and {len(conflicts) - 10} more" if len(conflicts) > 10 else "")
        super().__init__(
            f"cannot merge: both sides changed {shown}; nothing was changed. Make the change again on the newer state"
        )

    def __reduce__(self) -> tuple[type[MergeConflict], tuple[tuple[str, ...]]]:
        return type(self), (self.conflicts,)


class RollbackIncomplete(SessionError):
    """An external filesystem could not be put back; writes are refused until `session.repair()`.

    `states` says of each attached filesystem what became of it.
    """

    def __init__(self, states: Mapping[str, str]) -> None:
        self.states = dict(states)
        told = "; ".join(f"{name}: {state}" for name, state in self.states.items())
        super().__init__(f"the rollback is incomplete ({told}); remove the cause, then call session.repair()")

    def __reduce__(self) -> tuple[type[RollbackIncomplete], tuple[dict[str, str]]]:
        return type(self), (self.states,)


class SessionFileError(SessionError, ValueError):
    """A session file cannot be read back; `where` is a path into its JSON, such as `$.slices[2].items[0].path`."""

    def __init__(self, message: str, *, where: str = "$") -> None:
        self.where = where
        self.told = message
        super().__init__(f"{where}: {message}")

    def __reduce__(self) -> tuple[type[SessionFileError], tuple[str], dict[str, object]]:
        return type(self), (self.told,), {**vars(self), "args": self.args}


class UnsupportedVersion(SessionFileError):
    """The file was written in a format version that this library does not know."""


class UnknownTag(SessionFileError, UnknownType):
    """A session file names a tag that the registry does not have; the message says how to put it there."""


class MissingBlob(SessionFileError):
    """A content that is referred to is not there, or is another by now.

    `digest` is what it is known by, where that is told; `where` is then the place where it should be.
    """

    def __init__(self, message: str, *, where: str = "$", digest: bytes | None = None) -> None:
        super().__init__(message, where=where)
        self.digest = digest
