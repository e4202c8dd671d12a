"""Undo: undoing the last operations, one past call, or everything since a moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, overload

from weakfs.messages import a_type
from weakfs.session.errors import SessionError, UnknownSnapshot
from weakfs.session.history.timeline import Timeline
from weakfs.session.history.views import SessionSnapshot
from weakfs.session.slices.events import Record
from weakfs.session.undo.operations import REVERTED, Operation, Span, has_failed, merges, operations, spans_of, undone
from weakfs.session.undo.three_way import Options, ThreeWay, check_foreign

if TYPE_CHECKING:
    from weakfs.session.conflicts.conflict_types import OnConflict
    from weakfs.session.undo.reversion import Foreign, Reversion

NO_CHANGE = (
    "it changed nothing that can be undone; pass a call or records that changed something, or use redo to reverse an "
    "undo"
)

# The number of the newest records that are searched for an id similar to an unknown one.
SEARCHED = 2000


class Undo(ThreeWay):
    """The part of a session that undoes work."""

    __slots__ = ()

    def undo(
        self, n: int = 1, *, preview: bool = False, on_conflict: OnConflict = "raise", foreign: Foreign = "keep"
    ) -> Reversion:
        """Undo the last `n` operations that have not been undone yet: calls, merges, rollbacks and single records.

        Calls that changed nothing, or failed, do not count. O(records). The options and the exceptions are those of
        `revert`; `SessionError` also means that there are fewer operations.
        """
        return self._go_back("undo", n, Options(preview, on_conflict, foreign))

    def redo(
        self, n: int = 1, *, preview: bool = False, on_conflict: OnConflict = "raise", foreign: Foreign = "keep"
    ) -> Reversion:
        """Undo the last `n` undos, if nothing else has been done since. See `undo`."""
        return self._go_back("redo", n, Options(preview, on_conflict, foreign))

    def revert(
        self,
        target: int | str | Record | range,
        *,
        paths: Sequence[str] | None = None,
        preview: bool = False,
        on_conflict: OnConflict = "raise",
        foreign: Foreign = "keep",
    ) -> Reversion:
        """Undo what a call, a record or a range of record numbers changed, and keep later changes.

        A call is given by its id, which is the cause of its records; calls that it made are part of it. Each text is
        merged by lines, and moves are followed. If a later change touched the same lines, this raises `MergeConflict`,
        with nothing changed: "ours" is the present version, "theirs" the version before the call. `on_conflict`
        resolves conflicts as in `merge`. `paths` limits the revert to these files and directories. With `preview`,
        nothing is changed.

        External files are scanned first. Changes that other programs made in them are kept and merged, or replaced with
        `foreign="replace"`; the result names these files. Reverting the reversion restores everything. Raises
        `SessionError` if there is no such call, or if it changed nothing.
        """
        return self._reading(partial(self._revert, target, Options(preview, on_conflict, foreign, paths)))

    def _revert(self, target: int | str | Record | range, options: Options) -> Reversion:
        self._scan_changes(preview=options.preview)
        with self.lock:
            line = self._writable()
            if isinstance(target, str):
                spans = spans_of(target, line.rows, line.dropped, line.base.block_end, self._rules.calls)
            else:
                spans = [self._span(line, target)]
            if not any(self._changes_in(line, span) for span in spans):
                reason = self._why_not(line, target) if isinstance(target, str) else NO_CHANGE
                raise SessionError(f"cannot revert {_named(target)}: {reason}")
            label = target if isinstance(target, str) else f"{spans[0].first}-{spans[0].last}"
            return self._run("revert", label, spans, options)

    def _why_not(self, line: Timeline, cause: str) -> str:
        """Return why a call has nothing to revert, with a remedy."""
        if all(row[1] != cause for row in line.rows):
            newest = {row[1]: None for row in line.rows.since(max(len(line.rows) - SEARCHED, 0)) if row[1] is not None}
            near = get_close_matches(cause, newest, n=1)
            dropped = f" (records 1 to {line.dropped} were dropped)" if line.dropped else ""
            hint = f"did you mean {near[0]!r}?" if near else "pass the id of a call that changed something"
            return f"no call of session {self.session_id!r} has this id{dropped}; {hint}"
        if has_failed(cause, line.rows, line.dropped, line.base.block_end, self._rules.calls):
            return "it failed, and its changes were rolled back at once; pass the id of a call that succeeded"
        return NO_CHANGE

    def restore(
        self,
        moment: int | str | SessionSnapshot,
        *,
        paths: Sequence[str] | None = None,
        preview: bool = False,
        foreign: Foreign = "replace",
    ) -> Reversion:
        """Restore the files as they were at an earlier moment: all of them, or those at `paths`. Other slices stay.

        `moment` is a record number, a snapshot, its id or its tag. Changes that other programs made in external files
        are replaced, or kept and merged with `foreign="keep"`; the result names these files. `undo` undoes the restore.
        To restore every slice, use `rollback`. Raises `UnknownSnapshot` if there is no such record or snapshot.
        """

        options = Options(preview, foreign=foreign, paths=paths)

        def run() -> Reversion:
            self._scan_changes(preview=preview)
            with self.lock:
                self._writable()
                seq = self._at(moment).seq
                label = moment if isinstance(moment, str) else str(seq)
                return self._run("restore", label, [Span(seq, seq)], options)

        return self._reading(run)

    @overload
    def rollback(
        self,
        target: int | str | SessionSnapshot,
        *,
        cause: str | None = None,
        foreign: Foreign | None = None,
        preview: Literal[False] = False,
    ) -> Record: ...
    @overload
    def rollback(
        self,
        target: int | str | SessionSnapshot,
        *,
        cause: str | None = None,
        foreign: Foreign | None = None,
        preview: Literal[True],
    ) -> Reversion: ...
    def rollback(
        self,
        target: int | str | SessionSnapshot,
        *,
        cause: str | None = None,
        foreign: Foreign | None = None,
        preview: bool = False,
    ) -> Record | Reversion:
        """Go back to a snapshot, given the snapshot, its id or its tag, or to a record number; LOG slices stay.

        O(1) for a snapshot. A record number costs as much as `at`.

        The rollback is itself a record: rolling back to the record before it undoes it, and so does `undo`. Attached
        filesystems go back too: a rollback to a snapshot restores them exactly; a rollback to a record, which has no
        snapshot, undoes what was changed through the session since then. Processes that work in their files are stopped
        first. If a filesystem fails, all return to their previous state and its error is raised. Raises
        `UnknownSnapshot` if there is no such record or snapshot.

        The record's event lists in `foreign` the external files that other programs had changed. With `foreign="keep"`,
        their changes are kept, line by line, and with `"replace"` they are replaced. By default, a rollback to a
        snapshot replaces them, and a rollback to a record number keeps them in files that the session has not changed
        since. With `preview`, nothing is changed, and a `Reversion` is returned.
        """
        check_foreign(foreign)
        is_exact = type(target) is not int
        if not preview:
            aims = None
            if foreign is not None and not (is_exact and foreign == "replace"):
                aims = partial(self._aims, foreign=foreign)
            go = partial(self._go_to, target, cause, aims)
            return go() if self._log is None else self._reading(go)

        options = Options(preview=True, foreign=foreign or ("replace" if is_exact else "keep"))

        def run() -> Reversion:
            with self.lock:
                self._writable()
                seq = self._at(target).seq
                return self._run("rollback", str(seq), [Span(seq, seq)], options)

        return self._reading(run)

    def _go_back(self, how: Literal["undo", "redo"], n: int, options: Options) -> Reversion:
        if type(n) is not int:
            raise TypeError(f"n is {n!r:.60}; pass a number of operations, or use revert to undo one call")
        if n < 1:
            raise ValueError(f"cannot {how} {n} operations; pass a number of at least 1")
        newest: int | None = None

        def run() -> Reversion:
            nonlocal newest
            self._scan_changes(preview=options.preview)
            with self.lock:
                line = self._writable()
                if newest is None:
                    newest = line.seq
                chosen = self._newest(how, n, line, newest)
                spans = [one.span for one in chosen]
                label = ", ".join(one.cause or str(one.first) for one in chosen)
                return self._run(how, label, spans[::-1], options)

        return self._reading(run)

    def _newest(self, how: Literal["undo", "redo"], n: int, line: Timeline, newest: int) -> list[Operation]:
        """Return the last `n` operations to undo or redo, up to record `newest`.

        Later operations were read during an earlier attempt: the caller does not mean them.
        """
        every = operations(line.rows, line.dropped, line.base.block_end, self._rules.calls)
        known = [one for one in every if one.last <= newest]
        found = list(islice(self._undoable(line, known) if how == "undo" else self._undone(line, known), n))
        if len(found) == n:
            return found
        if line.seq > newest:
            raise SessionError(
                f"cannot {how} {n} operations of session {self.session_id!r}: another process has dropped records up "
                f"to {line.dropped}, and stored records {newest + 1} to {line.seq}; look at these, and {how} again if "
                f"the newest operation is meant"
            )
        raise SessionError(
            f"cannot {how} {n} operations of session {self.session_id!r}: there are only {len(found)} to {how}"
            if found
            else f"session {self.session_id!r} has nothing to {how}"
        )

    def _undoable(self, line: Timeline, every: list[Operation]) -> Iterator[Operation]:
        """Yield the operations that are not undone, newest first."""
        gone, _ = undone(every)
        for one in reversed(every):
            if one.how not in ("undo", "redo") and one not in gone and self._changes(line, one):
                yield one

    def _undone(self, line: Timeline, every: list[Operation]) -> Iterator[Operation]:
        """Yield the undos that are not redone, newest first, up to the newest other change."""
        _, redone = undone(every)
        for one in reversed(every):
            if one.how == "undo":
                if one not in redone:
                    yield one
            elif one.how != "redo" and self._changes(line, one):
                return

    def _span(self, line: Timeline, target: int | Record | range) -> Span:
        """Return the records that a target refers to: those of the timeline, or of a fork that was merged into it."""
        if isinstance(target, range):
            if not target or target.step != 1:
                raise ValueError(
                    f"cannot revert {target!r}: pass a range of record numbers with step 1, such as range(3, 8)"
                )
            first, last = target[0], target[-1]
        elif isinstance(target, Record):
            first = last = target.seq
        elif isinstance(target, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            first = last = target
        else:
            raise TypeError(
                f"cannot revert {a_type(target)}; pass the id of a call, a record, its number, or a range of numbers"
            )
        if not line.dropped < first <= last <= line.seq:
            raise UnknownSnapshot(
                f"cannot revert records {first} to {last}: the session holds {line.dropped + 1} to {line.seq}; pass "
                f"some of these"
            )
        if first <= line.base.block_end:
            raise SessionError(
                f"cannot revert record {first}: the first records of the fork that it was merged with were dropped; "
                f"revert records after {line.base.block_end}"
            )
        if first == last and line.rows[first - line.dropped - 1][2] == REVERTED:
            return self._reversion(line, last)
        for merge, end in merges(line.rows, line.dropped, line.base.block_end):
            if merge < first <= last <= end:
                return Span(first, last, merge)
            if merge < first <= end:
                raise SessionError(
                    f"cannot revert records {first} to {last}: only the first of them were merged by record {merge}; "
                    f"revert range({merge}, {last + 1}), or range({first}, {end + 1})"
                )
            if first <= merge <= last < end:
                last = end
        return Span(first, last)

    def _reversion(self, line: Timeline, last: int) -> Span:
        """Return the records of the reversion that ends with a `Reverted` record, which changes nothing itself."""
        rows, dropped, calls = line.rows, line.dropped, self._rules.calls
        for one in operations(rows, dropped, line.base.block_end, calls):
            if one.last == last and one.how is not None:
                return one.span
        for merge, end in merges(rows, dropped, line.base.block_end):
            if merge < last <= end:
                # A fork, or a transaction during which others changed the session, did other work too.
                inside = operations(islice(rows, merge - dropped, end - dropped), merge, calls=calls)
                return next((Span(one.first, last, merge) for one in inside if one.last == last), Span(last, last))
        return Span(last, last)


def _named(target: int | str | Record | range) -> str:
    if isinstance(target, str):
        return repr(target)
    if isinstance(target, range):
        return f"records {target[0]} to {target[-1]}"
    return f"record {target.seq if isinstance(target, Record) else target}"
