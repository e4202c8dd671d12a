"""Undo: taking back what earlier records changed, and keeping what came later.

Taking records `first` to `last` back is a three-way merge, as of a fork that left after `last` and went back to the
state before `first`: the base is the state after them, theirs the one before them, and ours the present. It is recorded
as such a merge, so that it can be read, merged and taken back like any other work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, Literal, get_args

from attrs import define, frozen

from weakfs.session.errors import MergeConflict, SessionError, UnknownSnapshot
from weakfs.session.events import Record, Reverted, RolledBack
from weakfs.session.external import Reversible
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.log import Log
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.merging.conflicts import ConflictEntry, MergedPath, OnConflict
from weakfs.session.merging.forks import Forks
from weakfs.session.merging.merge import absorb
from weakfs.session.merging.resolver import Resolver
from weakfs.session.replay.reduction import advance
from weakfs.session.slices.slice import GoBack
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.session.slices.tags import tag_of
from weakfs.session.state import checked_text
from weakfs.session.transactions.transaction import ACTIVE, innermost
from weakfs.session.undo.operations import Operation, operations
from weakfs.session.views import SessionView, Snapshot

How = Literal["undo", "redo", "revert", "restore"]
# Moments so many records apart are read in one pass.
MOST_SHARED = 5_000
# How many paths a note names.
MOST_NAMED = 20
# What becomes of what other programs changed in external files.
Foreign = Literal["keep", "replace"]


@frozen
class Reversion:
    """What was taken back, or with `preview` would be: the paths that change, and the conflicts that would remain.

    `records` are the numbers of the first and last record of each operation that was taken back. `foreign` names the
    external files that other programs had changed. `record` is the last record of the reversion; `None` for a preview,
    or if a revert or restore had nothing to change.
    """

    how: How
    records: tuple[tuple[int, int], ...]
    changes: tuple[MergedPath, ...] = ()
    conflicts: tuple[ConflictEntry, ...] = ()
    foreign: tuple[str, ...] = ()
    record: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change."""
        return tuple(dict.fromkeys(change.path for change in self.changes))

    @property
    def lines_added(self) -> int:
        """The number of lines that are added."""
        return sum(change.lines_added for change in self.changes)

    @property
    def lines_removed(self) -> int:
        """The number of lines that are removed."""
        return sum(change.lines_removed for change in self.changes)

    @property
    def note(self) -> str:
        """A message for the model: which files changed under it."""
        if not self.changes:
            return "Nothing changed."
        shown = ", ".join(self.paths[:MOST_NAMED])
        more = len(self.paths) - MOST_NAMED
        shown += f" and {more} more" if more > 0 else ""
        return (
            f"These were changed by {self.how} (+{self.lines_added} -{self.lines_removed} lines): {shown}. Read them "
            f"again before you rely on what you know of them."
        )


@define(eq=False)
class _Outside:
    """The files of one external filesystem: as the session knew them, as they are, and as they are to be."""

    external: Reversible
    known: Any
    there: Any
    wanted: Any


@define(eq=False)
class _Work:
    """A reversion in the making: on the timeline of its transaction, or for a preview on a copy."""

    how: How
    cause: str
    line: Timeline
    resolver: Resolver
    paths: tuple[str, ...] | None
    outside: list[_Outside]
    keeps_foreign: bool
    changes_anything: bool = False


