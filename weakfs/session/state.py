"""The state of a session: its timelines, which of them the running code works on, and whether it may change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import urandom
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from weakfs.session.blobs.blob import Stored
from weakfs.session.codec.scalars import is_text
from weakfs.session.current_timeline import ACTIVE, Transaction, innermost
from weakfs.session.errors import RollbackIncomplete, SessionClosed, SessionError
from weakfs.session.external_filesystems import External, Journal, Repair, begin
from weakfs.session.history.reduction import Row
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.history.views import Origin, Records
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.slice import Kind, SliceSpec
from weakfs.session.slices.table import Table
from weakfs.session.slices.type_registry import Registry
from weakfs.session.stored_state import SessionTrunk
from weakfs.session.subscriptions import Bus, Delivery

if TYPE_CHECKING:
    from weakfs.session.durable.commits.commit_log import CommitLog
    from weakfs.session.durable.commits.commit_queue import CommitQueue


# Dead references are first removed when there are more references than this.
LEAST_BRANCHES = 64

# Code that computes the next state: the session would lose what this code changed.
REDUCING = "a reducer: reducers are pure"
MERGING = "a merge: merge functions and on_conflict functions are pure"
REPLAYING = "a replay: reducers and the iterable of records must not change it"

NO_REPAIRS: Mapping[str, Repair] = {}


# What a file of a session consists of: its rules, its timeline, and the session's own fields.
Parts = tuple[Rules, Timeline, dict[str, Any]]


class SessionState(SessionTrunk):
    """The state of a session. Its subclasses, up to `Session`, add the methods that read and change it."""

    __slots__ = (
        "_attached",
        "_base",
        "_branches",
        "_closed",
        "_log",
        "_missing",
        "_parent",
        "_queue",
        "_repairs",
        "_running",
    )

    # The registry type of a session created without a registry; a subclass may know more types.
    _registry_type: ClassVar[type[Registry]] = Registry

    def __init__(
        self,
        *,
        session_id: str | None = None,
        registry: Registry | None = None,
        clock: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        bus: Bus | None = None,
    ) -> None:
        if registry is not None and not isinstance(registry, Registry):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"registry is {registry!r:.60}; pass Registry.with_types(*your_types)")
        if bus is not None and not callable(getattr(bus, "publish", None)):
            raise TypeError(f"bus is {bus!r:.60}; pass an object with a method publish(record)")
        checked_function("clock", clock, "returns integer nanoseconds, such as time.time_ns")
        checked_function("new_id", new_id, "returns a new id as text")
        # mypy confuses the hash of a class with that of its instances.
        rules = Rules.standard(self._registry_type) if registry is None else Rules.of(registry)  # type: ignore[arg-type]
        name = checked_text("session_id", session_id or (new_id or _random_id)()) or ""
        self._start(name, name, clock or time.time_ns, rules, Timeline(), Delivery(bus))

    def _start(
        self,
        session_id: str,
        origin_id: str,
        clock: Callable[[], int],
        rules: Rules,
        trunk: Timeline,
        delivery: Delivery | None,
        base: Point | None = None,
        parent: ref[Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.origin_id = origin_id
        self.lock = RLock()
        self._clock = clock
        self._rules = rules
        self._delivery = delivery
        self._trunk = trunk
        # Where a fork branched off from its parent, or was last merged into it.
        self._base = base
        self._parent = parent
        self._call_number = self._number = 0
        # `None` before the first.
        self._branches: Branches | None = None
        self._attached: tuple[External, ...] = ()
        self._repairs = NO_REPAIRS
        self._closed: str | None = None
        # What is running that must not change the session, and why, as in `REDUCING`; `None` if nothing of the kind is.
        self._running: str | None = None
        # Where changes of the trunk are written before they take effect; `None` for a session in memory.
        self._log: CommitLog | None = None
        # Awaits the commits of calls on an event loop, if the session was opened there.
        self._queue: CommitQueue | None = None
        self._id_suffix = ""
        # Returns the blobs still missing from the sidecar directory, if any were missing on loading.
        self._missing: Callable[[], tuple[Stored, ...]] | None = None

    def _began(self, branch: object) -> None:
        """Remember a fork or a transaction that begins here."""
        branches = self._branches
        if branches is None:
            branches = self._branches = Branches()
        branches.append(ref(branch))
        if len(branches) > branches.limit:
            branches.prune()

    def __repr__(self) -> str:
        return f"<Session {self.session_id!r} at record {self._line().seq}>"

    def _use_rules(self, rules: Rules) -> None:
        """Apply other rules from now on."""
        before, self._rules = self._rules, rules
        if rules is not before:
            line = self._line()
            line.rules_change(before, rules)
            if line is not self._trunk:
                self._trunk.rules_change(before, rules)

    @property
    def registry(self) -> Registry:
        """The types that this session and its files may hold."""
        return self._rules.registry

    def _spec_of(self, type_: type) -> SliceSpec:
        """Return the specification of a slice type. Raises `UnknownType` if it is not installed."""
        return self._rules.spec_of(type_)

    def _table(self, kind: Kind) -> Table:
        """Return the slices of one kind; callers write `session[T].all()`."""
        line = self._line() if ACTIVE.get() else self._trunk
        return line.logs if kind == "log" else line.state

    @property
    def records(self) -> Records:
        """The records so far, oldest first; the sequence does not grow with the session. O(1)."""
        with self.lock:
            line = self._line()
            origin = Origin(self.session_id, self._counter, line.base, line.snapshots)
            return Records(self._rules, line.rows, line.dropped, origin)

    def _rows_since(self, seq: int) -> Iterator[Row]:
        """Yield the rows of the records after number `seq`."""
        with self.lock:
            line = self._line()
            return line.rows.since(max(seq - line.dropped, 0))

    @property
    def seq(self) -> int:
        """The number of the newest record, 0 before the first."""
        with self.lock:
            return self._line().seq

    @property
    def _settled_seq(self) -> int:
        """The number of the newest record that no open transaction of the running code made."""
        with self.lock:
            own = innermost(self, ACTIVE.get())
            if own is None:
                return self._trunk.seq
            while own.outer is not None:
                own = own.outer
            return own.base.seq

    def close(self, reason: str = "it was closed") -> None:
        """Refuse every further change, as for the fork of a cancelled call; reading still works."""
        with self.lock:
            self._closed = reason

    def _line(self) -> Timeline:
        stack = ACTIVE.get()
        if not stack:
            return self._trunk
        last = stack[-1]
        if last.session is self and last.open and last.shared and last.cancelled is None:
            # The usual case, about 15 times in every tool call: this takes a third of the time of `innermost`.
            return last.line
        own = innermost(self, stack)
        return self._trunk if own is None else own.line

    def _cause_of_one_change(self, name: str = "change") -> str | None:
        """Return a new cause for several records that are undone together; `None` if the transaction has a cause."""
        return self.next_id(name) if self._line().cause is None else None

    def _writable(self) -> Timeline:
        if self._closed is not None or self._repairs or self._running is not None:
            self._refuse()
        line = self._line()
        if line.block_end and line.seq < line.block_end:
            raise SessionError(
                f"session {self.session_id!r} accepts no changes: only some of a merged fork's records were replayed; "
                f"replay the {line.block_end - line.seq} that follow first"
            )
        return line

    @contextmanager
    def _while_running(self, what: str) -> Iterator[None]:
        """Refuse changes by the code that runs inside the block, because the block would overwrite them.

        Called under the session's lock.
        """
        before, self._running = self._running, what
        try:
            yield
        finally:
            self._running = before

    def _check_writable(self) -> None:
        """Raise if the session is closed or needs `repair`, before anything outside it is changed."""
        with self.lock:
            self._writable()

    @property
    def is_durable(self) -> bool:
        """Whether every change is stored before it takes effect, as for a session that was opened in storage."""
        return self._log is not None

    @property
    def in_transaction(self) -> bool:
        """Whether the running code is in a transaction of this session that may still be rolled back."""
        return innermost(self, ACTIVE.get()) is not None

    @property
    def attached(self) -> tuple[External, ...]:
        """The external filesystems that take part in snapshots, rollbacks and transactions."""
        return self._attached

    def _journal(self, filesystem_id: str) -> Journal | None:
        """Return an attached filesystem's journal for the transaction of the running code, or `None`."""
        stack = ACTIVE.get()
        own = innermost(self, stack) if stack else None
        if own is None:
            return None
        if filesystem_id not in own.journals:
            self._begin_late(own, filesystem_id)
        return own.journals.get(filesystem_id)

    def _begin_late(self, own: Transaction, filesystem_id: str) -> None:
        """Start journals for a filesystem that was attached inside a transaction."""
        external = next((one for one in self._attached if one.filesystem_id == filesystem_id), None)
        if external is None:
            return
        around = [own]
        while around[-1].outer is not None:
            around.append(around[-1].outer)
        journal = None
        for transaction in reversed(around):
            if filesystem_id not in transaction.journals:
                transaction.journals[filesystem_id] = begin(external, journal)
            journal = transaction.journals[filesystem_id]

    def _needs_repair(self, filesystem_id: str, step: Repair, error: BaseException) -> RollbackIncomplete:
        """Refuse changes until `repair` has completed `step`, which failed with `error`; return the error to raise."""
        with self.lock:
            self._repairs = {**self._repairs, filesystem_id: step}
        return RollbackIncomplete({filesystem_id: f"not put back: {error}"})

    def _refuse(self) -> None:
        if self._closed is not None:
            remedy = "open or load it again" if self._parent is None else "use its parent or a new fork"
            raise SessionClosed(f"session {self.session_id!r} accepts no changes: {self._closed}; {remedy}")
        if self._running is not None:
            raise SessionError(
                f"cannot change session {self.session_id!r} from inside {self._running}; do it afterwards"
            )
        raise RollbackIncomplete(dict.fromkeys(self._repairs, "not put back"))

    def _parts(self) -> Parts:
        """Return what a file of this session consists of, with a copy of the trunk."""
        with self.lock:
            header = {"session_id": self.session_id, "origin_id": self.origin_id, "counter": self._counter}
            return self._rules, self._trunk.copy(), header

    def _set_parts(
        self,
        rules: Rules,
        line: Timeline,
        header: dict[str, Any],
        missing: Callable[[], tuple[Stored, ...]] | None = None,
    ) -> None:
        """Take over what was read from a file or from storage."""
        self.session_id, self.origin_id = header["session_id"], header["origin_id"]
        # The next number must not be that of a kept snapshot.
        own_prefix = f"{self.session_id}/"
        taken = [e.number for e in line.snapshots.values() if e.snapshot_id.startswith(own_prefix)]
        self._count_from(max([header["counter"], *taken]))
        self._rules, self._trunk, self._missing = rules, line, missing


