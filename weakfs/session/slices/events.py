"""The events of a session itself, and the record made of every event."""

from __future__ import annotations

from typing import Any

from attrs import field, fields

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import event, tag_of


@fast_init
@frozen
class Record:
    """One entry of the log: the event, its number (from 1), when it was applied and who caused it.

    `at` is the session clock's time in integer nanoseconds. `cause` names a tool call, a user or a rollback; it is
    `None` if no cause was given.
    """

    seq: int
    at: int
    event: Any
    cause: str | None


@event("session/slice_seeded")
@frozen
class SliceSeeded:
    """The values of one slice were replaced by `items`."""

    slice: str
    items: tuple[Any, ...]


@event("session/slice_appended")
@frozen
class SliceAppended:
    """One value was added at the end of a slice."""

    slice: str
    item: Any


@event("session/slice_cleared")
@frozen
class SliceCleared:
    """All values of a slice were removed."""

    slice: str


@event("session/rolled_back", numbers=("target",))
@fast_init
@frozen
class RolledBack:
    """Every STATE slice went back to its values after record `target`.

    `state` is the resulting state, by reference, so that reading history does not compute it again. `failed` is true if
    the rollback was not requested, but caused by the failure of the transaction that made the records since then.
    `foreign` names the external files that other programs had changed.
    """

    target: int
    snapshot_id: str | None
    state: Table = field(repr=False, eq=False)
    failed: bool | None = None
    foreign: tuple[str, ...] | None = None


@event("session/merged", numbers=("base",))
@frozen
class Merged:
    """The work of a fork was merged: its `count` records follow this one, and `state` is the merged state.

    `base` is the record after which the fork branched off, or the last of its records that were merged before. The
    records that follow are the fork's own: they document what it did, and only their LOG slices take effect again when
    history is read. If they are `renumbered`, `base` and the record numbers in them are those of this session; in files
    of format version 1 they are the fork's. `resolutions` are the answers to the conflicts, if there were any: (tag of
    the slice, path, kind, answer, content of a `Resolution`).
    """

    fork: str
    base: int
    count: int
    state: Table = field(repr=False, eq=False)
    renumbered: bool = False
    resolutions: tuple[tuple[str, str, str, str, bytes | None], ...] | None = None


@event("session/reverted", numbers=("first", "last"))
@frozen
class Reverted:
    """The changes of records `first` to `last` were undone. This is the last record of that operation.

    `how` is the method of the session: "undo", "redo", "revert" or "restore". For "restore", `first` and `last` are the
    record whose files were restored.
    """

    how: str
    first: int
    last: int


SLICE_EVENTS = (SliceSeeded, SliceAppended, SliceCleared)
EVENTS = (*SLICE_EVENTS, RolledBack, Merged, Reverted)
# The events that hold a state of the session: for each tag, the place of the state among the fields.
STATE_PLACES = {tag_of(type_): [each.name for each in fields(type_)].index("state") for type_ in (RolledBack, Merged)}
