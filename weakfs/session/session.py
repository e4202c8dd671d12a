"""The session: the one mutable object, holding immutable slices that events change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Token
from os import PathLike
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import uuid4

from weakfs.session.delivery import Bus, Delivery, Handler
from weakfs.session.errors import RollbackIncomplete, SessionClosed, UnknownSnapshot
from weakfs.session.events import Record, RolledBack, SliceAppended, SliceCleared, SliceSeeded
from weakfs.session.externals import External, Repair, repair_all, restore_all, snapshot_all, undo_all
from weakfs.session.merging import absorb
from weakfs.session.registry import Registry
from weakfs.session.rules import Rules
from weakfs.session.slices import Kind, Merge, Reducer, Slice, SliceSpec, WholeSlice
from weakfs.session.table import Table
from weakfs.session.timeline import SnapshotEntry, Timeline, changed
from weakfs.session.transaction import ACTIVE, Transaction, current_owner, innermost
from weakfs.session.views import Records, SessionSnapshot, SessionView

if TYPE_CHECKING:
    from weakfs.session.files import SaveReport

T = TypeVar("T")


class Session:
    """Events in, immutable slices out; snapshot, rollback, transactions, forks, save and load.

    `clock` gives integer nanoseconds (default `time.time_ns`), `new_id` a fresh session id. `registry`
    lists the types that the session and its files may hold; by default weakfs's own. Every method may be
    called from any thread.
    """

    __slots__ = (
        "_attached",
        "_base",
        "_bus",
        "_clock",
        "_closed",
        "_counter",
        "_delivery",
        "_parent_id",
        "_repairs",
        "_rules",
        "_trunk",
        "lock",
        "origin_id",
        "session_id",
    )

    def __init__(
        self,
        *,
        session_id: str | None = None,
        registry: Registry | None = None,
        clock: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        bus: Bus | None = None,
    ) -> None:
        self.session_id: str = session_id or (new_id or _random_id)()
        # The session that this one was forked from, through any number of forks.
        self.origin_id: str = self.session_id
        # Held by whoever reads, decides and dispatches as one step; may be entered again by its holder.
        self.lock = RLock()
        self._clock: Callable[[], int] = clock or time.time_ns
        self._rules = Rules.of(Registry.standard() if registry is None else registry)
        self._delivery = Delivery(bus)
        self._trunk = Timeline()
        self._base: Timeline | None = None
        self._parent_id: str | None = None
        self._counter = 0
        self._attached: tuple[External, ...] = ()
        self._repairs: dict[str, Repair] = {}
        self._closed: str | None = None

    def __repr__(self) -> str:
        return f"<Session {self.session_id!r} at record {self._line().seq}>"

    # What it knows

    def install(
        self,
        type_: type[T],
        *,
        tag: str | None = None,
        kind: Kind | None = None,
        initial: T | Callable[[], T] | None = None,
        merge: Merge | None = None,
    ) -> Slice[T]:
        """Register a slice type and the methods that it marks with `@reducer`, and give its accessor.

        `kind` is "state" (rolled back, the default) or "log" (kept across rollbacks). Installing again
        changes nothing and keeps the values that are there, such as those of a loaded session; asking for
        another tag or kind then is a `ValueError`.
        """
        with self.lock:
            self._rules = self._rules.install(type_, tag=tag, kind=kind, initial=initial, merge=merge)
            return Slice(self, self._rules.by_type[type_])

    def __getitem__(self, type_: type[T]) -> Slice[T]:
        spec = self._rules.by_type.get(type_)
        return self.install(type_) if spec is None else Slice(self, spec)

    def query(self, type_: type[T]) -> Slice[T]:
        """Give the accessor of one slice; the same as `session[type_]`."""
        return self[type_]

    def mutate(self, type_: type[T]) -> Slice[T]:
        """Give the accessor of one slice; the same as `session[type_]`."""
        return self[type_]

    def add_reducer(self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice) -> None:
        """Let `event` change a slice; callers write `session[T].register(event, reducer)`."""
        with self.lock:
            self._rules = self._rules.with_reducer(spec, event, reducer)

    @property
    def registry(self) -> Registry:
        """The types that this session and its files may hold."""
        return self._rules.registry

    def now(self) -> int:
        """Read the session's clock, in integer nanoseconds."""
        return self._clock()

    def subscribe(self, event: type, handler: Handler) -> Callable[[], None]:
        """Call `handler(record)` after each event of a type was applied; the result unsubscribes it.

        `object` stands for every type. Inside a transaction records are told when it ends. An error in a
        handler is logged and changes nothing else.
        """
        return self._delivery.subscribe(event, handler)

    # Changing

    def dispatch(self, event: object, *, cause: str | None = None) -> Record:
        """Apply one event: run every reducer of its type, then assign what they gave, and write it down.

        A reducer that raises leaves the session as it was. `cause` says who did it; inside a transaction
        the transaction's own is the default.
        """
        with self.lock:
            record = self._apply(self._writable(), event, cause)
        self._delivery.deliver()
        return record

    def _apply(self, line: Timeline, event: Any, cause: str | None, *, mark: bool = False) -> Record:
        rules = self._rules
        shape = rules.registry.by_type.get(type(event))
        if shape is None:
            self._rules = rules = rules.knowing(type(event))
            shape = rules.registry.by_type[type(event)]
        state, logs = changed(rules, line.state, line.logs, event)
        at = self._clock()
        cause = line.cause if cause is None else cause
        seq = line.add((at, cause, shape.tag, shape.pack(event)), state, logs, mark=mark)
        record = Record(seq, at, event, cause)
        if self._delivery.wanted and line is self._trunk:
            self._delivery.post((record,))
        return record

    def change(self, spec: SliceSpec, change: Literal["seed", "append", "clear"], value: object) -> None:
        """Change a slice by hand; callers write `session[T].seed(value)` and the like."""
        event: object
        if change == "seed":
            event = SliceSeeded(spec.tag, (value,))
        elif change == "append":
            event = SliceAppended(spec.tag, value)
        else:
            event = SliceCleared(spec.tag)
        self.dispatch(event)

    def table(self, kind: Kind) -> Table:
        """Give the slices of one kind; callers write `session[T].all()`."""
        stack = ACTIVE.get()
        line = self._line() if stack else self._trunk
        return line.logs if kind == "log" else line.state

    # Reading history

    @property
    def records(self) -> Records:
        """The records so far, oldest first; does not grow with the session. O(1)."""
        line = self._line()
        return Records(self._rules, line.rows, line.dropped)

    @property
    def seq(self) -> int:
        """The number of the newest record, 0 before the first."""
        return self._line().seq

    def at(self, target: int | str | SessionSnapshot) -> SessionView:
        """Give the slices as they were after a record, or at a snapshot. O(1) records replayed, at most 512.

        Raises `UnknownSnapshot` if there is no such record or snapshot.
        """
        with self.lock:
            line = self._line()
            if isinstance(target, int):
                mark = line.mark_at(self._rules, target)
                return SessionView(self._rules, target, mark.state, mark.logs)
            entry = self._entry(line, target)
            logs = line.mark_at(self._rules, max(entry.seq, line.dropped)).logs
            return SessionView(self._rules, entry.seq, entry.state, logs)

    def replay(self, records: Iterable[Record]) -> None:
        """Apply recorded events with their own times and causes: no handler runs, nothing outside changes.

        A new session that replays all records of another holds the same slices.
        """
        with self.lock:
            line = self._writable().branch()
            block_end = 0
            for record in records:
                rules = self._rules = self._rules.knowing(type(record.event))
                shape = rules.registry.by_type[type(record.event)]
                inside = line.seq < block_end
                state, logs = changed(rules, line.state, line.logs, record.event, logs_only=inside)
                row = (record.at, record.cause, shape.tag, shape.pack(record.event))
                if shape.tag == "session/merged" and not inside:
                    block_end = line.seq + 1 + record.event.count
                line.add(row, state, logs, mark=record.seq == block_end or isinstance(record.event, RolledBack))
            line.marked = False
            self._adopt(self._writable(), line)

    def compact(self, *, keep: int) -> int:
        """Drop all records but the newest `keep`, with contents that nothing else refers to; give the number.

        Snapshots that are kept stay usable. Records that went can no longer be read or rolled back to.
        """
        if keep < 0:
            raise ValueError(f"cannot keep {keep} records; give a number from 0 on")
        with self.lock:
            return self._writable().compact(self._rules, keep)

    # Going back

    def snapshot(self, tag: str | None = None) -> SessionSnapshot:
        """Keep this moment: O(1), by reference, plus what a snapshot of each attached filesystem costs."""
        with self.lock:
            line = self._writable()
            externals = snapshot_all(self._attached, tag) if self._attached else ()
            at, seq = self._clock(), line.seq
            snapshot_id = self._next_id("s")
            entry = SnapshotEntry(snapshot_id, self._counter, seq, at, tag, line.state, externals)
            line.snapshots = line.snapshots.set(snapshot_id, entry)
            return SessionSnapshot(snapshot_id, seq, at, tag)

    @property
    def snapshots(self) -> tuple[SessionSnapshot, ...]:
        """The snapshots that are kept, oldest first."""
        return tuple(_describe(entry) for entry in ordered_snapshots(self._line()))

    def drop_snapshot(self, target: str | SessionSnapshot) -> None:
        """Forget a snapshot, given itself, its id or its tag; `UnknownSnapshot` if it is not kept."""
        with self.lock:
            line = self._writable()
            entry = self._entry(line, target)
            line.snapshots = line.snapshots.remove(entry.snapshot_id)

    def rollback(self, target: int | str | SessionSnapshot, *, cause: str | None = None) -> Record:
        """Go back to a snapshot, its id, its tag or a record number; LOG slices stay. O(1).

        The rollback is itself a record: rolling back to the record before it undoes it. Attached
        filesystems go back as well; if one cannot, all return to where they were and its error is raised.
        """
        with self.lock:
            line = self._writable()
            if isinstance(target, int):
                state, seq, snapshot_id = line.mark_at(self._rules, target).state, target, None
                externals: tuple[tuple[str, Any], ...] = ()
            else:
                entry = self._entry(line, target)
                state, seq, snapshot_id = entry.state, entry.seq, entry.snapshot_id
                externals = entry.externals
            if externals:
                self._restore_externals(dict(externals))
            record = self._apply(line, RolledBack(seq, snapshot_id, state), cause, mark=True)
        self._delivery.deliver()
        return record

    def _restore_externals(self, wanted: dict[str, Any]) -> None:
        repairs, states, failure = restore_all(self._attached, wanted)
        if repairs:
            self._repairs = repairs
            raise RollbackIncomplete(states) from failure
        if failure is not None:
            raise failure

    @contextmanager
    def transaction(self, *, cause: str | None = None) -> Iterator[Session]:
        """Do everything inside or nothing: an exception rolls back what was done, here and in attached filesystems.

        Others neither see what is done inside before it ends nor are undone by it; if they changed the
        same things meanwhile, the end raises `MergeConflict` and all of it is rolled back. May be nested.
        """
        with self.lock:
            parent = self._writable()
            line = parent.branch()
            line.cause = parent.cause if cause is None else cause
            own = Transaction(self, line, parent.branch(), parent, current_owner())
            for external in self._attached:
                own.journals[external.filesystem_id] = external.begin()
        token = ACTIVE.set((*ACTIVE.get(), own))
        try:
            try:
                yield self
            finally:
                own.open = False
                _leave(token)
        except BaseException:
            self._abandon(own)
            raise
        try:
            self._commit(own)
        except BaseException:
            self._abandon(own)
            raise
        self._delivery.deliver()

    def _commit(self, own: Transaction) -> None:
        with self.lock:
            self._join(own)
            for journal in own.journals.values():
                journal.close()

    def _abandon(self, own: Transaction) -> None:
        """Undo a transaction: the records that it made stay, followed by the rollback that undoes them."""
        with self.lock:
            repairs, states = undo_all(own.journals)
            if own.line.seq > own.base.seq:
                event = RolledBack(own.base.seq, None, own.base.state)
                self._apply(own.line, event, None, mark=True)
                self._join(own)
            if repairs:
                self._repairs = {**self._repairs, **repairs}
        self._delivery.deliver()
        if repairs:
            raise RollbackIncomplete(states)

    def _join(self, own: Transaction) -> None:
        parent = own.parent
        if parent.rows is own.base.rows:
            self._adopt(parent, own.line)
        else:
            before = parent.seq
            name = self.session_id
            absorb(self._rules, parent, own.base, own.line, fork=name, at=self._clock(), cause=own.line.cause)
            self._post_since(parent, before)

    def _adopt(self, line: Timeline, branch: Timeline) -> None:
        before = line.seq
        line.adopt(branch)
        self._post_since(line, before)

    def _post_since(self, line: Timeline, seq: int) -> None:
        if self._delivery.wanted and line is self._trunk:
            self._delivery.post(Records(self._rules, line.rows, line.dropped).since(seq))

    # Side by side

    def fork(self, name: str | None = None) -> Session:
        """Give an independent session that starts where this one stands. O(1)."""
        with self.lock:
            if self._closed is not None:
                self._refuse()
            line = self._line()
            fork = Session.__new__(type(self))
            fork.session_id = self._next_id(name or "f")
            fork.origin_id = self.origin_id
            fork.lock = RLock()
            fork._clock = self._clock
            fork._rules = self._rules
            fork._delivery = Delivery(None)
            fork._trunk = line.branch()
            fork._base = line.branch()
            fork._parent_id = self.session_id
            fork._counter = 0
            fork._attached = ()
            fork._repairs = {}
            fork._closed = None
            return fork

    def merge(self, fork: Session, *, cause: str | None = None) -> Record:
        """Take over what a fork of this session did since it was forked or last merged.

        STATE slices merge three-way with the merge function of their type, LOG slices concatenate, and
        the fork's records follow the record that this returns. Raises `MergeConflict`, which lists what both
        sides changed differently, with nothing changed; `ValueError` if `fork` was not forked from here.
        """
        with self.lock, fork.lock:
            line = self._writable()
            if fork._base is None or fork._parent_id != self.session_id:
                raise ValueError(
                    f"cannot merge {fork.session_id!r} into {self.session_id!r}: it was not forked from it; "
                    f"merge it into {fork._parent_id!r}"
                )
            self._rules = self._rules.joined(fork._rules)
            before = line.seq
            at = self._clock()
            seq = absorb(self._rules, line, fork._base, fork._trunk, fork=fork.session_id, at=at, cause=cause)
            fork._base = fork._trunk.branch()
            record = Records(self._rules, line.rows, line.dropped)[seq - line.dropped - 1]
            self._post_since(line, before)
        self._delivery.deliver()
        return record

    def close(self, reason: str = "it was closed") -> None:
        """Refuse every further change, as for the fork of a cancelled call; reading goes on."""
        with self.lock:
            self._closed = reason

    # Outside

    def attach(self, filesystem: External) -> None:
        """Let an external filesystem take part in snapshots, rollbacks and transactions."""
        with self.lock:
            if any(known.filesystem_id == filesystem.filesystem_id for known in self._attached):
                raise ValueError(f"a filesystem {filesystem.filesystem_id!r} is attached already; attach each once")
            self._attached = (*self._attached, filesystem)

    def repair(self) -> None:
        """Take up a rollback of external filesystems that could not be finished; no-op if there is none.

        Raises `RollbackIncomplete` again while something cannot be put back.
        """
        with self.lock:
            self._repairs, states = repair_all(self._repairs)
            if self._repairs:
                raise RollbackIncomplete(states)

    def save(self, path: str | PathLike[str], *, embed: bool = False) -> SaveReport:
        """Write the session to one JSON file, so that a crash leaves the old file or the new one."""
        from weakfs.session.files import save_session

        return save_session(self, path, embed=embed)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        registry: Registry | None = None,
        clock: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        bus: Bus | None = None,
    ) -> Session:
        """Read a session back: slices, snapshots and records, exactly as they were saved.

        Raises `SessionFileError` that names what is wrong and where, `UnsupportedVersion` for a newer
        format, and `OSError` if the file cannot be read.
        """
        from weakfs.session.files import load_session

        session = cls(session_id="loading", registry=registry, clock=clock, new_id=new_id, bus=bus)
        load_session(session, path)
        return session

    def parts(self) -> tuple[Rules, Timeline, dict[str, Any]]:
        """Give what a file of this session is made of; for `weakfs.session.files`."""
        own = {"session_id": self.session_id, "origin_id": self.origin_id, "counter": self._counter}
        return self._rules, self._line(), own

    def take_over(self, rules: Rules, line: Timeline, own: dict[str, Any]) -> None:
        """Become what a file held; for `weakfs.session.files`."""
        self.session_id, self.origin_id = own["session_id"], own["origin_id"]
        self._counter = own["counter"]
        self._rules, self._trunk = rules, line

    # Lines

    def _line(self) -> Timeline:
        stack = ACTIVE.get()
        if stack:
            own = innermost(self, stack)
            if own is not None:
                return own.line
        return self._trunk

    def _writable(self) -> Timeline:
        if self._closed is not None or self._repairs:
            self._refuse()
        return self._line()

    def _refuse(self) -> None:
        if self._closed is not None:
            raise SessionClosed(
                f"session {self.session_id!r} takes no changes: {self._closed}; use its parent or a new fork"
            )
        raise RollbackIncomplete(dict.fromkeys(self._repairs, "not put back"))

    def _next_id(self, name: str) -> str:
        self._counter += 1
        return f"{self.session_id}/{name}{self._counter}"

    def _entry(self, line: Timeline, target: str | SessionSnapshot) -> SnapshotEntry:
        wanted = target if isinstance(target, str) else target.snapshot_id
        entry = line.snapshots.get(wanted)
        if entry is None and isinstance(target, str):
            tagged = [entry for entry in ordered_snapshots(line) if entry.tag == target]
            entry = tagged[-1] if tagged else None
        if entry is None:
            known = ", ".join(repr(e.tag or e.snapshot_id) for e in ordered_snapshots(line)[-5:]) or "none"
            raise UnknownSnapshot(
                f"session {self.session_id!r} keeps no snapshot {wanted!r}; it may have been dropped. The newest: {known}"
            )
        return entry


def _random_id() -> str:
    return uuid4().hex


def _leave(token: Token[tuple[Transaction, ...]]) -> None:
    # A generator may be closed in another context than it was started in; there is nothing to reset then.
    with suppress(ValueError):
        ACTIVE.reset(token)


def _describe(entry: SnapshotEntry) -> SessionSnapshot:
    return SessionSnapshot(entry.snapshot_id, entry.seq, entry.at, entry.tag)


def ordered_snapshots(line: Timeline) -> list[SnapshotEntry]:
    """List the snapshots of a line in the order in which they were taken."""
    return sorted(line.snapshots.values(), key=lambda entry: entry.number)
