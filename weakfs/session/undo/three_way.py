"""Three-way merges that undo the changes of earlier records, and keep later changes.

Undoing records `first` to `last` is a three-way merge, like that of a fork that branched off after `last` and went back
to the state before `first`: the base is the state after them, theirs the one before them, and ours the present. It is
recorded as such a merge, so that it can be read, merged and undone like any other work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session.current_timeline import ACTIVE, innermost
from weakfs.session.errors import MergeConflict, SessionError
from weakfs.session.external_filesystems import Reversible
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.slices.events import Reverted
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.session.state import MERGING, checked_text
from weakfs.session.undo.operations import REVERTED, ROLLED_BACK, Span
from weakfs.session.undo.past_states import Moments

if TYPE_CHECKING:
    from weakfs.session.conflicts.conflict_types import OnConflict
    from weakfs.session.merging.resolver import Resolver
    from weakfs.session.undo.reversion import Foreign, How, Reversion


@frozen
class Options:
    """How work is undone; see `Undo.revert`. `paths` limits it to these files and directories."""

    preview: bool = False
    on_conflict: OnConflict = "raise"
    foreign: Foreign = "keep"
    paths: Sequence[str] | None = None


@define(eq=False)
class _Outside:
    """The files of one external filesystem: as the session knew them, as they are now, and as they should become."""

    external: Reversible
    known: Any
    there: Any
    wanted: Any


@define(eq=False)
class _Work:
    """A reversion in progress: on the timeline of its transaction, or, for a preview, on a copy."""

    how: How
    cause: str
    line: Timeline
    resolver: Resolver
    paths: tuple[str, ...] | None
    outside: list[_Outside]
    keeps_foreign: bool
    changes_anything: bool = False
    # The filesystems with changes or conflicts; `None` for the session's own files.
    filesystems: set[str | None] = field(factory=set[str | None])

    @contextmanager
    def merging(self, filesystem: str | None) -> Iterator[None]:
        """Note a filesystem if merging it lists changes or conflicts of paths."""
        resolver = self.resolver
        changes, conflicts = len(resolver.changes), len(resolver.conflicts)
        try:
            yield
        finally:
            paths = [one.path for one in resolver.changes[changes:]]
            paths += [one.path for one in resolver.conflicts[conflicts:]]
            if any(path.startswith("/") for path in paths):
                self.filesystems.add(filesystem)

    @property
    def goes_to_moment(self) -> bool:
        """Whether this work restores a moment, rather than undoing records."""
        return self.how in ("restore", "rollback")


class ThreeWay(Moments):
    """The part of a session that merges the past into the present."""

    __slots__ = ()

    @staticmethod
    def _canonical_path(path: str) -> str:
        """Return the form in which slices know a path: the path itself here; a subclass may know others."""
        return path

    def _run(self, how: How, label: str, spans: list[Span], options: Options) -> Reversion:
        """Undo each span of records, the last one first: all of them or none."""
        from weakfs.session.merging.resolver import Resolver
        from weakfs.session.undo.reversion import Reversion

        preview, foreign, paths = options.preview, options.foreign, options.paths
        check_foreign(foreign)
        if isinstance(paths, str):
            raise TypeError(f"paths is {paths!r}; pass a sequence of paths, such as [{paths!r}]")
        cause = checked_text("cause", f"{how} {label}") or how
        last = self._line().rows.last()
        if last is not None and last[1] == cause and last[2] not in (REVERTED, ROLLED_BACK):
            # Earlier work with this cause is another operation.
            cause = f"{cause} at {self.seq + 1}"
        resolver = Resolver(options.on_conflict, self._path_matcher, wants_changes=True)
        wanted = None if paths is None else tuple(map(self._canonical_path, paths))
        transaction: AbstractContextManager[object] = nullcontext() if preview else self.transaction(cause=cause)
        record: int | None = None

        def note_record(merged: Timeline) -> tuple[()]:
            # Only now is the number known, if others stored records in the meantime.
            nonlocal record
            record = merged.seq
            return ()

        with transaction:
            line = self._line()
            work = _Work(how, cause, line.copy() if preview else line, resolver, wanted, [], foreign == "keep")
            detached = self._detached_around(work, spans)
            named = self._scan_outside(work)
            try:
                for span in reversed(spans):
                    self._take_back(work, span, preview=preview)
            except MergeConflict:
                if not preview:
                    raise
            if work.changes_anything and not preview:
                self._conclude(note_record)
        self._notify()
        changes = tuple(change for change in resolver.changes if change.path not in self._ways_back())
        records = tuple((span.first, span.last) for span in spans)
        return Reversion(
            changes=changes,
            conflicts=resolver.sorted_conflicts(),
            how=how,
            records=records,
            foreign=tuple(named),
            detached=detached,
            filesystems=frozenset(work.filesystems),
            record=record,
        )

    def _aims(self, seq: int, foreign: Foreign) -> dict[str, Any]:
        """Return what the external files become in a rollback to a record, by filesystem; see `External.restore`."""
        from weakfs.session.merging.resolver import Resolver

        line = self._line().copy()
        work = _Work("rollback", "rollback", line, Resolver(matcher=self._path_matcher), None, [], foreign == "keep")
        self._scan_outside(work)
        self._merge_outside(work, Span(seq + 1, line.seq))
        return {one.external.filesystem_id: one.external.aim(one.there, one.wanted) for one in work.outside}

    def _detached_around(self, work: _Work, spans: list[Span]) -> tuple[str, ...]:
        """Return the filesystems with changes that are not undone, because they are not attached."""
        found: set[str] = set()
        for span in spans:
            first, last = (span.last, work.line.seq) if work.goes_to_moment else (span.first - 1, span.last)
            found.update(self._detached(work.line, first, last))
        return tuple(sorted(found))

    def _scan_changes(self, *, preview: bool) -> None:
        """Record what the session's own programs have changed, which is an operation too."""
        with self.lock:
            self._writable()
            externals = [] if preview else self._reversible()
        for external in externals:
            external.scan_changes()

    def _scan_outside(self, work: _Work) -> list[str]:
        """Scan the external files. Return the paths that other programs changed."""
        named: list[str] = []
        for external in self._reversible():
            before = self._present(work.line)
            self._apply(work.line, external.look(), work.cause)
            now = self._present(work.line)
            known, there = external.known(before, now), external.known(now, now)
            named += external.differing(known, there)
            # With "replace", a restore starts from the files that are there, and keeps no changes made by other
            # programs. Other reversions start from the files that the session knew.
            starts_there = work.keeps_foreign or work.goes_to_moment
            work.outside.append(_Outside(external, known, there, there if starts_there else known))
        return named

    def _take_back(self, work: _Work, span: Span, *, preview: bool) -> None:
        """Undo a span of records, by a merge into the files and slices."""
        line = work.line
        if work.goes_to_moment:
            # Everything since that moment is undone.
            span = Span(span.last + 1, line.seq)
        base, target = span.last, span.first - 1
        states = self._around(line, span)
        after, before = (states[seq]._table("state") for seq in (base, target))
        then = self._gone_back(after, before, work.paths, files_only=work.how == "restore")
        merged = line.copy()
        if any(self._differs(tag, after, then) for tag in {*after, *then}):
            # Conflicts are raised together with those of external files.
            with suppress(MergeConflict), work.merging(None):
                self._merge(work, merged, base, after, target, then)
        changed_outside = self._merge_outside(work, span)
        is_changed = merged.seq != line.seq and self._are_different(line.state, merged.state)
        if not is_changed and not changed_outside and work.how not in ("undo", "redo"):
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
        first, last = (target, target) if work.goes_to_moment else (span.first, span.last)
        self._apply(self._line(), Reverted(work.how, first, last), work.cause)
        work.line = self._line()

    def _merge(self, work: _Work, line: Timeline, base: int, after: Table, target: int, then: Table) -> None:
        """Merge into `line` a fork that branched off after record `base` and went back to `target`."""
        from weakfs.session.merging.merge import absorb

        at = self.now()
        point = Point(after, Log(), base, line.snapshots, 0, line.numbering)
        row = (at, work.cause, ROLLED_BACK, (target, None, then, None, None))
        branch = Timeline(state=then, rows=Log((row,)), base=Mark(base, after, EMPTY_TABLE, 0))
        name = f"{self.session_id}/{work.how}{line.seq}"
        with self._while_running(MERGING):
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

    def _merge_outside(self, work: _Work, span: Span) -> list[_Outside]:
        """Merge the external files. Return those that change."""
        if work.outside and work.goes_to_moment and work.keeps_foreign and span.first <= work.line.dropped:
            raise SessionError(
                f"cannot go back to record {span.first - 1} and keep what other programs changed since: the records "
                f"that show which changes are theirs were dropped; pass foreign='replace'"
            )
        changed: list[_Outside] = []
        for one in work.outside:
            before, after = self._files_around(work.line, one.external, span)
            if work.goes_to_moment and not work.keeps_foreign:
                # The files that are to be kept differ from those that the session knew.
                then = self._states(work.line, {span.first - 1})[span.first - 1]
                before = one.external.known(then, self._present(work.line))
            with work.merging(one.external.filesystem_id), self._while_running(MERGING):
                one.wanted = one.external.merged(after, one.wanted, before, paths=work.paths, resolver=work.resolver)
            if one.external.differing(one.there, one.wanted):
                changed.append(one)
        if work.resolver.conflicts:
            raise MergeConflict(work.resolver.sorted_conflicts())
        return changed


def check_foreign(foreign: Foreign | None) -> None:
    """Raise `ValueError` for a choice that does not exist."""
    if foreign not in (None, "keep", "replace"):
        raise ValueError(f"cannot treat changes made by other programs as {foreign!r}; pass 'keep' or 'replace'")
