"""Torn tails: an unfinished batch at the end of a journal is distinguished from damage, and cut off."""

from __future__ import annotations

from errno import EBADF, EINVAL

from weakfs.storage.folder.files import Descriptor, cut, read_at, size_of
from weakfs.storage.folder.journal.reader import WINDOW, BadRecord, seed_at
from weakfs.storage.folder.journal.records import CHECKSUM, COMMIT_BODY, PREFIX, commit_pattern, is_sound
from weakfs.storage.folder.journal.segment import Segment


def cut_torn_tail(active: Segment, bad: BadRecord) -> bool:
    """Cut the active segment off after its last whole batch. Return `False`, and change nothing, if it is damaged."""
    # Each segment begins with a state, written together with its header.
    if (
        not active.state_at
        or bad.offset < active.end
        or _later_commit(active.file, bad.offset, active.marker) is not None
    ):
        return False
    if active.following is None:
        # A reader without write permission sees the same state.
        try:
            cut(active.file, active.end)
        except OSError as error:
            if error.errno not in (EBADF, EINVAL):
                raise
    return True


def _later_commit(file: Descriptor, bad: int, marker: bytes) -> int | None:
    """Return the offset of a whole commit that was written after a bad record; `None` if there is none.

    If there is one, the bad record was on the disk by then, and is damaged. If not, the record was never finished: the
    process or the power failed. A commit is also found if bytes were inserted or removed before it. A commit inside a
    blob, as part of a copy of this file, does not count: it was written before the bad record.
    """
    pattern, end = commit_pattern(marker), size_of(file)
    size = PREFIX.size + COMMIT_BODY.size
    offset = bad
    while offset < end:
        window = read_at(file, offset, WINDOW + size)
        at = window.find(pattern)
        while at >= 0:
            place = offset + at
            record = read_at(file, place, size + CHECKSUM.size)
            if len(record) == size + CHECKSUM.size:
                _, unsynced, own = COMMIT_BODY.unpack_from(record, PREFIX.size)
                checksum = CHECKSUM.unpack_from(record, size)[0]
                is_later = own - unsynced > bad or own == bad
                if is_later and is_sound(record[:size], checksum, seed_at(file, place), own):
                    return place
            at = window.find(pattern, at + 1)
        offset += WINDOW
    return None
