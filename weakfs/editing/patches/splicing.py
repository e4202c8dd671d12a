"""The pieces in which an old and a new content differ, so that the record of a change is as small as the change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from weakfs.editing.patches.document import BYTE_ORDER_MARK, Document

# A piece of a file in bytes: start, stop, and the replacement.
Piece = tuple[int, int, bytes]

# The size of a piece in a record, in addition to its bytes.
PIECE = 40


def pieces_between(held: bytes, made: bytes, document: Document | None = None) -> tuple[Piece, ...] | None:
    """Return the pieces that turn one content into the other; `None` if writing all of it is no worse. O(content).

    A document that was changed once knows them; otherwise there is one, from the first byte that differs to the last.
    """
    pieces = None
    if document is not None and document.changed_once is not None:
        found = tuple(_pieces(held, document))
        if _spliced(held, found) == made:
            pieces = found
    if pieces is None:
        pieces = _one_piece(held, made)
    return pieces if sum(PIECE + len(content) for _, _, content in pieces) < len(made) else None


def _pieces(held: bytes, document: Document) -> Iterator[Piece]:
    assert document.changed_once is not None
    mark = len(BYTE_ORDER_MARK.encode()) if document.is_marked else 0
    lines = held[mark:].split(b"\n")
    # Each line with its end; for very many lines, a generator would take most of the time of a patch.
    offsets = list(accumulate(map((1).__add__, map(len, lines)), initial=mark))
    for start, stop, inserted in document.changed_once:
        content = "".join([line + "\n" for line in inserted]).encode()
        yield min(offsets[start], len(held)), min(offsets[stop], len(held)), content


def _spliced(held: bytes, pieces: tuple[Piece, ...]) -> bytes:
    made: list[bytes] = []
    done = 0
    for start, stop, content in pieces:
        made += (held[done:start], content)
        done = stop
    return b"".join((*made, held[done:]))


def _one_piece(held: bytes, made: bytes) -> tuple[Piece, ...]:
    if held == made:
        return ()
    shorter = min(len(held), len(made))
    start = _common(held, made, shorter, at_end=False)
    tail = _common(held, made, shorter - start, at_end=True)
    return ((start, len(held) - tail, made[start : len(made) - tail]),)


def _common(one: bytes, other: bytes, most: int, *, at_end: bool) -> int:
    """Return the length of the common prefix or suffix, by bisection: comparing is fast, a loop over bytes is not."""
    low = 0
    while low < most:
        step = (most - low + 1) // 2
        if at_end:
            same = one[len(one) - low - step : len(one) - low] == other[len(other) - low - step : len(other) - low]
        else:
            same = one[low : low + step] == other[low : low + step]
        if same:
            low += step
        else:
            most = low + step - 1
    return low
