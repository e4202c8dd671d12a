"""Operations: the records of a timeline in the units that people undo, such as tool calls and merges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.session.history.reduction import Row
from weakfs.session.slices.events import Merged, Reverted, RolledBack
from weakfs.session.slices.tags import tag_of

MERGED, REVERTED, ROLLED_BACK = tag_of(Merged), tag_of(Reverted), tag_of(RolledBack)

# By the tag of an event that ends a call: the positions of the fields with the first and last record of the call.
Calls = Mapping[str, tuple[int, int]]
NO_CALLS: Calls = {}


@frozen
class Span:
    """Records `first` to `last`: of the timeline, or of the fork whose merge is record `merge`."""

    first: int
    last: int
    merge: int | None = None


@frozen
class Operation:
    """Consecutive records with one cause, or a single record that has none.

    If the operation undid others, `how` says how, and `reverted` are their records; see `Reverted`. If `has_failed`, it
    was a transaction that failed and was rolled back; `failed` are the causes of all work that was rolled back in it.
    `parts` are the operations inside a call that made other calls, oldest first. If `is_end`, it is only the record at
    the end of a call.
    """

    first: int
    last: int
    cause: str | None
    how: str | None = None
    reverted: tuple[Span, ...] = ()
    has_failed: bool = False
    failed: frozenset[str] = frozenset()
    parts: tuple[Operation, ...] = field(default=(), repr=False)
    is_end: bool = False

    @property
    def span(self) -> Span:
        """The records of the operation."""
        return Span(self.first, self.last)


def operations(rows: Iterable[Row], dropped: int, block_end: int = 0, calls: Calls = NO_CALLS) -> list[Operation]:
    """List the operations of a timeline whose records follow number `dropped`, oldest first. O(records).

    A merged fork is one operation, and so are a transaction that failed and a call, whatever calls were made in it. The
    exception is a call that only undoes and redoes: each undo and redo in it is a separate operation. Records up to
    `block_end` are the rest of a merged fork whose first records were dropped. They belong to no operation.
    """
    found: list[Operation] = []
    for one in _parts(rows, dropped, block_end, calls):
        inside: list[Operation] = []
        while found and found[-1].last >= one.first:
            inside.append(found.pop())
        if inside and one.has_failed:
            for part in inside:
                one = _with_failed(part, one)
        elif inside:
            around = _around(inside[::-1], one)
            if around is not None:
                found.append(around)
                continue
            found += inside[::-1]
            one = evolve(one, first=one.last)
        before = found[-1] if found else None
        # A `Reverted` record ends its operation, since the same records may be undone again.
        if before is not None and before.how is None and one.cause is not None and before.cause == one.cause:
            found[-1] = evolve(
                one,
                first=before.first,
                has_failed=before.has_failed and one.has_failed,
                failed=before.failed | one.failed,
                parts=before.parts,
                is_end=before.is_end and one.is_end,
            )
        else:
            found.append(one)
    return found


def _with_failed(inside: Operation, rollback: Operation) -> Operation:
    """Return the operation of a failed transaction combined with an operation that ends inside it."""
    if inside.first < rollback.first:
        # The operation began before the transaction and continued in it.
        return evolve(inside, last=rollback.last, failed=inside.failed | rollback.failed)
    return evolve(rollback, failed=rollback.failed.union(_causes(inside)))


def _causes(one: Operation) -> Iterator[str]:
    """Yield the causes of an operation and of everything in it."""
    if one.cause is not None:
        yield one.cause
    yield from one.failed
    for part in one.parts:
        yield from _causes(part)


def _around(parts: list[Operation], call: Operation) -> Operation | None:
    """Return the operation of a call that made others, or `None` if the operations in it stay separate."""
    is_only_its_own = len(parts) == 1 and parts[0].cause == call.cause
    only_goes_back = all(part.how in ("undo", "redo") or part.is_end for part in parts)
    if is_only_its_own or only_goes_back or parts[0].first < call.first:
        return None
    failed = frozenset[str]().union(*(part.failed for part in parts))
    # An operation that undid work and also did something else is an ordinary operation.
    how, reverted = (parts[0].how, parts[0].reverted) if len(parts) == 1 else (None, ())
    return evolve(call, how=how, reverted=reverted, failed=failed, parts=tuple(parts), is_end=False)


def spans_of(cause: str, rows: Sequence[Row], dropped: int, block_end: int = 0, calls: Calls = NO_CALLS) -> list[Span]:
    """Return the records with a cause, oldest first: those of the timeline, or else those of forks merged into it.

    Those of a call include the records of the calls that it made.
    """
    known = operations(rows, dropped, block_end, calls)
    found = [one.span for one in _caused_by(cause, known)]
    if found or any(cause in one.failed for one in known):
        return found
    for merge, inside in _merged(rows, dropped, block_end, calls):
        found += [Span(one.first, one.last, merge) for one in _caused_by(cause, inside)]
    return found


def has_failed(cause: str, rows: Sequence[Row], dropped: int, block_end: int = 0, calls: Calls = NO_CALLS) -> bool:
    """Return whether work with a cause was rolled back because it failed, or because a transaction around it did."""
    if any(row[1] == cause and row[2] == ROLLED_BACK and row[3][3] for row in rows):
        return True
    forks = (inside for _, inside in _merged(rows, dropped, block_end, calls))
    return any(cause in one.failed for each in (operations(rows, dropped, block_end, calls), *forks) for one in each)


def _merged(rows: Sequence[Row], dropped: int, block_end: int, calls: Calls) -> Iterator[tuple[int, list[Operation]]]:
    """Yield the number of each merge's record, and the operations of its fork."""
    for first, last in merges(rows, dropped, block_end):
        # In files of format version 1, the numbers in a fork's records are not those of the session.
        is_renumbered = rows[first - dropped - 1][3][4]
        block = islice(rows, first - dropped, last - dropped)
        yield first, operations(block, first, calls=calls if is_renumbered else NO_CALLS)


