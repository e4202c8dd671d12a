"""The tool calls of a session: their numbers, the records of each, and lookup by id or number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from attrs import define, frozen

from weakfs.cli.errors import USAGE, Failure
from weakfs.cli.formatting import shown
from weakfs.session import Merged, Record, Session, UnknownType
from weakfs.tools import ToolCall

# The most ids that a message lists.
NAMED = 5


@frozen
class NumberedCall:
    """One call of a session. Calls are numbered from 1, in the order in which they ended.

    `record` is the record of the call itself, `None` if it was compacted away. `first` and `last` are the numbers of
    the first and last record that the call made, including its merge; `None` if it made none or they were compacted
    away.
    """

    number: int
    call: ToolCall
    record: Record | None
    first: int | None = None
    last: int | None = None
    is_merged: bool = False

    @property
    def last_state(self) -> int | None:
        """The record after which the changes of the call are in effect: the merge, for records of a fork."""
        return self.first if self.is_merged else self.last


def calls_of(session: Session) -> list[NumberedCall]:
    """List the calls of a session. O(records)."""
    try:
        every = session[ToolCall].all()
    except UnknownType:
        # A user's own registry need not have this type.
        return []
    recorded = [*_call_records(session)]
    # Calls whose records were compacted away come first; their changes are unknown.
    gone = max(len(every) - len(recorded), 0)
    found = [NumberedCall(number, call, None) for number, call in enumerate(every[:gone], 1)]
    dropped = session.seq - len(session.records)
    merges = {record.seq: record for record in session.records if isinstance(record.event, Merged)}
    for number, (record, call, shift) in enumerate(recorded, gone + 1):
        first, last = call.first_seq, call.last_seq
        if first is None or last is None or first + shift <= dropped:
            found.append(NumberedCall(number, call, record))
            continue
        first, last = first + shift, last + shift
        merge = merges.get(first - 1)
        is_merged = merge is not None and merge.cause == call.call_id and merge.event.count == last - first + 1
        found.append(NumberedCall(number, call, record, first - is_merged, last, is_merged))
    return found


def _call_records(session: Session) -> Iterator[tuple[Record, ToolCall, int]]:
    """Yield the record of each call, and the offset to add to the record numbers in it.

    A call made in a fork has the fork's numbers, shifted as its `Merged` record says.
    """
    blocks: list[tuple[int, int]] = []
    for record in session.records:
        while blocks and blocks[-1][0] < record.seq:
            blocks.pop()
        event = record.event
        if isinstance(event, Merged):
            blocks.append((record.seq + event.count, 0 if event.renumbered else record.seq - event.base))
        elif isinstance(event, ToolCall):
            yield record, event, blocks[-1][1] if blocks else 0


def call_named(session: Session, wanted: str) -> NumberedCall:
    """Return the call with an id or a number (`7` or `#7`); raise `Failure` unless there is exactly one."""
    calls = calls_of(session)
    digits = wanted.removeprefix("#")
    number = int(digits) if digits.isascii() and digits.isdigit() else 0
    by_number = calls[number - 1 : number] if number else []
    by_id = [] if wanted.startswith("#") and by_number else [one for one in calls if one.call.call_id == wanted]
    found = {one.number: one for one in (*by_id, *by_number)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        numbers = ", ".join(f"#{number}" for number in sorted(found)[:NAMED])
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise Failure(
            f"cannot tell which call {wanted!r} is: it may be {numbers}{more}; give one of these", status=USAGE
        )
    if not calls:
        raise Failure(f"the session has no call {wanted!r}: it has no calls at all; use --at and --to", status=USAGE)
    near = get_close_matches(wanted, [one.call.call_id for one in calls], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "give the id of one of them, or its number as weakfs log shows it"
    many = "1 call" if len(calls) == 1 else f"{len(calls):,} calls"
    raise Failure(f"the session has no call {wanted!r}: it has {many}; {hint}", status=USAGE)


@define
class CallCounter:
    """Counter that numbers the calls of a session as they are made, exactly as `calls_of` does afterwards."""

    count: int = 0
    _last_count: int = 0

    @classmethod
    def of(cls, session: Session) -> CallCounter:
        """Start counting the calls of a session that has none yet."""
        counter = cls()
        session.subscribe(ToolCall, counter._on_call)
        return counter

    def _on_call(self, _: Record) -> None:
        self.count += 1

    def number(self) -> int | None:
        """Return the number of the call made since the last time of asking; `None` if none was made."""
        if self.count == self._last_count:
            return None
        self._last_count = self.count
        return self.count


def target_of(arguments: Mapping[str, object] | None) -> str:
    """Describe what a call works on: its path, its pattern, or its source and destination."""
    arguments = arguments or {}
    path, pattern = _first(arguments, "path", "file_path"), _first(arguments, "pattern")
    if pattern:
        return f"{pattern} in {path}" if path else pattern
    source, destination = _first(arguments, "source", "src"), _first(arguments, "destination", "dst")
    if source or destination:
        return f"{source} to {destination}"
    return path or _first(arguments, "command")


def _first(arguments: Mapping[str, object], *names: str) -> str:
    """Return the first of these arguments that is a string, in printable form."""
    given = (arguments.get(name) for name in names)
    return next((shown(value) for value in given if isinstance(value, str) and value), "")
