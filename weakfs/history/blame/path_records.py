"""An index of the records that may have changed the file at a path."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, fields

from weakfs.class_decorators import define, frozen
from weakfs.history.blame.ancestry import Ancestry
from weakfs.reducers import ExternalTrees, FileTree
from weakfs.reducers import events as e
from weakfs.session import Merged, RolledBack, SliceAppended, SliceCleared, SliceSeeded
from weakfs.session.history.reduction import Row, event_of
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log, Stretch
from weakfs.session.slices.tags import tag_of
from weakfs.tools import ToolCall

# The file events with one path: those that change only that file, and those that also change everything below it.
AT_PATH = (e.FileWritten, e.FileAppended, e.FileSpliced)
BELOW_PATH = (e.EntryDeleted, e.EntryFound, e.EntryPut, e.EntryHidden, e.LinkMade, e.DirectoryMade, e.TreeMounted)
WHOLE = (e.TreeRestored, e.TreeSeen, e.LayerEmptied)
MOVES = (e.EntryMoved, e.EntryCopied)

MERGED, ROLLED_BACK = tag_of(Merged), tag_of(RolledBack)
SEEDED, APPENDED, CLEARED = tag_of(SliceSeeded), tag_of(SliceAppended), tag_of(SliceCleared)
SEEN, EMPTIED = tag_of(e.TreeSeen), tag_of(e.LayerEmptied)
FILES, EXTERNAL = tag_of(FileTree), tag_of(ExternalTrees)
CALLED = tag_of(ToolCall)

# The positions of the fields in events that change files: path, destination and filesystem.
_PLACES = {
    tag_of(type_): [
        *([names.index("source"), names.index("destination")] if type_ in MOVES else [names.index("path")] * 2),
        names.index("filesystem"),
    ]
    for type_ in (*AT_PATH, *BELOW_PATH, *MOVES)
    for names in [[each.name for each in fields(type_)]]
}
_AT_PATH, MOVED = {tag_of(one) for one in AT_PATH}, tag_of(e.EntryMoved)
_WHOLE = {tag_of(one): [each.name for each in fields(one)].index("filesystem") for one in WHOLE}

# The number of unpacked chunks of records that are kept.
UNPACKED = 4


@define(eq=False)
class Rows:
    """The records of a session by number; reading neighboring records unpacks each chunk only once."""

    rules: Rules
    rows: Log[Row]
    dropped: int
    _read: dict[int, tuple[Stretch[Row], Sequence[Row]]] = field(
        factory=dict[int, "tuple[Stretch[Row], Sequence[Row]]"], init=False
    )

    def __getitem__(self, seq: int) -> Row:
        position = seq - self.dropped - 1
        for stretch, items in self._read.values():
            if 0 <= position - stretch.start < len(items):
                return items[position - stretch.start]
        stretch = self.rows._stretch.at(position)
        if len(self._read) >= UNPACKED:
            del self._read[next(iter(self._read))]
        self._read[stretch.start] = stretch, stretch.read()
        return self._read[stretch.start][1][position - stretch.start]

    def event(self, seq: int) -> Any:
        """Return the event of a record."""
        return event_of(self.rules, self[seq])

    @property
    def newest(self) -> int:
        """The number of the newest record."""
        return self.dropped + len(self.rows)


@frozen(eq=False)
class Place:
    """A file of one filesystem; `None` stands for the session's own files."""

    filesystem: str | None
    path: str


