"""What a session is made of, and its one way of changing: an event through every reducer, then assigned."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import RLock
from typing import Any, ClassVar, Literal, TypeVar
from uuid import uuid4
from weakref import ref

from weakfs.session.blobs.blob import Stored
from weakfs.session.codec.atoms import is_text
from weakfs.session.errors import RollbackIncomplete, SessionClosed, SessionError
from weakfs.session.events import Record, SliceAppended, SliceCleared, SliceSeeded
from weakfs.session.external import External, Journal, Repair, begin
from weakfs.session.history.timeline import Point, Timeline, changed, check_slices
from weakfs.session.slices.registry import Registry
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import Kind, Merge, Reducer, Slice, SliceSpec, StateMerge, WholeMerge, WholeSlice
from weakfs.session.slices.table import Table
from weakfs.session.subscriptions import Bus, Delivery, Handler
from weakfs.session.transaction import ACTIVE, Transaction, innermost
from weakfs.session.views import Origin, Records

T = TypeVar("T")


class SessionCore:
    """Slices, events and records; `Session` adds what goes back in time, branches off and is kept in files."""

    __slots__ = (
        "__weakref__",
        "_attached",
        "_base",
        "_clock",
        "_closed",
        "_counter",
        "_delivery",
        "_missing",
        "_parent",
        "_reducing",
        "_repairs",
        "_rules",
        "_trunk",
        "lock",
        "origin_id",
        "session_id",
    )

    # What a session is given that names no registry; a subclass may know more types.
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
            raise TypeError(f"registry is {registry!r:.60}; give Registry.with_types(*your_types)")
        if bus is not None and not callable(getattr(bus, "publish", None)):
            raise TypeError(f"bus is {bus!r:.60}; give an object with a method publish(record)")
        # mypy takes the hash of a class for that of its instances.
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
    ) -> None:
        self.session_id = session_id
        # The session that this one was forked from, through any number of forks.
        self.origin_id = origin_id
        # Held by whoever reads, decides and dispatches as one step; may be entered again by its holder.
        self.lock = RLock()
        self._clock = clock
        self._rules = rules
        # None for a fork until somebody subscribes: most forks are made, merged and forgotten.
        self._delivery = delivery
        self._trunk = trunk
        self._base: Point | None = None
        self._parent: ref[Any] | None = None
        self._counter = 0
        self._attached: tuple[External, ...] = ()
        self._repairs: dict[str, Repair] = {}
        self._closed: str | None = None
        self._reducing = False
        # Asks what is still missing beside the file that the session came from, if anything was.
        self._missing: Callable[[], tuple[Stored, ...]] | None = None

    def __repr__(self) -> str:
        return f"<Session {self.session_id!r} at record {self._line().seq}>"

    def install(
        self,
        type_: type[T],
        *,
        tag: str | None = None,
        kind: Kind | None = None,
        initial: T | Callable[[], T] | None = None,
        merge: Merge | WholeMerge | StateMerge | None = None,
    ) -> Slice[T]:
        """Register a slice type and the methods that it marks with `@reducer`, and give its accessor.

        `kind` is "state" (rolled back, the default) or "log" (kept across rollbacks). Installing again
        changes nothing and keeps the values that are there, such as those of a loaded session; asking for
        another tag or kind then is a `ValueError`.
        """
        with self.lock:
            before = self._rules
            self._rules = before.install(type_, tag=tag, kind=kind, initial=initial, merge=merge)
            if self._rules is not before:
                self._rules_changed(before)
            spec = self._rules.by_type[type_]
            return Slice(self, spec)

    def include(self, registry: Registry) -> None:
        """Know the types of `registry` as well, and install the slices that it declares.

        Raise `ValueError` if a tag or a slice stands for another class here.
        """
        with self.lock:
            before = self._rules
            self._rules = before.joined(Rules.of(registry))
            self._rules_changed(before)

    def _rules_changed(self, before: Rules) -> None:
        line = self._line()
        line.rules_change(before, self._rules)
        if line is not self._trunk:
            self._trunk.rules_change(before, self._rules)

    def __getitem__(self, type_: type[T]) -> Slice[T]:
        spec = self._rules.by_type.get(type_)
        return self.install(type_) if spec is None else Slice(self, spec)

    def query(self, type_: type[T]) -> Slice[T]:
        """Return the accessor of one slice; the same as `session[type_]`."""
        return self[type_]

    def mutate(self, type_: type[T]) -> Slice[T]:
        """Return the accessor of one slice; the same as `session[type_]`."""
        return self[type_]

    def _add_reducer(self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice) -> None:
        """Let `event` change a slice; callers write `session[T].register(event, reducer)`."""
        with self.lock:
            before = self._rules
            self._rules = before.with_reducer(spec, event, reducer)
            self._rules_changed(before)

    @property
    def registry(self) -> Registry:
        """The types that this session and its files may hold."""
        return self._rules.registry

    def now(self) -> int:
        """Read the session's clock, in integer nanoseconds; `TypeError` if it gives anything else."""
        at = self._clock()
        if type(at) is not int:
            raise TypeError(f"the clock gave {at!r}; give a clock of integer nanoseconds, such as time.time_ns")
        return at

    def subscribe(self, event: type, handler: Handler) -> Callable[[], None]:
        """Call `handler(record)` after each event of a type was applied; the result unsubscribes it.

        `object` stands for every type. Inside a transaction records are told when it ends. An error in a
        handler is logged and changes nothing else.
        """
        with self.lock:
            if self._delivery is None:
                self._delivery = Delivery(None)
            return self._delivery.subscribe(event, handler)

    def dispatch(self, event: object, *, cause: str | None = None) -> Record:
        """Apply one event: run every reducer of its type, then assign what they gave, and write it down.

        A reducer that raises leaves the session as it was. `cause` says who did it; inside a transaction
        the transaction's own is the default.
        """
        with self.lock:
            record = self._apply(self._writable(), event, cause)
        self._notify()
        return record

    def _apply(self, line: Timeline, event: Any, cause: str | None) -> Record:
        rules = self._rules
        shape = rules.registry.by_type.get(type(event))
        if shape is None:
            self._rules = rules = rules.knowing(type(event))
            shape = rules.registry.by_type[type(event)]
        if self._reducing:
            raise reducing(f"dispatch {type(event).__name__}")
        values = shape.pack(event)
        kept = shape.accepted(event, values, rules.registry)
        if kept is not event:
            event, values = kept, shape.pack(kept)
        self._reducing = True
        try:
            state, logs = changed(rules, line.state, line.logs, event)
        finally:
            self._reducing = False
        checked = rules.checked.get(type(event))
        if checked is not None:
            check_slices(rules, checked, event, (line.state, line.logs), (state, logs))
        at = self.now()
        cause = line.cause if cause is None else checked_text("cause", cause)
        seq = line.add((at, cause, shape.tag, values), state, logs)
        record = Record(seq, at, event, cause)
        if self._delivery is not None and self._delivery.wanted and line is self._trunk:
            self._delivery.post((record,))
        return record

    def _notify(self) -> None:
        """Tell subscribers what they were not told yet, once nobody here holds the session's lock.

        Every method that changes the session does so at its end. Whoever holds the lock around several of them
        calls it after: a handler that waits for another thread must not keep that thread from the session.
        """
        delivery = self._delivery
        if delivery is not None and delivery.waiting and not _is_held(self.lock):
            delivery.pending()

    def _adopt(self, line: Timeline, branch: Timeline) -> None:
        before = line.seq
        line.adopt(branch)
        self._post_since(line, before)

    def _post_since(self, line: Timeline, seq: int) -> None:
        if self._delivery is not None and self._delivery.wanted and line is self._trunk:
            self._delivery.post(Records(self._rules, line.rows, line.dropped).since(seq))

    def _change(self, spec: SliceSpec, change: Literal["seed", "append", "clear"], value: object) -> None:
        """Change a slice by hand; callers write `session[T].seed(value)` and the like."""
        if change != "clear" and type(value) is not spec.cls:
            raise TypeError(
                f"cannot {change} {value!r:.60}: the slice holds values of type {spec.cls.__name__}; give one of these"
            )
        event: object
        if change == "seed":
            event = SliceSeeded(spec.tag, (value,))
        elif change == "append":
            event = SliceAppended(spec.tag, value)
        else:
            event = SliceCleared(spec.tag)
        self.dispatch(event)

    def _spec_of(self, type_: type) -> SliceSpec:
        """Return what is known of a slice type; `UnknownType` if it is not installed."""
        return self._rules.spec_of(type_)

    def _table(self, kind: Kind) -> Table:
        """Return the slices of one kind; callers write `session[T].all()`."""
        stack = ACTIVE.get()
        line = self._line() if stack else self._trunk
        return line.logs if kind == "log" else line.state

    @property
    def records(self) -> Records:
        """The records so far, oldest first; does not grow with the session. O(1)."""
        with self.lock:
            line = self._line()
            origin = Origin(self.session_id, self._counter, line.base, line.snapshots)
            return Records(self._rules, line.rows, line.dropped, origin)

    @property
    def seq(self) -> int:
        """The number of the newest record, 0 before the first."""
        with self.lock:
            return self._line().seq

    def close(self, reason: str = "it was closed") -> None:
        """Refuse every further change, as for the fork of a cancelled call; reading goes on."""
        with self.lock:
            self._closed = reason

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
        line = self._line()
        if line.seq < line.block_end:
            raise SessionError(
                f"session {self.session_id!r} takes no changes: only a part of a merged fork's records was replayed; "
                f"replay the {line.block_end - line.seq} that follow first"
            )
        return line

    def _check_writable(self) -> None:
        """Raise what a change would raise now, before anything outside is changed: closed, or waiting for `repair`."""
        with self.lock:
            self._writable()

    @property
    def in_transaction(self) -> bool:
        """Whether the running code is in a transaction of this session, which may still be rolled back."""
        return innermost(self, ACTIVE.get()) is not None

    @property
    def attached(self) -> tuple[External, ...]:
        """The external filesystems that take part in snapshots, rollbacks and transactions."""
        return self._attached

    def _journal(self, filesystem_id: str) -> Journal | None:
        """Return the journal of an attached filesystem for the transaction that the running code is in, if any."""
        stack = ACTIVE.get()
        own = innermost(self, stack) if stack else None
        if own is None:
            return None
        if filesystem_id not in own.journals:
            self._begin_late(own, filesystem_id)
        return own.journals.get(filesystem_id)

    def _begin_late(self, own: Transaction, filesystem_id: str) -> None:
        """Start the journals of a filesystem that was attached inside a transaction."""
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
        """Refuse changes until `repair` has taken `step`, which failed with `error`; give what to raise."""
        with self.lock:
            self._repairs = {**self._repairs, filesystem_id: step}
        return RollbackIncomplete({filesystem_id: f"not put back: {error}"})

    def _refuse(self) -> None:
        if self._closed is not None:
            raise SessionClosed(
                f"session {self.session_id!r} takes no changes: {self._closed}; use its parent or a new fork"
            )
        raise RollbackIncomplete(dict.fromkeys(self._repairs, "not put back"))

    def next_id(self, name: str) -> str:
        """Return a new id under this session's own: `next_id("call")` is `SESSION/call7`. Unique within the session."""
        with self.lock:
            return self._next_id(name)

    def _next_id(self, name: str) -> str:
        return f"{self.session_id}/{name}{self._next_number()}"

    def _next_number(self) -> int:
        self._counter += 1
        return self._counter


def _is_held(lock: Any) -> bool:
    # What `threading.Condition` asks of a lock; there is no public way.
    return bool(lock._is_owned())


def reducing(doing: str) -> SessionError:
    """Return what is raised where a reducer does more than reduce."""
    return SessionError(f"cannot {doing} from inside a reducer: reducers are pure; do it before or after")


def checked_text(what: str, text: str | None) -> str | None:
    """Refuse what could not be written to a file: `TypeError` for no text, `ValueError` for lone surrogates."""
    if text is not None:
        if type(text) is not str:
            raise TypeError(f"{what} is {text!r}; give text")
        if not text.isascii() and not is_text(text):
            raise ValueError(f"{what} {text!r} holds a lone surrogate; give text that UTF-8 has a form for")
    return text


def _random_id() -> str:
    return uuid4().hex
