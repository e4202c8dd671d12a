"""Trimming: marking frames and contents as deleted, and folding segments in which most records are dead.

Folding a segment rewrites it without its dead records. A sealed segment never changes otherwise, and a dead record
stays dead, so a fold holds the lock of the stream for only a few hundred records at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from weakfs.class_decorators import define
from weakfs.storage.errors import StreamConflict
from weakfs.storage.folder.files import (
    Descriptor,
    TemporaryFolder,
    remove,
    rename,
    size_of,
    sync_file,
    sync_folder,
    write_at,
)
from weakfs.storage.folder.journal.journal import Journal
from weakfs.storage.folder.journal.reader import BadRecord, Record, records
from weakfs.storage.folder.journal.records import (
    CONTENT,
    FRAME,
    NUMBER,
    TOMBSTONE,
    Batch,
    Entry,
    Header,
    State,
    digest_of,
    encode_header,
)
from weakfs.storage.folder.journal.segment import Segment, segment_name
from weakfs.storage.folder.stream.stream import Stream

# A segment is folded if more than 1/DEAD_SHARE of its bytes are dead. If at least 1/MOST_DEAD of the stream's bytes are
# dead, 1/LEAST_DEAD is enough.
DEAD_SHARE, LEAST_DEAD, MOST_DEAD = 4, 10, 10
# The active segment is sealed and folded only if it is larger than this.
SMALLEST = 1 << 16
_RECORDS_AT_ONCE = 256
_BATCH = 1 << 20


def trim(
    stream: Stream, name: str, before: int, digests: Iterable[bytes], *, expected: int | None, fold_budget: int
) -> None:
    """Delete frames and contents, and fold segments until `fold_budget` bytes have been rewritten.

    Raises `StreamConflict`, with nothing changed, if the stream does not end at `expected`.
    """
    with stream.locked():
        journal = stream.journal_of(name)
        head = 0 if journal is None else journal.head
        if expected is not None and expected != head:
            raise StreamConflict(stream.name, expected, head)
        if journal is None:
            return
        _mark(journal, before, digests)
        active = journal.active
        if active.end > SMALLEST and _is_mostly_dead(active.entry, journal.before):
            journal.roll_over()
        frames_from = journal.before
        chosen = _to_fold(journal.sealed, frames_from, journal.active.end)
    if chosen or stream.options.is_synced:
        # The deletion marks must be on the disk before a fold removes records, whatever the durability.
        stream.flush()
    for entry in chosen:
        live = _live(entry, frames_from)
        if live > fold_budget:
            break
        fold_budget -= live
        _fold(stream, entry)


def _to_fold(sealed: Iterable[Entry], before: int, active: int) -> list[Entry]:
    """Return the segments to fold, those with the largest dead share first: as many as keep the stream small."""
    deadest = sorted(sealed, key=lambda entry: _live(entry, before) / entry.size)
    size = active + sum(entry.size for entry in deadest)
    dead = sum(entry.size - _live(entry, before) for entry in deadest)
    chosen: list[Entry] = []
    for entry in deadest:
        own = entry.size - _live(entry, before)
        # Even in a segment without dead records, the commits and the state take up some bytes.
        if not _is_mostly_dead(entry, before) and (dead * MOST_DEAD < size or own * LEAST_DEAD < entry.size):
            break
        chosen.append(entry)
        size, dead = size - own, dead - own
    return chosen


def _live(entry: Entry, before: int) -> int:
    """Return the approximate number of live bytes in a segment."""
    count = entry.last - entry.first + 1
    kept = min(max(entry.last + 1 - before, 0), count)
    return entry.contents + (entry.frames * kept // count if count else 0)


def _is_mostly_dead(entry: Entry, before: int) -> bool:
    return (entry.size - _live(entry, before)) * DEAD_SHARE > entry.size


def _mark(journal: Journal, before: int, digests: Iterable[bytes]) -> None:
    """Record the deletions."""
    before = min(max(before, journal.before), journal.head + 1)
    batch, lost, own = journal.batch(), dict[int, int](), list[tuple[bytes, int]]()
    for digest in dict.fromkeys(digests):
        place = journal.locate(digest)
        if place is not None:
            size = journal.segment(place[0]).size_at(place[1])
            lost[place[0]] = lost.get(place[0], 0) + size
            own.append((digest, batch.offset))
            batch.tombstone(digest)
    if before == journal.before and not own:
        return
    active = journal.active
    sealed = tuple(
        entry._replace(contents=max(entry.contents - lost.get(entry.sequence, 0), 0)) for entry in journal.sealed
    )
    journal.write_state(batch, journal.state()._replace(before=before, sealed=sealed))
    for digest, offset in own:
        active.add_tombstone(digest, offset)
    active.contents -= lost.get(active.sequence, 0)


@define
class _Copy:
    """A segment being rewritten under a temporary name."""

    file: Descriptor
    header: Header
    batch: Batch
    # The first frame that is kept.
    written: int = 0
    is_empty: bool = True

    def add(self, record: Record) -> None:
        self.is_empty = False
        if record.kind == FRAME:
            self.batch.frame(NUMBER.unpack_from(record.body)[0], bytes(record.body[8:]))
        elif record.kind == CONTENT:
            digest = digest_of(record.body)
            self.batch.content(digest, bytes(record.body[len(digest) :]))
        else:
            self.batch.tombstone(bytes(record.body))
        if self.batch.offset - self.written > _BATCH:
            self.flush()

    def flush(self) -> None:
        if self.batch.pieces:
            self.batch.commit(self.header.marker, 0)
            write_at(self.file, self.written, b"".join(self.batch.pieces))
            self.written = self.batch.offset
            self.batch = Batch(self.batch.offset, self.batch.seed)


def _fold(stream: Stream, entry: Entry) -> None:
    """Rewrite a sealed segment without its dead records."""
    with stream.locked():
        journal = stream.journal
        if journal is None or entry not in journal.sealed:
            return
        segment, temporary_folder = journal.segment(entry.sequence), journal.place.temporary_folder()
        before = journal.before
        older = tuple(one for one in journal.sealed if one.sequence < entry.sequence)
        state = State(before, segment.last, journal.fencing, older)
    first = min(max(segment.first, before), segment.last + 1)
    header = Header(segment.sequence, first, segment.stream_id, os.urandom(16), segment.stream)
    name, file = temporary_folder.new_file()
    try:
        encoded = encode_header(header)
        batch = Batch(len(encoded), int.from_bytes(encoded[-4:], "little"))
        batch.state(state)
        write_at(file, 0, encoded)
        copy = _Copy(file, header, batch, len(encoded))
        for chosen in _needed(stream, segment, before):
            for record in chosen:
                copy.add(record)
        assert segment.following is not None
        copy.batch.seal(segment.following)
        copy.flush()
        # Synced whatever the durability: the segment that it replaces may have been on the disk for a long time.
        sync_file(file)
        _replace(stream, entry, copy, name, temporary_folder)
    finally:
        remove(name, temporary_folder.folder)


def _needed(stream: Stream, segment: Segment, before: int) -> Iterator[Sequence[Record]]:
    """Yield the live records of a segment, a batch at a time, holding the lock for each batch."""
    found = records(segment.file, segment.header_size, segment.end)
    while True:
        try:
            some = list(islice(found, _RECORDS_AT_ONCE))
        except BadRecord as bad:
            with stream.locked():
                if stream.journal is None:
                    return
                raise stream.journal.damaged(segment.sequence, bad, segment.first - 1) from None
        if not some:
            return
        with stream.locked():
            journal = stream.journal
            if journal is None:
                return
            yield [record for record in some if _is_needed(journal, segment.sequence, before, record)]


def _is_needed(journal: Journal, sequence: int, before: int, record: Record) -> bool:
    if record.kind == FRAME:
        return bool(NUMBER.unpack_from(record.body)[0] >= before)
    if record.kind == CONTENT:
        return journal.locate(digest_of(record.body)) == (sequence, record.offset)
    # A tombstone is needed as long as a blob that it deletes exists.
    return record.kind == TOMBSTONE and journal.locate(bytes(record.body), before=sequence) is not None


def _replace(stream: Stream, entry: Entry, copy: _Copy, name: str, temporary_folder: TemporaryFolder) -> None:
    """Replace the segment with the copy, unless another process has folded it in the meantime."""
    with stream.locked():
        journal = stream.journal
        if journal is None or entry not in journal.sealed:
            return
        sealed = list(journal.sealed)
        at = sealed.index(entry)
        if copy.is_empty:
            del sealed[at]
        else:
            rename(name, temporary_folder.folder, segment_name(entry.sequence), journal.folder)
            sync_folder(journal.folder)
            folded = Segment(copy.file, entry.sequence)
            folded.read_on(size_of(copy.file))
            folded.save_index(journal.folder, temporary_folder)
            sealed[at] = folded.entry._replace(contents=min(folded.contents, entry.contents))
        journal.write_state(journal.batch(), journal.state()._replace(sealed=tuple(sealed)))
    if copy.is_empty:
        # Removed only once a state that does not list it is on the disk.
        stream.flush()
        with stream.locked():
            if stream.journal is not None:
                stream.journal.remove_segment(entry.sequence)
