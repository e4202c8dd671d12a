"""The core of a session, and the one way to change it: an event goes through every reducer and is then assigned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from weakfs.messages import a_type
from weakfs.session.codec.savable_events import accepted, copied
from weakfs.session.errors import MissingBlob, RecordsDropped
from weakfs.session.external_filesystems import CommitPlace, Journal
from weakfs.session.history.reduction import Row, changed, check_slices
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import Record, SliceAppended, SliceCleared, SliceSeeded
from weakfs.session.slices.slice import Kind, Merge, Reducer, Slice, SliceSpec, StateMerge, WholeMerge, WholeSlice
from weakfs.session.slices.table import Table
from weakfs.session.slices.type_registry import Registry, check_event
from weakfs.session.state import MERGING, REDUCING, SessionState, checked_text
from weakfs.session.subscriptions import Delivery, Handler
from weakfs.short_repr import clipped_repr

if TYPE_CHECKING:
    from weakfs.session.durable.commits.commit_log import CommitLog

T = TypeVar("T")


class SessionCore(SessionState):
    """The part of a session that knows slices and reducers, and applies events."""

    __slots__ = ()

    def install(
        self,
        type_: type[T],
        *,
        tag: str | None = None,
        kind: Kind | None = None,
        initial: T | Callable[[], T] | None = None,
        merge: Merge | WholeMerge | StateMerge | None = None,
    ) -> Slice[T]:
        """Register a slice type and the methods that it marks with `@reducer`, and return its accessor.

        `kind` is "state" (rolled back, the default) or "log" (kept across rollbacks). Installing again changes
        nothing and keeps existing values, such as those of a loaded session. Raises `ValueError` if the type is
        installed with another tag or kind, and `TypeError` for an initial value that a session file cannot hold.
        """
        with self.lock:
            rules = self._rules.install(type_, tag=tag, kind=kind, initial=initial, merge=merge)
            self._use_rules(rules if initial is None else _with_safe_initial(rules, type_))
            return Slice(self, self._rules.by_type[type_])

    def include(self, registry: Registry) -> None:
        """Add the types of `registry`, and install the slices that it declares.

        Raises `ValueError` if a tag or a slice belongs to another class in this session.
        """
        with self.lock:
            self._use_rules(self._rules.joined(Rules.of(registry)))

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
            self._use_rules(self._rules.with_reducer(spec, event, reducer))

    def subscribe(self, event: type, handler: Handler) -> Callable[[], None]:
        """Call `handler(record)` after each event of a type is applied. Return a function that unsubscribes it.

        `object` stands for every type. Records made inside a transaction are delivered when it ends. An error in a
        handler is logged and has no other effect.
        """
        if not isinstance(event, type):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"cannot subscribe to {event!r:.60}: it is {a_type(event)}; pass the class of the events")
        if not callable(handler):
            raise TypeError(f"handler is {handler!r:.60}; pass a function that takes a record")
        with self.lock:
            if self._delivery is None:
                self._delivery = Delivery(None)
            return self._delivery.subscribe(event, handler)

    def dispatch(self, event: object, *, cause: str | None = None) -> Record:
        """Apply one event: run every reducer of its type, assign the results and append a record.

        If a reducer raises, the session stays as it was. `cause` names who caused the event; inside a transaction the
        default is the transaction's cause.
        """
        with self.lock:
            record = Record(*self._apply(self._writable(), event, cause))
        self._notify()
        return record

    def _dispatch(self, event: object, cause: str | None = None) -> None:
        """Apply one event as `dispatch` does, without making its record."""
        with self.lock:
            self._apply(self._writable(), event, cause)
        self._notify()

    def _apply(self, line: Timeline, event: Any, cause: str | None) -> tuple[int, int, Any, str | None]:
        """Apply an event to a timeline, and return the fields of its record."""
        rules = self._rules
        shape = rules.registry.by_type.get(type(event))
        if shape is None:
            check_event(event)
            self._rules = rules = rules.knowing(type(event))
            shape = rules.registry.by_type[type(event)]
        values = shape.pack(event)
        kept = accepted(shape, event, values, rules.registry)
        if kept is not event:
            # A mutable event: the log keeps a copy of its own, besides those for the reducers and for the record.
            values = shape.pack(kept)
            event, kept = (copied(shape, kept, rules.registry) for _ in range(2))
        self._running = REDUCING
        try:
            state, logs = changed(rules, line.state, line.logs, event)
        finally:
            self._running = None
        checked = rules.checked.get(type(event))
        if checked is not None:
            check_slices(rules, checked, event, (line.state, line.logs), (state, logs))
        at = self.now()
        cause = line.cause if cause is None else checked_text("cause", cause)
        row = (at, cause, shape.tag, values)
        if self._log is None or line is not self._trunk or self._log.commit_row(self, row, state, logs):
            seq = line.add(row, state, logs)
        else:
            line = self._merge_row(row, state, logs)
            seq = line.seq
        if self._delivery is not None and self._delivery.wanted and line is self._trunk:
            self._delivery.post((Record(seq, at, kept, cause),))
        return seq, at, kept, cause

    def _merge_row(self, row: Row, state: Table, logs: Table) -> Timeline:
        """Merge a row that was made after others had changed the session in its storage, and return the trunk.

        The event was decided on an older state, so it is merged like a transaction.
        """
        from weakfs.session.merging.merge import absorb

        base, branch = cast("CommitLog", self._log).before_others()
        branch.add(row, state, logs)
        while True:
            line = self._trunk
            merged = line.copy()
            with self._while_running(MERGING):
                absorb(self._rules, merged, base, branch, fork=self.session_id, at=row[0], cause=row[1])
            if self._stored(line, merged):
                before = line.seq
                line.adopt(merged)
                self._post_since(line, before, line.seq - 1)
                return line

    def _stored(self, line: Timeline, after: Timeline, journals: Mapping[str, Journal] | None = None) -> bool:
        """Store the change from `line` to `after` if `line` is the trunk and the session is in storage.

        `journals` are the undo journals of the work outside the session that belongs to the change. Return false if,
        instead, `line` was brought up to date with what others stored; the change must then be prepared again. Raises
        `SessionConflict` if that is not allowed, and `StorageError` if nothing could be stored.
        """
        return self._log is None or line is not self._trunk or self._log.commit(self, after, journals or {})

    def _catches_up(self) -> bool:
        """Read what other processes stored, if the session merges, and return whether there was anything.

        Code that lacks history, because another process has dropped it, calls this and tries again. Inside a
        transaction this returns false: a transaction continues from the state it began with.
        """
        with self.lock:
            log = self._log
            if log is None or not log.merges or self._closed is not None or self._running is not None:
                return False
            found = self._line() is self._trunk and log.catch_up(self)
        self._notify()
        return found

    @property
    def _times_caught_up(self) -> int:
        """How many times the session has applied what other processes stored."""
        return 0 if self._log is None else self._log.adopted

    def _has_caught_up(self, since: int) -> bool:
        """Catch up, and return whether anything was read now or after `_times_caught_up` was `since`."""
        # A failed commit may already have caught up.
        return self._catches_up() or self._times_caught_up > since

    def _reading(self, read: Callable[[], T]) -> T:
        """Return what `read` returns. It is called again if another process has dropped history that it needs."""
        while True:
            since = self._times_caught_up
            try:
                return read()
            except (RecordsDropped, MissingBlob):
                if not self._has_caught_up(since):
                    raise

    def _was_stored(self, place: CommitPlace) -> bool:
        """Return whether a commit of any session is in its stream: see `durable.commits.commit_outcome`."""
        from weakfs.session.durable.commits.uncertain_commits import lasting_url, was_stored, was_stored_anywhere
        from weakfs.storage.steps import run

        with self.lock:
            log = self._log
            if log is not None:
                log.complete_pending()
            if log is None or lasting_url(log.store.url) != place.url:
                return was_stored_anywhere(place)
            is_own = log.stream == place.stream
            return run(log.was_stored(self, place) if is_own else was_stored(log.store.url, place), log.store)

    def _change(self, spec: SliceSpec, change: Literal["seed", "append", "clear"], value: object) -> None:
        """Change a slice directly; callers write `session[T].seed(value)` and the like."""
        if change != "clear" and type(value) is not spec.cls:
            raise TypeError(
                f"cannot {change} {clipped_repr(value)}: the slice holds values of type {spec.cls.__name__}; "
                f"pass one of these"
            )
        event: object
        if change == "seed":
            event = SliceSeeded(spec.tag, (value,))
        elif change == "append":
            event = SliceAppended(spec.tag, value)
        else:
            event = SliceCleared(spec.tag)
        self.dispatch(event)


def _with_safe_initial(rules: Rules, type_: type) -> Rules:
    """Return the rules with a private copy of a slice's initial value, if it is mutable.

    Raises `TypeError` if no session file can hold it.
    """
    spec, shape = rules.by_type[type_], rules.registry.by_type[type_]
    if not spec.empty:
        return rules
    value = spec.empty.last()
    try:
        kept = accepted(shape, value, shape.pack(value), rules.registry)
    except (TypeError, ValueError) as error:
        raise type(error)(f"cannot install {spec.tag!r}: no file can hold its initial value: {error}") from None
    return rules if kept is value else rules.install(type_, initial=lambda: kept)
