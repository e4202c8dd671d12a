"""Successful calls by the id that the program gave them, so that a repeated call is not made twice.

A process that dies during a commit does not learn its outcome. The process that takes over repeats the call with the
same id, and gets the recorded answer if the call was committed.
"""

from __future__ import annotations

import json
from base64 import b64decode
from bisect import bisect_right
from collections import OrderedDict
from operator import itemgetter
from threading import Lock
from typing import Any

from weakfs.session import Merged, Records, RolledBack, Session
from weakfs.session.errors import RecordsDropped
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import tag_of
from weakfs.tools.results import Receipt, ToolResult
from weakfs.tools.slices import ToolCall

# How many of the newest calls are remembered.
MOST = 1024


class FinishedCalls:
    """The newest calls of a session, by id."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tag = tag_of(ToolCall)
        self._known: OrderedDict[str, ToolCall] = OrderedDict()
        self._read: Log[ToolCall] = Log()
        self._lock = Lock()

    def find(self, call_id: str, tool: str, arguments: str | bytes) -> ToolCall | None:
        """Return the call with this id, tool and arguments, if it succeeded and was not rolled back.

        O(calls since this was last called); the first time, it may read old calls from storage.
        """
        session = self._session
        with session.lock:
            values, records = self._values(session._table("log")), session.records
        while True:
            try:
                return self._find(values, records, call_id, tool, arguments)
            except RecordsDropped:
                # Another writer has compacted the history since this session last synchronized.
                with session.lock:
                    log, line = session._log, session._trunk
                    if log is None or not log.catch_up(session):
                        raise
                    # Leaves out the calls of the active transaction, which began earlier.
                    values, records = self._values(line.logs), Records(session._rules, line.rows, line.dropped)
                session._notify()

    def _find(
        self, values: Log[ToolCall], records: Records, call_id: str, tool: str, arguments: str | bytes
    ) -> ToolCall | None:
        # The session's lock is not held: reading may take a long time.
        with self._lock:
            if not values.extends(self._read):
                # Old calls were dropped.
                self._read = Log()
            for known in values.since(max(len(self._read), len(values) - MOST)):
                self._known[known.call_id] = known
                if len(self._known) > MOST:
                    self._known.popitem(last=False)
            self._read = values
            call = self._known.get(call_id)
        if call is None or not _is(call, call_id, tool, arguments):
            return None
        return call if is_in_effect(call, records) else None

    def count(self) -> int:
        """Return the number of calls so far."""
        return len(self._values(self._session._table("log")))

    def find_after(
        self, line: Timeline, count: int, call_id: str, tool: str, arguments: str | bytes
    ) -> ToolCall | None:
        """Find such a call, after the first `count`, in a timeline that is about to be committed."""
        try:
            later = list(self._values(line.logs).since(count))
        except RecordsDropped:
            log = self._session._log
            if log is None or not log.is_behind:
                raise
            # The commit will conflict with the compaction; if it is merged, it searches again.
            return None
        for call in later:
            if _is(call, call_id, tool, arguments):
                records = Records(self._session._rules, line.rows, line.dropped)
                return call if is_in_effect(call, records) else None
        return None

    def _values(self, logs: Table) -> Log[ToolCall]:
        values: Log[ToolCall] = logs.get(self._tag, Log())
        return values


def _is(call: ToolCall, call_id: str, tool: str, arguments: str | bytes) -> bool:
    """Return whether a call had this id, tool and arguments, and succeeded."""
    if (call.call_id, call.tool, call.status) != (call_id, tool, "ok"):
        return False
    return call.arguments == arguments or bool(json.loads(call.arguments) == json.loads(arguments))


def is_in_effect(call: ToolCall, records: Records) -> bool:
    """Return whether the changes of a call are in effect: never rolled back, or restored since. O(records since)."""
    if call.last_seq is None:
        return True
    # For each record number, whether the call was in effect after that record.
    turns = [(call.last_seq, True)]
    block_end = 0
    for record in records.since(call.last_seq):
        event = record.event
        if record.seq <= block_end:
            # The records of a fork changed the session when the fork was merged.
            continue
        if isinstance(event, Merged):
            block_end = record.seq + event.count
        elif isinstance(event, RolledBack):
            place = bisect_right(turns, event.target, key=itemgetter(0))
            turns.append((record.seq, place > 0 and turns[place - 1][1]))
    return turns[-1][1]


def recorded_answer(call: ToolCall, kind: type[Receipt]) -> ToolResult[object]:
    """Return the recorded answer to a call; its value is a receipt of this class if the record fits the class."""
    import cattrs

    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(bytes, _read_bytes)
    value = call.read_receipt()
    try:
        value = converter.structure(value, kind)
    except Exception:  # the program's own class may raise anything for values that do not fit
        value = call.read_receipt()
    return ToolResult(call.summary, value, True, call.status, call.error_code, call.summary)


def _read_bytes(value: Any, _: type) -> bytes:
    return b64decode(value["base64"])
