"""Operations: the records of a timeline in the units that people undo, such as tool calls and merges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from attrs import evolve

from weakfs.class_decorators import frozen
from weakfs.session.events import Merged, Reverted, RolledBack
from weakfs.session.replay.reduction import Row
from weakfs.session.slices.tags import tag_of

MERGED, REVERTED, ROLLED_BACK = tag_of(Merged), tag_of(Reverted), tag_of(RolledBack)


@frozen
class Span:
    """Records `first` to `last`: of the timeline, or of the fork whose merge is record `merge`."""

    first: int
    last: int
    merge: int | None = None


@frozen
class Operation:
    """Consecutive records with one cause, or a single record that has none.

    If the operation took others back, `how` says how, and `reverted` are their records; see `Reverted`. If
    `has_failed`, it was a transaction that failed and was rolled back; `failed` are the causes of all work that was
    rolled back in it.
    """

    first: int
    last: int
    cause: str | None
    how: str | None = None
    reverted: tuple[Span, ...] = ()
    has_failed: bool = False
    failed: frozenset[str] = frozenset()

    @property
    def span(self) -> Span:
        """Its records."""
        return Span(self.first, self.last)


def operations(rows: Iterable[Row], dropped: int, block_end: int = 0) -> list[Operation]:
    """List the operations of a timeline whose records follow number `dropped`, oldest first. O(records).

    A merged fork is one operation, and so is a transaction that failed, whatever calls were made in it. Records up to
    `block_end` are the rest of a merged fork whose first records were dropped. They belong to no operation.
    """
    found: list[Operation] = []
    for one in _parts(rows, dropped, block_end):
        while found and found[-1].last >= one.first:
            one = _with_failed(found.pop(), one)
        before = found[-1] if found else None
        # A `Reverted` record ends its operation, since the same records may be taken back again.
        if before is not None and before.how is None and one.cause is not None and before.cause == one.cause:
            has_failed = before.has_failed and one.has_failed
            found[-1] = evolve(one, first=before.first, has_failed=has_failed, failed=before.failed | one.failed)
        else:
            found.append(one)
    return found


def _with_failed(inside: Operation, rollback: Operation) -> Operation:
    """Return the operation of a failed transaction combined with an operation that ends inside it."""
    failed = inside.failed | rollback.failed
    if inside.first < rollback.first:
        # The operation began before the transaction and continued in it.
        return evolve(inside, last=rollback.last, failed=failed)
    return evolve(rollback, failed=failed if inside.cause is None else failed | {inside.cause})


def spans_of(cause: str, rows: Sequence[Row], dropped: int, block_end: int = 0) -> list[Span]:
    """Return the records with a cause, oldest first: those of the timeline, or else those of forks merged into it."""
    known = operations(rows, dropped, block_end)
    found = [one.span for one in known if one.how is None and one.cause == cause]
    if found or any(cause in one.failed for one in known):
        return found
    for first, last in merges(rows, dropped, block_end):
        inside = operations(islice(rows, first - dropped, last - dropped), first)
        found += [Span(one.first, one.last, first) for one in inside if one.how is None and one.cause == cause]
    return found


def merges(rows: Iterable[Row], dropped: int, block_end: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the number of each merge's record, and that of the last record of its fork."""
    for number, row in enumerate(rows, dropped + 1):
        if number > block_end and row[2] == MERGED and row[3][2] > 0:
            block_end = number + row[3][2]
            yield number, block_end


def _parts(rows: Iterable[Row], dropped: int, block_end: int) -> Iterator[Operation]:
    """Yield single records, whole merges, and all records of a failed transaction with its rollback."""
    merge: Operation | None = None
    causes: set[str | None] = set()
    for number, (_, cause, tag, values) in enumerate(rows, dropped + 1):
        if number > block_end:
            merge, causes = None, set()
            one = Operation(number, number, cause)
            if tag == REVERTED:
                one = _with_reverted(one, values)
            if tag == MERGED and values[2] > 0:
                merge, block_end = one, number + values[2]
            elif tag == ROLLED_BACK and values[3]:
                yield evolve(one, first=max(values[0], dropped) + 1, has_failed=True)
            else:
                yield one
        elif merge is not None:
            causes.add(cause)
            if tag == REVERTED:
                merge = _with_reverted(merge, values)
            if number == block_end:
                # An operation that took work back and also did something else counts as an ordinary operation.
                yield evolve(merge, last=number) if len(causes) == 1 else Operation(merge.first, number, merge.cause)


def _with_reverted(one: Operation, values: tuple[Any, ...]) -> Operation:
    how, first, last = values
    return evolve(one, how=how, reverted=(*one.reverted, Span(first, last)))


def undone(every: Iterable[Operation]) -> tuple[set[Operation], set[Operation]]:
    """Return the operations that are undone, and the undos that are redone.

    Each says which records it took back: in a session that several processes change, these need not be the last.
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
            if one.how == "undo":
                undone.add(target)
            elif target.how == "undo":
                redone.add(target)
                undone -= {each for each in undone if any(_holds(each, again) for again in target.reverted)}
        by_last.append(one)
    return undone, redone


def _holds(one: Operation, span: Span) -> bool:
    return one.first <= span.first <= one.last
