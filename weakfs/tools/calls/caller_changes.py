"""An index of the changes by calls that have a caller: calls without a caller must not undo these changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from threading import Lock

import attrs
from attrs import frozen

from weakfs.reducers import EntryCopied, EntryMoved, TreeRestored
from weakfs.session import Session
from weakfs.session.history.reduction import Row, event_of
from weakfs.session.slices.tags import tag_of
from weakfs.tools.slices import ToolCall

CALLED = tag_of(ToolCall)
CALLER = [field.name for field in attrs.fields(ToolCall)].index("caller")


@frozen(order=True)
class CallerChange:
    """A change of a path at record `seq`, by a call of a caller."""

    seq: int
    call_id: str
    caller: str | None


class CallerChanges:
    """An index of the newest change of each path by a successful call that has a caller.

    It begins with the records after its creation and reads each of them once: searching the history would take longer
    with every call. It does not read the records of an open transaction, which may be rolled back or renumbered; code
    inside that transaction reads those each time. Thread-safe.
    """

    def __init__(self, session: Session, filesystem: str, named: Callable[[str], str] = str) -> None:
        self._session = session
        self._name = filesystem
        # Maps a path in a record to the path that calls use.
        self._named = named
        self._lock = Lock()
        self._changes: dict[str, CallerChange] = {}
        self._seq = session._settled_seq
        self._have_callers = False

    def may_exist(self) -> bool:
        """Return whether any caller may have changed anything. O(records since the last call)."""
        settled = self._catch_up()
        return self._have_callers or self._session.seq > settled

    def newest(self, path: str, seq: int) -> CallerChange | None:
        """Return the newest change of a path, or of a directory above it, after record `seq`."""
        settled = self._catch_up()
        open_changes: dict[str, CallerChange] = {}
        self._collect(settled, self._session.seq, open_changes)
        above = [*with_parents(path)]
        found = [changes[one] for changes in (self._changes, open_changes) for one in above if one in changes]
        newest = max(found, default=None)
        return newest if newest is not None and newest.seq > seq else None

    def _catch_up(self) -> int:
        """Add the changes of all committed records, and return the number of the newest one."""
        settled = self._session._settled_seq
        if settled > self._seq:
            with self._lock:
                self._have_callers |= self._collect(self._seq, settled, self._changes)
                self._seq = max(self._seq, settled)
        return settled

    def _collect(self, seq: int, last: int, changes: dict[str, CallerChange]) -> bool:
        """Add the changes by calls recorded after `seq` up to `last`; return whether any call had a caller."""
        have_callers = False
        for row in islice(self._session._rows_since(seq), max(last - seq, 0)):
            if row[2] != CALLED or row[3][CALLER] is None:
                continue
            have_callers = True
            call: ToolCall = event_of(self._session._rules, row)
            if call.status != "ok" or call.first_seq is None or call.last_seq is None:
                continue
            own = islice(self._session._rows_since(call.first_seq - 1), call.last_seq - call.first_seq + 1)
            for number, change in enumerate(own, call.first_seq):
                for path in self._paths(change):
                    known = changes.get(path)
                    if known is None or known.seq < number:
                        changes[path] = CallerChange(number, call.call_id, call.caller)
        return have_callers

    def _paths(self, row: Row) -> tuple[str, ...]:
        event = event_of(self._session._rules, row)
        own = paths_of(event) if getattr(event, "filesystem", None) in (None, self._name) else ()
        return tuple(map(self._named, own))


def paths_of(event: object) -> tuple[str, ...]:
    """Return the paths that an event changes; the root if it replaces the whole tree."""
    path = getattr(event, "path", None)
    if isinstance(path, str):
        return (path,)
    if isinstance(event, EntryMoved):
        return (event.source, event.destination)
    if isinstance(event, EntryCopied):
        return (event.destination,)
    return ("/",) if isinstance(event, TreeRestored) else ()


def with_parents(path: str) -> Iterator[str]:
    """Yield a path and all its parent directories."""
    while path != "/":
        yield path
        path = path.rpartition("/")[0] or "/"
    yield path
