"""Moments: the slices and the external files as earlier records left them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from weakfs.session.errors import SessionError
from weakfs.session.external_filesystems import Reversible
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.reduction import Row, advance
from weakfs.session.history.state_at import state_at
from weakfs.session.history.timeline import Timeline
from weakfs.session.history.views import SessionView
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.slice import GoBack
from weakfs.session.slices.table import Table
from weakfs.session.transactions.forks import Forks
from weakfs.session.undo.operations import ROLLED_BACK, Operation, Span, merges

# Moments at most this many records apart are read in one pass.
MOST_SHARED = 5_000


class Moments(Forks):
    """The part of a session that determines what earlier records changed."""

    __slots__ = ()

    def _changes(self, line: Timeline, one: Operation) -> bool:
        """Return whether an operation changed anything that can be undone."""
        return not one.has_failed and self._changes_in(line, one.span)

    def _changes_in(self, line: Timeline, span: Span) -> bool:
        """Return whether records changed anything that can be undone."""
        states = self._around(line, span)
        before, after = (states[seq]._table("state") for seq in (span.first - 1, span.last))
        before = self._gone_back(after, before, None)
        return (
            self._are_different(before, after)
            or any(external.differing(*self._files_around(line, external, span)) for external in self._reversible())
            or bool(self._detached(line, span.first - 1, span.last))
        )

    def _are_different(self, before: Table, after: Table) -> bool:
        """Return whether slices differ by their values, apart from those that only hold what was observed."""
        rules = self._rules
        declared = {rules.by_type[each.cls].tag: each for each in rules.registry.slices}
        observed = {tag for tag, each in declared.items() if each.is_observed}
        return any(
            self._differs(tag, before, after, declared[tag].equal if tag in declared else Log[Any].equals)
            for tag in {*before, *after} - observed
        )

    def _around(self, line: Timeline, span: Span) -> dict[int, SessionView]:
        """Return the slices before and after the records of a span, by the number of the record before them."""
        numbers = {span.first - 1, span.last}
        if span.merge is None:
            return self._states(line, numbers)
        # Imported only when it is needed.
        from weakfs.session.replay.verification import Rebuilding

        tables = Rebuilding(self._rules, line, self.session_id, self.origin_id).inside(numbers)
        if tables.keys() != numbers:
            raise SessionError(
                f"cannot revert records {span.first} to {span.last} by themselves: the records of session "
                f"{self.session_id!r} do not say where their fork began; revert its merge, record {span.merge}"
            )
        return {seq: SessionView(self._rules, seq, table, line.logs) for seq, table in tables.items()}

    def _files_around(self, line: Timeline, external: Reversible, span: Span) -> tuple[Any, Any]:
        """Return the external files before and after the records of a span.

        Both include the changes by other programs that were found in these records.
        """
        from weakfs.session.merging.resolver import Resolver

        before, last = span.first - 1, span.last
        found: list[int] = []
        for seq, row in _records_between(line, before, last):
            if row[2] in external.sightings:
                found.append(seq)
            elif row[2] == ROLLED_BACK:
                found = [one for one in found if one <= row[3][0]]
        present, around = self._present(line), self._around(line, span)
        files_before, files_after = (external.known(around[seq], present) for seq in (before, last))
        for views in self._around_each(line, found):
            then, now = (external.known(view, present) for view in views)
            if external.differing(then, files_before):
                files_before = external.merged(then, files_before, now, resolver=Resolver("theirs"))
            else:
                # A merge ignores new times of an entry that is otherwise unchanged.
                files_before = now
        return files_before, files_after

    def _around_each(self, line: Timeline, numbers: list[int]) -> Iterator[tuple[SessionView, SessionView]]:
        """Yield the slices before and after each of these records; for a record of a merged fork, those of the fork.

        In those of a fork, only slices about files outside the session are up to date.
        """
        if not numbers:
            return
        forks = [
            (merge, inside)
            for merge, end in merges(line.rows, line.dropped, line.base.block_end)
            if (inside := {seq for seq in numbers if merge < seq <= end})
        ]
        own = set(numbers).difference(*(inside for _, inside in forks))
        views = self._states(line, {*own, *(seq - 1 for seq in own)})
        pairs = {seq: (views[seq - 1], views[seq]) for seq in own}
        for merge, inside in forks:
            for seq, (before, after) in self._around_each_of_fork(line, merge, inside).items():
                pairs[seq] = self._view(before), self._view(after)
        yield from (pairs[seq] for seq in numbers if seq in pairs)

    def _view(self, mark: Mark) -> SessionView:
        return SessionView(self._rules, mark.seq, mark.state, mark.logs)

    def _around_each_of_fork(self, line: Timeline, merge: int, numbers: set[int]) -> dict[int, tuple[Mark, Mark]]:
        """Return the slices of a merged fork before and after some of its records.

        They are replayed from the record at which it began. If that was dropped, they are replayed from the earliest
        state that is kept: what the fork found is the same, and what happened in between is found there already.
        """
        _, _, _, (_, base, count, _, is_renumbered, *_) = next(iter(line.rows.since(merge - 1 - line.dropped)))
        if not is_renumbered:
            # In files of format version 1, the records do not say where it began.
            return {}
        rules = line.past.rules_at(merge, self._rules)
        began = state_at(line, self._rules, max(base, line.dropped))
        rows = tuple(islice(line.rows.since(merge - line.dropped), count))
        return _around_each_inside(_of_outside(rules), rows, Mark(merge, began.state, began.logs, 0), numbers)

    def _detached(self, line: Timeline, first: int, last: int) -> list[str]:
        """Return the filesystems that records `first + 1` to `last` changed, but that are not attached."""
        outside = [one.outside for one in self._rules.registry.slices if one.outside is not None]
        changed: list[tuple[int, str]] = []
        for seq, (_, _, tag, values) in _records_between(line, first, last):
            if tag == ROLLED_BACK and values[3]:
                changed = [one for one in changed if one[0] <= values[0]]
            else:
                changed += [(seq, name) for which in outside if (name := which(tag, values)) is not None]
        return sorted({name for _, name in changed} - {external.filesystem_id for external in self._attached})

    def _gone_back(self, now: Table, then: Table, paths: tuple[str, ...] | None, *, files_only: bool = False) -> Table:
        """Return the slices of `now`, with those that can be restored as they were in `then`."""
        rules, ways, table = self._rules, self._ways_back(), now
        for tag in {*now, *then}:
            way, empty = ways.get(tag), rules.specs[tag].empty if tag in rules.specs else Log[Any]()
            mine, theirs = now.get(tag, empty), then.get(tag, empty)
            if mine is theirs:
                continue
            if way is not None:
                theirs = way(mine, theirs, paths)
            elif files_only or paths is not None:
                continue
            if theirs is not mine:
                table = table.set(tag, theirs)
        return table

    def _ways_back(self) -> dict[str, GoBack]:
        """Return the functions that restore the slices that hold files, by tag."""
        rules = self._rules
        known = ((rules.by_type.get(one.cls), one.go_back) for one in rules.registry.slices)
        return {spec.tag: way for spec, way in known if spec is not None and way is not None}

    def _differs(self, tag: str, one: Table, other: Table, equal: Callable[[Any, Any], bool] = operator.is_) -> bool:
        spec = self._rules.specs.get(tag)
        empty = Log[Any]() if spec is None else spec.empty
        return not equal(one.get(tag, empty), other.get(tag, empty))

    def _states(self, line: Timeline, numbers: set[int]) -> dict[int, SessionView]:
        """Return the slices after some records, read in one pass if they are near each other: equal ones are shared.

        For a dropped record, they are the slices of a snapshot that was taken after it.
        """
        kept: dict[int, SessionView] = {}
        if dropped := {seq for seq in numbers if seq < line.dropped}:
            kept = {one.seq: self._at_entry(line, one) for one in line.snapshots.values() if one.seq in dropped}
            numbers = numbers - kept.keys()
        if not numbers:
            return kept
        rules, (first, *more) = self._rules, sorted(numbers)
        marks = {first: state_at(line, rules, first)}
        if more and more[-1] - first <= MOST_SHARED:
            passed = line.past.advance(rules, marks[first], line.rows.since(first - line.dropped), more)
            marks |= {each.seq: each for each in passed}
        else:
            marks |= {seq: state_at(line, rules, seq) for seq in more}
        return kept | {seq: SessionView(rules, seq, mark.state, mark.logs) for seq, mark in marks.items()}

    def _reversible(self) -> list[Reversible]:
        return [external for external in self._attached if isinstance(external, Reversible)]


def _around_each_inside(
    rules: Rules, rows: Sequence[Row], began: Mark, numbers: set[int]
) -> dict[int, tuple[Mark, Mark]]:
    """Return the slices before and after some records of a fork that began with the slices of `began`.

    For a record of a fork that was merged into it, they are those of that fork.
    """
    start = began.seq
    forks = [
        (merge, end, inside)
        for merge, end in merges(rows, start)
        if (inside := {seq for seq in numbers if merge < seq <= end})
    ]
    own = numbers.difference(*(inside for _, _, inside in forks))
    # Where the forks began: before `start`, if they left at the beginning of this one.
    bases = {merge: max(rows[merge - start - 1][3][1], start) for merge, _, _ in forks}
    stops = {*own, *(seq - 1 for seq in own), *bases.values()} - {start}
    states = {start: began} | {mark.seq: mark for mark in advance(rules, began, rows, sorted(stops))}
    pairs = {seq: (states[seq - 1], states[seq]) for seq in own}
    for merge, end, inside in forks:
        left = states[bases[merge]]
        inner = Mark(merge, left.state, left.logs, 0)
        pairs |= _around_each_inside(rules, rows[merge - start : end - start], inner, inside)
    return pairs


def _of_outside(rules: Rules) -> Rules:
    """Return the rules without the reducers of slices that are not about files outside the session."""
    by_type = rules.by_type
    tags = {by_type[one.cls].tag for one in rules.registry.slices if one.outside is not None and one.cls in by_type}
    return rules.limited_to(frozenset(tags))


def _records_between(line: Timeline, first: int, last: int) -> Iterator[tuple[int, Row]]:
    """Yield records `first + 1` to `last`, except for those that were dropped, with their numbers."""
    first = max(first, line.dropped)
    return enumerate(islice(line.rows.since(first - line.dropped), last - first), first + 1)