def _caused_by(cause: str, every: Iterable[Operation]) -> Iterator[Operation]:
    """Yield the operations with a cause, including those inside calls; a reversion is not identified by its cause."""
    for one in every:
        if one.cause == cause and (one.how is None or one.parts):
            yield one
        else:
            yield from _caused_by(cause, one.parts)


def merges(rows: Iterable[Row], dropped: int, block_end: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the number of each merge's record, and that of the last record of its fork."""
    for number, row in enumerate(rows, dropped + 1):
        if number > block_end and row[2] == MERGED and row[3][2] > 0:
            block_end = number + row[3][2]
            yield number, block_end


def _parts(rows: Iterable[Row], dropped: int, block_end: int, calls: Calls) -> Iterator[Operation]:
    """Yield single records, whole merges, and all records of a failed transaction with its rollback.

    The record at the end of a call comes with all records of the call.
    """
    merge: Operation | None = None
    base = 0
    causes: set[str | None] = set()
    # The `Reverted` records of a merged fork, with their numbers.
    reverted: list[tuple[int, tuple[Any, ...]]] = []
    for number, (_, cause, tag, values) in enumerate(rows, dropped + 1):
        if number > block_end:
            merge, causes, reverted = None, set(), []
            one = Operation(number, number, cause)
            if tag == REVERTED:
                one = _with_reverted(one, values)
            if tag == MERGED and values[2] > 0:
                merge, base, block_end = one, values[1], number + values[2]
            elif tag == ROLLED_BACK and values[3]:
                yield evolve(one, first=max(values[0], dropped) + 1, has_failed=True)
            elif tag in calls:
                first, last = (values[place] for place in calls[tag])
                if first is not None and last == number - 1:
                    one = evolve(one, first=max(first, dropped + 1))
                yield evolve(one, is_end=True)
            else:
                yield one
        elif merge is not None:
            causes.add(cause)
            is_failure = tag == ROLLED_BACK and bool(values[3])
            if tag == REVERTED:
                reverted.append((number, values))
            elif is_failure:
                reverted = [one for one in reverted if one[0] <= values[0]]
            if number == block_end:
                # An operation that undid work and also did something else counts as an ordinary operation.
                for _, each in reverted if len(causes) == 1 else ():
                    merge = _with_reverted(merge, each)
                yield evolve(merge, last=number, has_failed=is_failure and values[0] == base)


def _with_reverted(one: Operation, values: tuple[Any, ...]) -> Operation:
    how, first, last = values
    return evolve(one, how=how, reverted=(*one.reverted, Span(first, last)))


def undone(every: Iterable[Operation]) -> tuple[set[Operation], set[Operation]]:
    """Return the operations that are undone, and the undos that are redone.

    Each names the records that it undid, which need not be the last ones in a session that several processes change.
    """
    undone: set[Operation] = set()
    redone: set[Operation] = set()
    by_last: list[Operation] = []
    for one in every:
        for span in one.reverted if one.how in ("undo", "redo") else ():
            place = bisect_left(by_last, span.first, key=attrgetter("last"))
            if place == len(by_last) or by_last[place].first > span.first:
                continue
            target = by_last[place]
            if target.parts and not (span.first <= target.first and target.last <= span.last):
                # Only a part of the call was undone, before it ended.
                continue
            if one.how == "undo":
                undone.add(target)
            elif target.how == "undo":
                redone.add(target)
                undone -= {each for each in undone if any(_holds(each, again) for again in target.reverted)}
        by_last.append(one)
    return undone, redone


def _holds(one: Operation, span: Span) -> bool:
    return one.first <= span.first <= one.last
