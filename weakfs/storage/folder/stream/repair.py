"""Checking a whole stream, and giving up damaged parts. Nothing is deleted; files are set aside."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from weakfs.storage.folder.errors import JournalDamaged
from weakfs.storage.folder.files import (
    Descriptor,
    TemporaryFolder,
    open_file,
    read_at,
    remove,
    rename,
    size_of,
    sync_folder,
    write_at,
)
from weakfs.storage.folder.journal.journal import open_journal
from weakfs.storage.folder.journal.reader import BadRecord
from weakfs.storage.folder.journal.records import Batch, Entry, Header, HeaderProblem, State, encode_segment
from weakfs.storage.folder.journal.segment import Segment, open_segment, segment_name
from weakfs.storage.folder.stream.checkpoints import checkpoint_numbers, read_checkpoint
from weakfs.storage.folder.stream.lease_file import read_lease
from weakfs.storage.folder.stream.stream import Stream

DAMAGED = ".damaged"
_SEQUENCE = re.compile(r"([0-9]{16})\.(?:journal|next)")


def check(stream: Stream) -> list[JournalDamaged]:
    """Read everything in a stream, and return the damage that was found: at most one place per file."""
    found: list[JournalDamaged] = []
    with stream.opened_folder() as folder:
        if folder is None:
            return []
        for look in (lambda: read_checkpoint(folder, stream.path), lambda: read_lease(folder, stream.path)):
            try:
                look()
            except JournalDamaged as damaged:
                found.append(damaged)
        try:
            journal = open_journal(stream.place, folder)
            expected = journal.before
            for entry in (*journal.sealed, journal.active.entry):
                path, segment = os.path.join(stream.path, segment_name(entry.sequence)), None
                try:
                    segment = open_segment(segment_name(entry.sequence), entry.sequence, folder)
                    segment.read_on(size_of(segment.file))
                    if segment.first > expected:
                        newest = os.path.join(stream.path, segment_name(journal.active.sequence))
                        cause = f"it lists frames {expected} to {segment.first - 1} as kept, but they are missing"
                        found.append(JournalDamaged(newest, 0, journal.head, cause))
                    expected = max(expected, segment.last + 1)
                    if entry.sequence != journal.active.sequence and segment.following is None:
                        raise BadRecord(segment.end, "the file ends before the segment does")
                except BadRecord as bad:
                    found.append(
                        JournalDamaged(path, bad.offset, segment.last if segment else entry.first - 1, bad.cause)
                    )
                except HeaderProblem as problem:
                    found.append(JournalDamaged(path, 0, entry.first - 1, str(problem)))
        except JournalDamaged as damaged:
            found.append(damaged)
    return found


def give_up(stream: Stream, damaged: JournalDamaged, temporary_folder: TemporaryFolder) -> list[str]:
    """Cut a stream before a damaged place; return the names of the files that were set aside.

    The frames up to `damaged.number` are kept, with the contents that were stored before the damage. Raises the error
    again if nothing can be saved.
    """
    with stream.opened_folder() as folder:
        if folder is None:
            return []
        name = os.path.basename(damaged.path)
        match = _SEQUENCE.fullmatch(name)
        if match is None:
            _set_aside(name, folder)
            return [name]
        sequence = int(match[1])
        pieces = _saved(sequence, stream, folder)
        if pieces is None:
            raise damaged
        # Newest first: after a crash, the remaining stream is still damaged, and the next attempt continues.
        later = [name for name in os.listdir(folder.number) if _SEQUENCE.fullmatch(name) and int(name[:16]) >= sequence]
        names = list(later)
        for name in sorted(later, reverse=True):
            if int(name[:16]) > sequence:
                _set_aside(name, folder)
        own = segment_name(sequence)
        with suppress(FileNotFoundError):
            # Processes that have the file open check it again only if its size has changed.
            file = open_file(own, folder, os.O_RDWR)
            write_at(file, size_of(file), b"\0")
        with suppress(FileExistsError, FileNotFoundError):
            os.link(own, own + DAMAGED, src_dir_fd=folder.number, dst_dir_fd=folder.number)
        temporary_folder.publish(pieces, segment_name(sequence), folder, is_synced=True)
        for number in checkpoint_numbers(folder):
            if damaged.number is not None and number > damaged.number:
                names.append(f"{number:020d}.checkpoint")
                _set_aside(names[-1], folder)
        for name in os.listdir(folder.number):
            if name.endswith(".index") and int(name[:16]) >= sequence:
                remove(name, folder)
        sync_folder(folder)
        return sorted(names)


def _saved(sequence: int, stream: Stream, folder: Descriptor) -> list[bytes] | None:
    """Return the bytes of a segment with the intact part of a damaged one; `None` if nothing can be saved."""
    with suppress(HeaderProblem, FileNotFoundError):
        segment = open_segment(segment_name(sequence), sequence, folder)
        _read_what_is_whole(segment)
        if segment.state_at and segment.following is None:
            batch = Batch(segment.end, segment.seed)
            batch.state(_as_the_files_are(segment.state()._replace(head=segment.last), segment.first, folder))
            batch.commit(segment.marker, 0)
            return [read_at(segment.file, 0, segment.end), *batch.pieces]
    older = [int(name[:16]) for name in os.listdir(folder.number) if _SEQUENCE.fullmatch(name)]
    if not (older := sorted(number for number in older if number < sequence)):
        return None
    # The previous segment is intact, and records the state of the stream at its end.
    before = open_segment(segment_name(older[-1]), older[-1], folder)
    _read_what_is_whole(before)
    state = before.state()
    header = Header(sequence, before.last + 1, before.stream_id, os.urandom(16), stream.name)
    state = state._replace(head=before.last, sealed=(*state.sealed, before.entry))
    return encode_segment(header, _as_the_files_are(state, header.first, folder))


def _as_the_files_are(state: State, first: int, folder: Descriptor) -> State:
    """Return a state that matches the files: frames may have been trimmed, and segments folded, since it was written.

    `first` is the number of the first frame that may be in the segment with the new state.
    """
    sealed: list[Entry] = []
    before = state.before
    for entry in state.sealed:
        with suppress(FileNotFoundError, HeaderProblem):
            segment = open_segment(segment_name(entry.sequence), entry.sequence, folder)
            if segment.first > (sealed[-1].last if sealed else 0) + 1:
                before = max(before, segment.first)
            sealed.append(entry._replace(first=segment.first))
    if first > (sealed[-1].last if sealed else 0) + 1:
        before = max(before, first)
    return state._replace(before=before, sealed=tuple(sealed))


def _read_what_is_whole(segment: Segment) -> None:
    """Read the whole batches of a segment, except for its seal."""
    with suppress(BadRecord):
        segment.read_on(size_of(segment.file))


def _set_aside(name: str, folder: Descriptor) -> None:
    rename(name, folder, name + DAMAGED, folder)
