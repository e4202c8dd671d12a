"""Forks: independent sessions that start from the state of another one and can be merged into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self, overload
from weakref import ref

from weakfs.messages import a_type
from weakfs.session.current_timeline import ACTIVE, innermost
from weakfs.session.slices.events import Record
from weakfs.session.state import MERGING, checked_text
from weakfs.session.transactions.commit_or_rollback import Transactions

if TYPE_CHECKING:
    from weakfs.session.conflicts.conflict_types import MergeReport, OnConflict
    from weakfs.session.history.timeline import Point, Timeline
    from weakfs.session.merging.resolver import Resolver


class Forks(Transactions):
    """The part of a session that makes forks and merges them."""

    __slots__ = ()

    @staticmethod
    def _path_matcher(path: str) -> Callable[[str], bool]:
        """Return a test for a key of the mapping passed to `merge`: a path here; a subclass may support globs."""
        from weakfs.session.merging.resolver import same_path

        return same_path(path)

    def fork(self, name: str | None = None) -> Self:
        """Return an independent session that starts from the current state of this one. O(1)."""
        with self.lock:
            if self._closed is not None:
                self._refuse()
            line = self._line()
            cls = type(self)
            fork = cls.__new__(cls)
            session_id, branch = self._next_id(checked_text("name", name) or "f"), line.branch(is_fork=True)
            fork._start(session_id, self.origin_id, self._clock, self._rules, branch, None, line.point(), ref(self))
            self._began(fork)
            return fork

    @overload
    def merge(
        self,
        fork: Self,
        *,
        cause: str | None = None,
        on_conflict: OnConflict = "raise",
        preview: Literal[False] = False,
    ) -> Record: ...
    @overload
    def merge(
        self, fork: Self, *, cause: str | None = None, on_conflict: OnConflict = "raise", preview: Literal[True]
    ) -> MergeReport: ...
    def merge(
        self, fork: Self, *, cause: str | None = None, on_conflict: OnConflict = "raise", preview: bool = False
    ) -> Record | MergeReport:
        """Merge what a fork of this session did since it was forked or last merged.

        STATE slices are merged three-way with the merge function of their type, LOG slices are concatenated, and the
        fork's records follow the returned record. Raises `MergeConflict`, which lists everything that both sides
        changed differently, with nothing changed, and `ValueError` if `fork` was not forked from this session.

        `on_conflict` resolves conflicts. `"ours"` takes our side of each conflicting hunk of a text, and of anything
        else that conflicts; `"theirs"` takes the other side. `"markers"` writes both sides into a text as git does; a
        conflict without lines to mark remains. A function is called with each `ConflictEntry` and returns one of these
        or a `Resolution`. A mapping has one of these for each path or glob; the first key that matches is used. With
        `preview`, return a `MergeReport` of what the merge would do, and change nothing.
        """
        if not isinstance(fork, Forks):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"cannot merge {fork!r:.60}: it is {a_type(fork)}; pass a fork of this session")
        # Imported here because most sessions never merge.
        from weakfs.session.merging.merge import absorb, merge_snapshots
        from weakfs.session.merging.resolver import Resolver

        resolver = Resolver(on_conflict, self._path_matcher, wants_changes=preview)
        with self.lock, fork.lock:
            line, base = self._writable(), self._base_of(fork)
            if preview:
                self._resolve(resolver, line, base, fork)
                return resolver.report()
            self._use_rules(self._rules.joined(fork._rules))
            # Prepared on a copy and assigned in one step, together with the fork's new base.
            merged = line.copy()
            at, named = self.now(), line.cause if cause is None else checked_text("cause", cause)
            with self._while_running(MERGING), fork._while_running(MERGING):
                seq, event, renumbering = absorb(
                    self._rules,
                    merged,
                    base,
                    fork._trunk,
                    fork=fork.session_id,
                    at=at,
                    cause=named,
                    own=self.session_id,
                    resolver=resolver,
                )
            if fork._trunk.touches_snapshots_since(base):
                merge_snapshots(
                    self._rules,
                    base,
                    merged,
                    fork._trunk,
                    renumbering=renumbering,
                    number=lambda _: self._next_number(),
                )
            now = fork._trunk.point()
            now.numbering, now.shifts = base.numbering, renumbering.shifts
            own = innermost(self, ACTIVE.get())
            if not self._stored(line, merged):
                again: Record = self.merge(fork, cause=cause, on_conflict=on_conflict)
                return again
            if own is None:
                self._trunk, fork._base = merged, now
                self._post_since(merged, line.seq)
            else:
                own.merged.append((fork, base))
                own.line, fork._base = merged, now
        self._notify()
        return Record(seq, at, event, named)

    def _base_of(self, fork: Forks) -> Point:
        """Return where a fork of this session left it or was last merged. Raise `ValueError` for another session."""
        parent = fork._parent() if fork._parent is not None else None
        if fork._base is None or parent is not self:
            remedy = "merge a fork of this session" if parent is None else f"merge it into {parent.session_id!r}"
            raise ValueError(
                f"cannot merge {fork.session_id!r} into {self.session_id!r}: the first is not a fork of the second; "
                f"{remedy}"
            )
        return fork._base

    def _resolve(self, resolver: Resolver, line: Timeline, base: Point, fork: Forks) -> None:
        """Pass the conflicts of a merge to `resolver`, and change nothing."""
        from weakfs.session.merging.merge import merged_state

        rules = self._rules.joined(fork._rules)
        with self._while_running(MERGING), fork._while_running(MERGING):
            merged_state(rules, line, base, fork._trunk, fork=fork.session_id, own=self.session_id, resolver=resolver)
