"""The history of a durable session: records and LOG values that are read from frames on demand.

An index with one entry for every few hundred records shows with which frame to start. States in records, such as those
of rollbacks, are relative to the state before the frame, which is not available for old frames: they are in their own
documents, written with each checkpoint.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from threading import RLock
from typing import Any

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session.codec.blob_table import Json
from weakfs.session.durable.frames.decoder import Frame, FrameDecoder, parsed
from weakfs.session.errors import RecordsDropped, SessionFileError
from weakfs.session.history.reduction import Row
from weakfs.session.slices.table import Table
from weakfs.storage.event_store import EventStore

# The minimum number of records between two entries of the index.
GAP = 256
# The maximum number of parts of a range, whatever length a damaged checkpoint claims for it.
MOST_PARTS = 1 << 16
# How many runs of records are kept after being read.
RECENT = 4


@frozen(eq=False)
class IndexEntry:
    """A place in the history: the first frame after record `seq`.

    `counts` holds the number of records of each type up to there.
    """

    frame: int
    seq: int
    counts: dict[str, int]


@define(eq=False)
class StreamHistory:
    """The records of one stream, by number. Every method may be called from any thread."""

    store: EventStore
    stream: str
    decoder: FrameDecoder
    # Returns the state in a record, given the record's number.
    state_of: Callable[[int], Table]
    # The newest record whose state `state_of` knows: that of the newest checkpoint.
    until: int = 0
    index: list[IndexEntry] = field(factory=list[IndexEntry])
    # The approximate size of the frames and their contents in bytes.
    size: int = 0
    _counts: Counter[str] = field(factory=Counter[str])
    # Rows that have been added but not counted yet, and the record before the frame that gets the next entry of the
    # index.
    _uncounted: list[Sequence[Any]] = field(factory=list[Sequence[Any]])
    _due: int = 0
    _recent: dict[int, list[Row]] = field(factory=dict[int, list[Row]])
    _lock: Any = field(factory=RLock)

    def forget(self) -> None:
        """Start with an empty index."""
        self.index, self.size, self._recent = [], 0, {}
        self._counts, self._uncounted, self._due = Counter(), [], 0

    @property
    def counts(self) -> Counter[str]:
        """The number of records of each type."""
        if self._uncounted:
            self._counts.update([row[2] for row in self._uncounted])
            self._uncounted = []
        return self._counts

    def note(self, number: int, frame: Frame, size: int) -> None:
        """Count a frame that was read, of `size` bytes."""
        for row in frame.get("blobs", ()):
            if type(row) is dict and type(row.get("size")) is int:
                size += row["size"]
        self.add(number, frame["after"], frame.get("rows", ()), size)

    def add(self, number: int, after: int, rows: Iterable[Sequence[Any]], size: int) -> None:
        """Count a frame of rows that follow record `after`. Together with its contents, it has `size` bytes."""
        self.size += size
        if after >= self._due:
            self._open(number, after)
        self._uncounted += rows

    def _open(self, number: int, after: int) -> None:
        self.index.append(IndexEntry(number, after, dict(self.counts)))
        self._due = after + GAP

    def first_frame(self, dropped: int) -> int:
        """Return the number of the first frame that is still needed when the records up to `dropped` are dropped."""
        place = bisect_right(self.index, dropped, key=attrgetter("seq")) - 1
        return self.index[place].frame if place >= 0 else 0

    def split(self, dropped: int) -> None:
        """Add an index entry at the first frame that is still needed once the records up to `dropped` are gone.

        Without it, all frames back to the previous entry would be kept. O(records between two entries).
        """
        place = bisect_right(self.index, dropped, key=attrgetter("seq")) - 1
        if place < 0:
            return
        entry = self.index[place]
        frame_number, seq, counts = entry.frame, entry.seq, Counter(entry.counts)
        for number, data in self.store.read(self.stream, after=entry.frame - 1):
            rows = parsed(number, data).get("rows", ())
            if seq + len(rows) > dropped:
                break
            frame_number, seq = number + 1, seq + len(rows)
            counts.update([row[2] for row in rows])
        with self._lock:
            self.index.insert(place + 1, IndexEntry(frame_number, seq, dict(counts)))
            self._recent = {}

    def counts_before(self, dropped: int) -> dict[str, int]:
        """Return how many events precede that frame, by type."""
        place = bisect_right(self.index, dropped, key=attrgetter("seq")) - 1
        return self.index[place].counts if place >= 0 else {}

    def rows(self, first: int, count: int) -> list[Row]:
        """Return `count` records from number `first` on."""
        place = bisect_right(self.index, first - 1, key=attrgetter("seq")) - 1
        found: list[Row] = []
        while len(found) < count and 0 <= place < len(self.index):
            run = self._run(place)
            start = first + len(found) - 1 - self.index[place].seq
            found += run[start : start + count - len(found)]
            place += 1
        if len(found) != count:
            raise _dropped(f"records {first} to {first + count - 1}")
        return found

    def events(self, tag: str, first: int, count: int) -> list[Any]:
        """Return `count` events of a type, skipping the first `first` of that type."""
        place = bisect_right(self.index, first, key=lambda entry: entry.counts.get(tag, 0)) - 1
        build = self.decoder.rules.registry.shape(tag).build
        found: list[Any] = []
        while len(found) < count and 0 <= place < len(self.index):
            events = [row[3] for row in self._run(place) if row[2] == tag]
            start = first + len(found) - self.index[place].counts.get(tag, 0)
            found += [build(*values) for values in events[start : start + count - len(found)]]
            place += 1
        if len(found) != count:
            raise _dropped(f"events {first} to {first + count - 1} of {tag!r}")
        return found

    def _run(self, place: int) -> list[Row]:
        """Return the records from one entry of the index to the next."""
        with self._lock:
            known = self._recent.get(place)
            if known is not None:
                return known
            entry = self.index[place]
            is_last = place + 1 == len(self.index)
            limit = None if is_last else self.index[place + 1].frame - entry.frame
            frames: list[tuple[int, Frame]] = []
            for number, data in self.store.read(self.stream, after=entry.frame - 1, limit=limit):
                frame = parsed(number, data)
                if frame["after"] >= self.until:
                    break
                frames.append((number, frame))
                if frame["after"] + len(frame.get("rows", ())) >= self.until:
                    # The records that follow are not needed, and may be damaged.
                    break
            if frames and frames[0][0] > entry.frame:
                raise _dropped(f"records from {entry.seq + 1} on")
            if frames and frames[0][1]["after"] != entry.seq:
                raise SessionFileError(
                    f"it does not follow record {entry.seq}: frames were trimmed or mixed up",
                    where=f"frame {frames[0][0]}",
                )
            rows = self.decoder.rows(frames, self.state_of)
            if not is_last and self.index[place + 1].seq <= self.until:
                if len(self._recent) >= RECENT:
                    del self._recent[next(iter(self._recent))]
                self._recent[place] = rows
            return rows

    def written(self, dropped: int) -> Json:
        """Return the index as JSON, without the entries before record `dropped`."""
        first = max(bisect_right(self.index, dropped, key=attrgetter("seq")) - 1, 0)
        entries = self.index[first:]
        return {
            "frames": [entry.frame for entry in entries],
            "seqs": [entry.seq for entry in entries],
            "counts": {tag: [entry.counts.get(tag, 0) for entry in entries] for tag in sorted(self.counts)},
            "totals": dict(sorted(self.counts.items())),
            "bytes": self.size,
        }

    def take_over(self, row: Json) -> None:
        """Read an index that `written` returned."""
        tags = list(row["counts"])
        columns = zip(*(row["counts"][tag] for tag in tags), strict=True) if tags else iter(() for _ in row["frames"])
        self._recent = {}
        self.index = [
            IndexEntry(frame, seq, dict(zip(tags, counts, strict=True)))
            for frame, seq, counts in zip(row["frames"], row["seqs"], columns, strict=True)
        ]
        self._counts, self._uncounted, self.size = Counter(row["totals"]), [], row.get("bytes", 0)
        self._due = self.index[-1].seq + GAP if self.index else 0


@frozen(eq=False)
class StoredRecords:
    """A stretch of records that is read from storage."""

    history: StreamHistory
    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    def load(self) -> list[Row]:
        """Read the rows."""
        return self.history.rows(self.first, self.count)


def _dropped(what: str) -> RecordsDropped:
    return RecordsDropped(
        f"{what} are not in storage: another process dropped them; call session.refresh() and try again"
    )


@frozen(eq=False)
class StoredEvents:
    """A stretch of a slice's values that are the events of one type."""

    history: StreamHistory
    tag: str
    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    def load(self) -> list[Any]:
        """Read the values."""
        return self.history.events(self.tag, self.first, self.count)


def stretches(first: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range, each as its start and length.

    They are no longer than `size` unless there would be too many.
    """
    size = max(size, -(-count // MOST_PARTS))
    for start in range(first, first + count, size):
        yield start, min(size, first + count - start)
