"""Operations: the records of a timeline in the units that people undo, such as tool calls and merges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from weakfs.session.events import Merged, Reverted
from weakfs.session.replay.reduction import Row
from weakfs.session.slices.tags import tag_of

MERGED, REVERTED = tag_of(Merged), tag_of(Reverted)


@frozen
class Operation:
    """Consecutive records with one cause, or a single record that has none.

    `how` is `None`, or how the operation took others back; see `Reverted`.
    """

    first: int
    last: int
    cause: str | None
    how: str | None = None


def operations(rows: Iterable[Row], dropped: int, block_end: int = 0) -> list[Operation]:
    """List the operations of a timeline whose records follow number `dropped`, oldest first. O(records).

    A merged fork is one operation. Records up to `block_end` are the rest of one whose first records were dropped, and
    belong to none.
    """
    found: list[Operation] = []
    is_open = False
    for first, last, cause, how in _parts(rows, dropped, block_end):
        before = found[-1] if found else None
        if is_open and before is not None and cause is not None and before.cause == cause:
            found[-1] = Operation(before.first, last, cause, how)
        else:
            found.append(Operation(first, last, cause, how))
        # The record that says what was taken back ends its operation: the same may be taken back again.
        is_open = how is None
    return found


def _parts(rows: Iterable[Row], dropped: int, block_end: int) -> Iterator[tuple[int, int, str | None, str | None]]:
    """Yield single records and whole merges, as the fields of an operation."""
    merge: tuple[int, str | None] | None = None
    how: str | None = None
    for number, (_, cause, tag, values) in enumerate(rows, dropped + 1):
        if number > block_end:
            merge, how = None, None
            if tag == MERGED and values[2] > 0:
                merge, block_end = (number, cause), number + values[2]
            else:
                yield number, number, cause, values[0] if tag == REVERTED else None
        elif merge is not None:
            if tag == REVERTED and cause == merge[1]:
                how = values[0]
            if number == block_end:
                yield merge[0], number, merge[1], how