class Branches(list["ref[Any]"]):
    """The forks and transactions that began in a session, as long as anything else refers to them.

    They are weak references without callbacks: a `WeakSet` makes a fork a third slower.
    """

    __slots__ = ("limit",)

    def __init__(self) -> None:
        self.limit = LEAST_BRANCHES

    def prune(self) -> None:
        """Remove the references to what is gone, once there are more than `limit`. Amortized O(1) per branch."""
        self[:] = [one for one in self if one() is not None]
        self.limit = max(LEAST_BRANCHES, 2 * len(self))

    def alive(self) -> Iterator[Any]:
        """Yield those that still exist."""
        return (branch for one in self if (branch := one()) is not None)


def checked_text(what: str, text: str | None) -> str | None:
    """Return text that a file can hold. Raises `TypeError` if it is not text, `ValueError` for lone surrogates."""
    if text is not None:
        if type(text) is not str:
            raise TypeError(f"{what} is {text!r}; pass text")
        if not text.isascii() and not is_text(text):
            raise ValueError(f"{what} {text!r} contains a lone surrogate; pass text that can be encoded as UTF-8")
    return text


def checked_function(what: str, function: object, purpose: str) -> None:
    """Raise `TypeError` if `function` is neither `None` nor something that can be called."""
    if function is not None and not callable(function):
        raise TypeError(f"{what} is {function!r:.60}; pass a function that {purpose}")


def _random_id() -> str:
    return urandom(16).hex()
