"""The part of a history that was read rather than made: from a file, from storage, or from records that were replayed.

Some of its keyframes come with it. If these are so far apart that replaying the records between them would be slow,
others are made when a moment between them is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve
from pyrsistent import PMap, pmap

from weakfs.class_decorators import frozen
from weakfs.platforms import garbage_collection_paused
from weakfs.session.history.keyframes import GAP, Keyframes, Mark, PackedMark, last_before
from weakfs.session.history.reduction import Row, advance
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log

# Immutable values that many timelines share.
NO_MARKS = Log[PackedMark]()
NO_KEYFRAMES: PMap[int, Keyframes] = pmap()

# If the keyframes of a file are no further apart than this, no others are made between them: replaying this many writes
# takes less time than packing one more tree of 100,000 files.
FAR = 8 * GAP


@frozen(eq=False)
class Past:
    """The records up to `seq`, and what is needed to read the states between them. An immutable value."""

    seq: int = 0
    # The keyframes that came with the records, and, by the number of each, those made after it.
    lasting: Log[PackedMark] = NO_MARKS
    made: PMap[int, Keyframes] = NO_KEYFRAMES
    # The last record that came from a file or storage, the slices that such records may change, and the tags of their
    # events if these are known. A program registers its own reducers after loading, so loaded records are read by the
    # newest rules; but they do not change a slice that the program installs only then.
    loaded: int = 0
    slices: frozenset[str] = frozenset()
    tags: frozenset[str] | None = None
    # The rules under which older records were made since, each with the last record to which they apply.
    eras: tuple[tuple[int, Rules], ...] = ()

    def rules_at(self, seq: int, rules: Rules) -> Rules:
        """Return the rules under which record `seq` is read, if `rules` are the newest."""
        if seq <= self.loaded:
            return rules.limited_to(self.slices)
        return next((old for last, old in self.eras if seq <= last), rules)

    def advance(
        self, rules: Rules, mark: Mark | PackedMark, rows: Iterable[Row], stops: Iterable[int]
    ) -> Iterator[Mark]:
        """Do what `weakfs.session.history.reduction.advance` does, with each row under its own rules."""
        remaining = iter(rows)
        for stop in stops:
            for last in (self.loaded, *(last for last, _ in self.eras)):
                if mark.seq < last < stop:
                    mark = next(advance(self.rules_at(last, rules), mark, remaining, (last,)))
            mark = next(advance(self.rules_at(stop, rules), mark, remaining, (stop,)))
            yield mark

    def until(self, seq: int, lasting: Log[PackedMark]) -> Past:
        """Return the past up to record `seq`, with these keyframes."""
        return evolve(self, seq=seq, lasting=lasting, made=NO_KEYFRAMES)

    def suits(self, rules: Rules) -> bool:
        """Return whether the keyframes are valid under other rules: no event here changes a slice that these add."""
        more = rules.specs.keys() - self.slices
        if not more or self.tags is None:
            return not more
        changing = (type_ for type_, steps in rules.steps.items() if any(step.tag in more for step in steps))
        return self.tags.isdisjoint(rules.registry.by_type[type_].tag for type_ in changing)

    def nearest(self, rules: Rules, base: Mark, rows: Log[Row], seq: int) -> tuple[Mark | PackedMark, Past]:
        """Return a keyframe at or before record `seq`, and the past with the keyframes that were made to find it.

        `rows` are the records after `base`. They are read once, as far as needed.
        """
        last = min(seq, self.seq)
        start = last_before(self.lasting, last)
        known = start.seq if start is not None else base.seq
        made = self.made.get(known) or Keyframes(start=start, is_past=True, distance=self._distance(start))
        if made.due(base) > last:
            return made.before(seq) or start or base, self

        def stops() -> Iterator[int]:
            while (due := made.due(base)) <= last:
                yield due

        newest = made.kept.last(start or base)
        # Nothing becomes garbage here, and the collector would take more time than the reading.
        with garbage_collection_paused():
            for mark in self.advance(rules, newest, rows.since(newest.seq - base.seq), stops()):
                made = made.kept_with(mark, rows, base)
        return made.before(seq) or start or base, evolve(self, made=self.made.set(known, made))

    def _distance(self, start: PackedMark | None) -> int:
        """Return the distance of the keyframes that are made after a lasting one.

        If lasting keyframes are far apart, states are large, and making a keyframe takes as long as reading 10,000
        records.
        """
        if not self.lasting:
            return GAP
        seq = 0 if start is None else start.seq
        end = next((mark.seq for mark in self.lasting if mark.seq > seq), self.seq)
        if isinstance(start, PackedMark):
            return min(max(end - seq, GAP), FAR)
        # Records that are in storage take longer to read.
        return max((end - seq) // (2 * GAP), 1) * GAP
