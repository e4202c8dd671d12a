"""Reading the frames of a journal, a segment at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from weakfs.storage.event_store import Frame
from weakfs.storage.folder.journal.journal import Journal
from weakfs.storage.folder.journal.reader import BadRecord, records
from weakfs.storage.folder.journal.records import FRAME, NUMBER


def frames_from(journal: Journal, number: int) -> Iterator[Frame]:
    """Yield the frames from a number on. The lock of the stream must be held while they are read."""
    while number <= journal.head:
        found, last = segment_frames(journal, number)
        yield from found
        number = last + 1


def segment_frames(journal: Journal, number: int) -> tuple[Iterator[Frame], int]:
    """Return the frames of one segment, from a number on, and the number of the last one.

    They are read from a file that does not change.
    """
    holding = next((entry.sequence for entry in journal.sealed if number <= entry.last), journal.active.sequence)
    segment = journal.segment(holding)
    if not segment.first <= number <= segment.last:
        raise journal.damaged(holding, BadRecord(0, f"frame {number} is missing"), number - 1)
    kept = segment.take_kept(number)
    last = segment.last
    if kept is not None:
        # Takes half of the time of `Frame._make`.
        return map(partial(tuple.__new__, Frame), enumerate(kept, number)), last
    file, start, end = segment.file, segment.place(number), segment.end

    def frames(number: int = number) -> Iterator[Frame]:
        try:
            for kind, offset, _, body, _ in records(file, start, end, verify_contents=False):
                if kind != FRAME:
                    continue
                found: int = NUMBER.unpack_from(body)[0]
                if found < number:
                    continue
                if found > number:
                    raise BadRecord(offset, f"frame {number} is missing")
                yield Frame(found, bytes(body[8:]))
                number += 1
                if found == last:
                    return
            raise BadRecord(end, f"frame {number} is missing")
        except BadRecord as bad:
            raise journal.damaged(holding, bad, number - 1) from None

    return frames(), last