class Undo(Forks):
    """The part of a session that takes work back."""

    __slots__ = ()

    @staticmethod
    def _canonical_path(path: str) -> str:
        """Return the form in which slices know a path: the path itself here; a subclass may know others."""
        return path

    def undo(
        self, n: int = 1, *, preview: bool = False, on_conflict: OnConflict = "raise", foreign: Foreign = "keep"
    ) -> Reversion:
        """Undo the last `n` operations that are not undone yet: calls, merges, rollbacks and single records.

        Calls that changed nothing, or failed, do not count. O(records). See `revert` for the options and for what is
        raised; `SessionError` if there are fewer operations.
        """
        return self._go_back("undo", n, preview=preview, on_conflict=on_conflict, foreign=foreign)

    def redo(
        self, n: int = 1, *, preview: bool = False, on_conflict: OnConflict = "raise", foreign: Foreign = "keep"
    ) -> Reversion:
        """Undo the last `n` undos, as long as nothing else was done since. See `undo`."""
        return self._go_back("redo", n, preview=preview, on_conflict=on_conflict, foreign=foreign)

    def revert(
        self,
        target: int | str | Record | range,
        *,
        paths: Sequence[str] | None = None,
        preview: bool = False,
        on_conflict: OnConflict = "raise",
        foreign: Foreign = "keep",
    ) -> Reversion:
        """Take back what a call, a record or a range of record numbers changed, and keep what came later.

        A call is given by its id, which is the cause of its records. Each text is merged by lines, and moves are
        followed. If something later changed the same lines, raises `MergeConflict` with nothing changed: ours is what
        is there now, theirs what was there before the call. `on_conflict` resolves conflicts as in `merge`. `paths`
        limits it to these files and directories. With `preview`, nothing is changed.

        External files are scanned first: what other programs changed in them is kept and merged, or with
        `foreign="replace"` replaced, and the result names it. Reverting the reversion brings everything back. Raises
        `SessionError` if there is no such call.
        """
        with self.lock:
            line = self._writable()
            if isinstance(target, str):
                known = [one for one in operations(line.rows, line.dropped, line.base.block_end) if one.how is None]
                spans = [(one.first, one.last) for one in known if one.cause == target]
                if not spans:
                    raise SessionError(
                        f"cannot revert {target!r}: no record of session {self.session_id!r} has this cause; pass the "
                        f"id of a call that changed something here, or for one in a merged fork the merge's record"
                    )
            else:
                spans = [self._span(line, target)]
            label = target if isinstance(target, str) else f"{spans[0][0]}-{spans[0][1]}"
            return self._run("revert", label, spans, preview, on_conflict, foreign, paths)

    def restore(
        self,
        moment: int | str | Snapshot,
        *,
        paths: Sequence[str] | None = None,
        preview: bool = False,
        foreign: Foreign = "replace",
    ) -> Reversion:
        """Bring the files of an earlier moment back, all of them or those at `paths`; other slices stay.

        `moment` is a record number, a snapshot, its id or its tag. What other programs changed in external files is
        replaced, or with `foreign="keep"` kept and merged; the result names it. `undo` takes the restore back.
        `rollback` takes back every slice.
        """
        with self.lock:
            self._writable()
            seq = self.at(moment).seq
            label = moment if isinstance(moment, str) else str(seq)
            return self._run("restore", label, [(seq, seq)], preview, "raise", foreign, paths)

    def _go_back(
        self, how: Literal["undo", "redo"], n: int, *, preview: bool, on_conflict: OnConflict, foreign: Foreign
    ) -> Reversion:
        if n < 1:
            raise ValueError(f"cannot {how} {n} operations; pass a number of at least 1")
        with self.lock:
            line = self._writable()
            every = operations(line.rows, line.dropped, line.base.block_end)
            chosen: list[Operation] = []
            for one in self._undoable(line, every) if how == "undo" else self._undone(line, every):
                chosen.append(one)
                if len(chosen) == n:
                    break
            if len(chosen) < n:
                raise SessionError(
                    f"cannot {how} {n} operations of session {self.session_id!r}: there are only {len(chosen)} to {how}"
                    if chosen
                    else f"session {self.session_id!r} has nothing to {how}"
                )
            spans = [(one.first, one.last) for one in chosen]
            label = ", ".join(one.cause or str(one.first) for one in chosen)
            return self._run(how, label, spans[::-1], preview, on_conflict, foreign, None)

    def _undoable(self, line: Timeline, every: list[Operation]) -> Iterator[Operation]:
        """Yield the operations that are not undone, newest first."""
        undone = 0
        for one in reversed(every):
            if one.how in ("undo", "redo"):
                undone += 1 if one.how == "undo" else -1
            elif self._changes(line, one):
                if not undone:
                    yield one
                undone = max(undone - 1, 0)

    def _undone(self, line: Timeline, every: list[Operation]) -> Iterator[Operation]:
        """Yield the undos that are not redone, newest first, up to the newest other change."""
        redone = 0
        for one in reversed(every):
            if one.how == "redo":
                redone += 1
            elif one.how == "undo":
                if not redone:
                    yield one
                redone = max(redone - 1, 0)
            elif self._changes(line, one):
                return

    def _changes(self, line: Timeline, one: Operation) -> bool:
        """Return whether an operation changed anything that can be taken back."""
        rules, states = self._rules, self._states(line, {one.first - 1, one.last})
        after = states[one.last]._table("state")
        before = self._gone_back(after, states[one.first - 1]._table("state"), None)
        observed = {rules.by_type[each.cls].tag for each in rules.registry.slices if each.is_observed}
        return any(self._differs(tag, before, after) for tag in {*before, *after} - observed) or any(
            external.differing(*self._files_around(line, external, one.first - 1, one.last))
            for external in self._reversible()
        )

    def _files_around(self, line: Timeline, external: Reversible, first: int, last: int) -> tuple[Any, Any]:
        """Return the external files before and after the records from `first + 1` to `last`.

        What others had changed by then, and these records found, belongs to both.
        """
        found: list[int] = []
        for seq, row in enumerate(islice(line.rows.since(first - line.dropped), last - first), first + 1):
            if row[2] in external.sightings:
                found.append(seq)
            elif row[2] == tag_of(RolledBack):
                found = [one for one in found if one <= row[3][0]]
        states = self._states(line, {first, last, *found, *(seq - 1 for seq in found)})
        files = {seq: external.known(view, self._present(line)) for seq, view in states.items()}
        before = files[first]
        for seq in found:
            before = external.merged(files[seq - 1], before, files[seq], resolver=Resolver("theirs"))
        return before, files[last]

    def _span(self, line: Timeline, target: int | Record | range) -> tuple[int, int]:
        """Return the first and the last of the records that are meant."""
        if isinstance(target, range):
            if not target or target.step != 1:
                raise ValueError(f"cannot revert {target!r}: pass a range of record numbers with step 1, such as 3..7")
            first, last = target[0], target[-1]
        else:
            first = last = target.seq if isinstance(target, Record) else target
        if not line.dropped < first <= last <= line.seq:
            raise UnknownSnapshot(
                f"cannot revert records {first} to {last}: the session holds {line.dropped + 1} to {line.seq}; pass "
                f"some of these"
            )
        for one in operations(line.rows, line.dropped, line.base.block_end):
            # The records of a merged fork have no states here: its merge is taken back as a whole.
            if one.first < first <= one.last and self._is_inside(line, first - 1):
                raise SessionError(
                    f"cannot revert record {first} alone: it was merged with records {one.first} to {one.last}; revert "
                    f"range({one.first}, {one.last + 1})"
                )
            if one.first <= last < one.last and self._is_inside(line, last):
                last = one.last
        return first, last

    def _is_inside(self, line: Timeline, seq: int) -> bool:
        return line.mark_at(self._rules, seq).block_end > seq

    def _run(
        self,
        how: How,
        label: str,
        spans: list[tuple[int, int]],
        preview: bool,
        on_conflict: OnConflict,
        foreign: Foreign,
        paths: Sequence[str] | None,
    ) -> Reversion:
        """Take each span of records back, the last first: all or none of them."""
        if foreign not in get_args(Foreign):
            raise ValueError(f"cannot treat changes of other programs as {foreign!r}; pass 'keep' or 'replace'")
        if isinstance(paths, str):
            raise TypeError(f"paths is {paths!r}; pass a sequence of paths, such as [{paths!r}]")
        cause = checked_text("cause", f"{how} {label}") or how
        last = self._line().rows.last()
        if last is not None and last[1] == cause and last[2] not in (tag_of(Reverted), tag_of(RolledBack)):
            # Work that has this cause already is another operation.
            cause = f"{cause} at {self.seq + 1}"
        resolver = Resolver(on_conflict, self._path_matcher, wants_changes=True)
        wanted = None if paths is None else tuple(map(self._canonical_path, paths))
        transaction: AbstractContextManager[object] = nullcontext() if preview else self.transaction(cause=cause)
        record = None
        with transaction:
            line = self._line()
            work = _Work(how, cause, line.copy() if preview else line, resolver, wanted, [], foreign == "keep")
            named = self._look(work)
            try:
                for span in reversed(spans):
                    self._take_back(work, span, preview=preview)
            except MergeConflict:
                if not preview:
                    raise
            if work.changes_anything and not preview:
                record = self.seq
        self._notify()
        changes = tuple(change for change in resolver.changes if change.path not in self._ways_back())
        return Reversion(how, tuple(spans), changes, resolver.sorted_conflicts(), tuple(named), record)

    def _look(self, work: _Work) -> list[str]:
        """Scan the external files. Return the paths that other programs changed."""
        named: list[str] = []
        for external in self._reversible():
            before = self._present(work.line)
            self._apply(work.line, external.look(), work.cause)
            now = self._present(work.line)
            known, there = external.known(before, now), external.known(now, now)
            found = external.differing(known, there)
            named += found
            # A restore replaces by taking nothing over from what is there; the rest, by starting from what was known.
            starts_there = work.keeps_foreign or work.how == "restore"
            work.outside.append(_Outside(external, known, there, there if starts_there else known))
        return named

    def _take_back(self, work: _Work, span: tuple[int, int], *, preview: bool) -> None:
        """Merge what takes a span of records back into the files and slices."""
        first, last = span
        line = work.line
        if work.how == "restore":
            base, target = line.seq, last
        else:
            base, target = last, first - 1
        states = self._states(line, {base, target})
        after, before = (states[seq]._table("state") for seq in (base, target))
        then = self._gone_back(after, before, work.paths, files_only=work.how == "restore")
        merged = line.copy()
        if any(self._differs(tag, after, then) for tag in {*after, *then}):
            self._merge(work, merged, base, after, target, then)
        changed_outside = self._merge_outside(work, base, target)
        if merged.seq == line.seq and not changed_outside and work.how not in ("undo", "redo"):
            return
        work.changes_anything = True
        if preview:
            work.line = merged
            return
        own = innermost(self, ACTIVE.get())
        assert own is not None
        own.line = merged
        for one in changed_outside:
            one.external.replace(one.wanted, work.cause)
            one.there = one.wanted
        self._apply(self._line(), Reverted(work.how, first, last), work.cause)
        work.line = self._line()

    def _merge(self, work: _Work, line: Timeline, base: int, after: Table, target: int, then: Table) -> None:
        """Merge a fork into `line` that left after record `base` and went back to `target`."""
        at = self.now()
        point = Point(after, Log(), base, line.snapshots, 0, line.numbering)
        row = (at, work.cause, tag_of(RolledBack), (target, None, then))
        branch = Timeline(state=then, rows=Log((row,)), base=Mark(base, after, EMPTY_TABLE, 0))
        name = f"{self.session_id}/{work.how}{line.seq}"
        absorb(
            self._rules,
            line,
            point,
            branch,
            fork=name,
            at=at,
            cause=work.cause,
            own=self.session_id,
            resolver=work.resolver,
        )

    def _merge_outside(self, work: _Work, base: int, target: int) -> list[_Outside]:
        """Merge the external files. Return those that change."""
        changed: list[_Outside] = []
        for one in work.outside:
            if work.how == "restore":
                # What is to be kept differs from what the session knew.
                before, after = self._files_around(work.line, one.external, target, base)
                if not work.keeps_foreign:
                    then = self._states(work.line, {target})[target]
                    before = one.external.known(then, self._present(work.line))
            else:
                before, after = self._files_around(work.line, one.external, target, base)
            one.wanted = one.external.merged(after, one.wanted, before, paths=work.paths, resolver=work.resolver)
            if one.external.differing(one.there, one.wanted):
                changed.append(one)
        if work.resolver.conflicts:
            raise MergeConflict(work.resolver.sorted_conflicts())
        return changed

    def _gone_back(self, now: Table, then: Table, paths: tuple[str, ...] | None, *, files_only: bool = False) -> Table:
        """Return the slices of `now` with those of `then` that go back."""
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
        """Return how the slices that hold files go back, by tag."""
        rules = self._rules
        known = ((rules.by_type.get(one.cls), one.go_back) for one in rules.registry.slices)
        return {spec.tag: way for spec, way in known if spec is not None and way is not None}

    def _differs(self, tag: str, one: Table, other: Table) -> bool:
        spec = self._rules.specs.get(tag)
        empty = Log[Any]() if spec is None else spec.empty
        return one.get(tag, empty) is not other.get(tag, empty)

    def _states(self, line: Timeline, numbers: set[int]) -> dict[int, SessionView]:
        """Return the slices after some records, read in one pass if they are near each other: equal ones are shared."""
        rules, (first, *more) = self._rules, sorted(numbers)
        marks = {first: line.mark_at(rules, first)}
        if more and more[-1] - first <= MOST_SHARED and not line.past.eras:
            mark = marks[first]
            passed = advance(rules, mark, line.rows.since(first - line.dropped), more)
            marks |= {each.seq: each for each in passed}
        else:
            marks |= {seq: line.mark_at(rules, seq) for seq in more}
        return {seq: SessionView(rules, seq, mark.state, mark.logs) for seq, mark in marks.items()}

    def _present(self, line: Timeline) -> SessionView:
        return SessionView(self._rules, line.seq, line.state, line.logs)

    def _reversible(self) -> list[Reversible]:
        return [external for external in self._attached if isinstance(external, Reversible)]