@define(eq=False)
class PathRecords:
    """The numbers of the records that may have changed each path, and how the records follow one another."""

    ancestry: Ancestry
    at_path: dict[tuple[str | None, str], list[int]] = field(factory=dict[Any, Any])
    below: dict[tuple[str | None, str], list[int]] = field(factory=dict[Any, Any])
    # The records that concern all files of a filesystem, and those that concern all filesystems.
    whole: dict[str | None, list[int]] = field(factory=dict[Any, Any])
    all: list[int] = field(factory=list[int])
    moves: dict[str | None, list[int]] = field(factory=dict[Any, Any])
    # The records of calls by id, and of snapshots of external files by the source that they name.
    calls: dict[str, list[int]] = field(factory=dict[str, list[int]])
    sources: dict[tuple[str | None, str], int] = field(factory=dict[Any, Any])
    # The records that emptied the layer over other files.
    emptied: list[int] = field(factory=list[int])
    # The records of events that custom reducers turn into files.
    others: set[int] = field(factory=set[int])

    def add(self, rules: Rules, rows: Iterable[Row], first: int) -> None:
        """Add records from number `first` on."""
        own = {tag_of(one) for one in (*AT_PATH, *BELOW_PATH, *MOVES, *WHOLE, e.ModeChanged)}
        others = {
            rules.registry.by_type[type_].tag
            for type_, steps in rules.steps.items()
            if type_ in rules.registry.by_type and any(step.tag in (FILES, EXTERNAL) for step in steps)
        } - own
        add = self.ancestry.add
        for seq, row in enumerate(rows, first):
            tag, values = row[2], row[3]
            places = _PLACES.get(tag)
            if places is not None:
                self._add_change(seq, tag, values[places[2]], values[places[0]], values[places[1]])
            elif tag in _WHOLE:
                self.whole.setdefault(values[_WHOLE[tag]], []).append(seq)
                if tag == SEEN:
                    self.sources.setdefault((values[_WHOLE[tag]], values[1]), seq)
                elif tag == EMPTIED:
                    self.emptied.append(seq)
            elif tag in (MERGED, ROLLED_BACK):
                self.all.append(seq)
            elif tag == CALLED:
                self.calls.setdefault(values[0], []).append(seq)
            elif tag in (SEEDED, APPENDED, CLEARED):
                if values[0] in (FILES, EXTERNAL):
                    self.all.append(seq)
            elif tag in others:
                self.all.append(seq)
                self.others.add(seq)
            add(seq, event_of(rules, row) if tag == MERGED else None)

    def _add_change(self, seq: int, tag: str, filesystem: str | None, path: str, destination: str) -> None:
        if tag in _AT_PATH:
            self.at_path.setdefault((filesystem, path), []).append(seq)
            return
        for one in {path, destination}:
            self.below.setdefault((filesystem, one), []).append(seq)
        if tag == MOVED:
            self.moves.setdefault(filesystem, []).append(seq)

    def newest(self, place: Place, state: int | None) -> int | None:
        """Return the newest record up to `state` that may have changed a file.

        If there is none, return the number of the newest dropped record, or `None` if that is not known.
        """
        if state is None:
            return None
        lists = self._lists(place)
        for first, last in self.ancestry.ranges(state):
            found = max((_newest(numbers, last) for numbers in lists), default=0)
            if found >= first:
                return found
            if first == self.ancestry.dropped:
                return first
        return None

    def emptied_before(self, seq: int) -> int:
        """Return the newest record before number `seq` that emptied the layer, or 0 if there is none."""
        return _newest(self.emptied, seq - 1)

    def changed_within(self, place: Place, first: int, last: int) -> bool:
        """Return whether one of the records may have changed a file."""
        return any(_newest(numbers, last) >= first for numbers in self._lists(place))

    def moves_within(self, filesystem: str | None, first: int, last: int) -> list[int]:
        """List the records that moved something."""
        moves = self.moves.get(filesystem, [])
        return moves[bisect_left(moves, first) : bisect_right(moves, last)]

    def writes_before(self, place: Place, seq: int) -> list[int]:
        """List the records before number `seq` that wrote or edited the file at a path."""
        writes = self.at_path.get((place.filesystem, place.path), [])
        return writes[: bisect_left(writes, seq)]

    def next_change(self, place: Place, state: int) -> int | None:
        """Return the first record after `state` that may have changed or found a file."""
        later = [numbers[at] for numbers in self._lists(place) if (at := bisect_right(numbers, state)) < len(numbers)]
        return min(later, default=None)

    def _lists(self, place: Place) -> list[list[int]]:
        path, filesystem = place.path, place.filesystem
        lists = [self.all, self.whole.get(filesystem), self.at_path.get((filesystem, path))]
        while True:
            lists.append(self.below.get((filesystem, path)))
            if path == "/":
                return [numbers for numbers in lists if numbers]
            path = path.rpartition("/")[0] or "/"


def _newest(numbers: list[int], last: int) -> int:
    """Return the greatest of some numbers up to `last`; 0 if there is none."""
    place = bisect_right(numbers, last)
    return numbers[place - 1] if place else 0
