"""Slices: the tag of a type of state, its initial value, its reducers and its merge function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast, get_args, get_type_hints

from attrs import field

from weakfs.attribute_hints import attribute_hints
from weakfs.class_decorators import frozen
from weakfs.errors import WeakfsError
from weakfs.messages import a_type, named_type, plural
from weakfs.session.errors import RecordsDropped, SessionError
from weakfs.session.slices.log import Log
from weakfs.session.slices.packed_state import PackedValue
from weakfs.session.slices.table import Table
from weakfs.short_repr import clipped_repr

if TYPE_CHECKING:
    from weakfs.session.merging.sides import Sides

T = TypeVar("T")
E = TypeVar("E")

Kind = Literal["state", "log"]
# (value, event) -> value, on the latest value of the slice; `None` if it is empty.
Reducer = Callable[[Any, Any], Any]
# (base, ours, theirs) -> value, on latest values; raises Conflict.
Merge = Callable[[Any, Any, Any], Any]
# The same on all values of the slice.
SliceMerge = Callable[[Log[Any], Log[Any], Log[Any]], Log[Any]]
# What the session runs: (values, event) -> values, the same object if nothing changes.
Reaction = Callable[[Log[Any], Any], Log[Any]]
# One event of a run: the number of its record, its type, and its fields in order.
Folded = tuple[int, type, tuple[Any, ...]]
# (values, run) -> values: the same values as the slice's reducers return for the events of the run, one by one.
# The values may be those of a keyframe: see weakfs.session.slices.packed_state.
Fold = Callable[["Log[Any] | PackedValue", Sequence[Folded]], Log[Any]]


# (now, then, paths) -> values: the values `now`, with the files at `paths` (all files if it is `None`) as in `then`.
GoBack = Callable[[Log[Any], Log[Any], "Sequence[str] | None"], Log[Any]]


class Conflict(WeakfsError):
    """Raised by a slice's merge function: the names of everything that both sides changed differently."""

    def __init__(self, *names: str) -> None:
        self.names = names
        super().__init__(*names)

    def __str__(self) -> str:
        return ", ".join(self.names)


@frozen(eq=False)
class WholeMerge:
    """A merge function that acts on all values of a slice, not only on the latest."""

    merge: SliceMerge


@frozen(eq=False)
class StateMerge:
    """A merge function that sees all STATE slices and the records of both sides, and resolves conflicts itself.

    It returns the values of its own slice, with our side's version where a conflict remains.
    """

    merge: Callable[[Sides], Log[Any]]


@frozen(eq=False)
class EventFilter:
    """The events that a reducer sees: those in which one field has a value or, if `is_set` is false, is `None`.

    It is tested first, which can save looking up the slice. A replay tests it on the fields, before the event is built.
    """

    field: str
    is_set: bool = True

    def test(self) -> Callable[[Any], bool]:
        """Return the function that tests an event."""
        value = attrgetter(self.field)
        if self.is_set:
            return lambda event: value(event) is not None
        return lambda event: value(event) is None


@frozen(eq=False)
class WholeSlice:
    """A reducer that acts on all values of a slice, not only on the latest."""

    react: Reaction
    concerns: EventFilter | None = None
    # Whether the values that it adds are the events themselves, which were checked when they were dispatched.
    keeps_events: bool = False


def reaction(reducer: Reducer | WholeSlice) -> Reaction:
    """Convert a reducer to the form that the session runs."""
    if isinstance(reducer, WholeSlice):
        return reducer.react
    reduce = reducer

    def react(values: Log[Any], event: Any) -> Log[Any]:
        value = values.last()
        reduced = reduce(value, event)
        if reduced is value:
            return values
        if reduced is None:
            name = getattr(reduce, "__qualname__", repr(reduce))
            raise SessionError(
                f"the reducer {name} of {type(event).__name__} returned None; return the new value, or the "
                f"value passed in if nothing changes; session[T].clear() empties a slice"
            )
        return values.replace_last(reduced)

    return react


append_all = WholeSlice(lambda values, event: values.append(event), keeps_events=True)
"""Keep every event as a value of the slice."""


def _replace(values: Log[Any], event: Any) -> Log[Any]:
    return values if len(values) == 1 and values.last() is event else Log((event,))


replace_latest = WholeSlice(_replace, keeps_events=True)
"""Keep the newest event as the slice's only value."""


def _both(base: Log[Any], ours: Log[Any], theirs: Log[Any]) -> Log[Any]:
    if not (ours.begins_like(base) and theirs.begins_like(base)):
        raise Conflict
    return ours.extend(theirs.since(len(base)))


merge_appended = WholeMerge(_both)
"""Merge a slice that only grows: keep what both sides added, ours first; any other change conflicts."""


def upsert_by(key: Callable[[Any], object]) -> WholeSlice:
    """Keep one value per key: a new value replaces the one with its key, or else is added at the end.

    O(values).
    """
    _check_key(key)

    def react(values: Log[Any], event: Any) -> Log[Any]:
        event_key = key(event)
        for index, value in enumerate(values):
            if key(value) == event_key:
                return Log((*values[:index], event, *values[index + 1 :]))
        return values.append(event)

    return WholeSlice(react, keeps_events=True)


def replace_latest_by(key: Callable[[Any], object]) -> WholeSlice:
    """Keep the newest value of each key, in order of arrival: a new value removes the old one. O(values)."""
    _check_key(key)

    def react(values: Log[Any], event: Any) -> Log[Any]:
        event_key = key(event)
        return Log((*(value for value in values if key(value) != event_key), event))

    return WholeSlice(react, keeps_events=True)


def _check_key(key: object) -> None:
    if not callable(key):
        raise TypeError(f"key is {key!r:.60}; pass a function of the value, such as lambda value: value.name")


@frozen(eq=False)
class Declaration:
    """A slice type that a registry declares, so that every session with that registry has it.

    `fold` reduces many events at once where a replay needs no intermediate state; it accepts any events that `reducers`
    has. `is_safe` states that its reducers only return values that a session file can hold, so that they need no check.
    """

    cls: type
    kind: Kind = "state"
    initial: object = None
    merge: Merge | WholeMerge | StateMerge | None = None
    reducers: Mapping[type, Reducer | WholeSlice] = field(factory=dict)
    is_safe: bool = False
    # Whether the values of this LOG slice belong to calls, so that `Session.compact(keep_calls=...)` may drop old ones.
    holds_calls: bool = False
    # Slices of older session files that this one replaces: by type, the function that converts their values.
    succeeds: Mapping[type, Callable[[Iterable[Any]], object]] = field(factory=dict)
    fold: Fold | None = None
    # For a slice that holds files: the function that restores its values along with the files; see `GoBack`.
    go_back: GoBack | None = None
    # Whether the values only describe what was found elsewhere. A read may add some, and there is nothing to undo.
    is_observed: bool = False
    # Compares two values, if equality is not the right test.
    equal: Callable[[Log[Any], Log[Any]], bool] = Log.equals
    # For a slice about files outside the session: (tag, fields) -> the filesystem that an event changes, or `None`.
    outside: Callable[[str, tuple[Any, ...]], str | None] | None = None


def stay(now: Log[Any], then: Log[Any], paths: Sequence[str] | None) -> Log[Any]:
    """Return `now` unchanged: the `GoBack` of a slice that does not go back with the files."""
    return now


def reducer(*, on: type[E]) -> Callable[[Callable[[T, E], T]], Callable[[T, Any], T]]:
    """Mark a method of a slice type as the reducer of one event type: `(self, event) -> value`.

    A method that takes another event, or returns something other than its slice, is an error for type checkers and on
    installation. A method may be marked for several event types.
    """

    if not isinstance(on, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"cannot reduce {on!r:.60}: it is {a_type(on)}; pass the class of the event")

    # `Any`, so that a method that is marked again is checked against the other event type alone.
    def mark(method: Callable[[T, E], T]) -> Callable[[T, Any], T]:
        events: tuple[type, ...] = getattr(method, "__reduces__", ())
        method.__reduces__ = (*events, on)  # type: ignore[attr-defined]  # functions take attributes
        return method

    return mark


def marked_reducers(type_: type) -> list[tuple[type, Reducer]]:
    """List the reducers that a slice type marks, each with its event type."""
    found: list[tuple[type, Reducer]] = []
    for name in dir(type_):
        if name.startswith("__"):
            continue  # special methods are not reducers, and getting one would make attrs compile it
        method = getattr(type_, name, None)
        for event in getattr(method, "__reduces__", ()):
            _check_annotations(type_, name, cast(Reducer, method), event)
        found.extend((event, _on_value(type_, cast(Reducer, method))) for event in getattr(method, "__reduces__", ()))
    return found


def _check_annotations(type_: type, name: str, method: Reducer, event: type) -> None:
    """Raise `TypeError` for a reducer annotated to take another event, or to return a type other than its slice.

    Only classes are compared; anything that is not annotated, or cannot be resolved, is accepted.
    """
    try:
        hints = get_type_hints(method)
    except Exception:
        return
    result = hints.pop("return", type_)
    taken = next(iter(hints.values()), event)
    where = f"cannot install {type_.__name__}: its reducer {name!r} of {event.__name__}"
    if isinstance(taken, type) and not issubclass(event, taken):
        raise TypeError(f"{where} takes {named_type(taken)}; annotate its event as {event.__name__}, or change on=...")
    if isinstance(result, type) and not (issubclass(result, type_) or issubclass(type_, result)):
        raise TypeError(f"{where} returns {named_type(result)}; return the new {type_.__name__}")


def _on_value(type_: type, method: Reducer) -> Reducer:
    """Return a method as a reducer; if the slice is empty it is called on an instance with all defaults."""

    def reduce(value: Any, event: Any) -> Any:
        if value is None:
            try:
                value = type_()
            except TypeError as error:
                raise SessionError(
                    f"cannot reduce {type(event).__name__}: the slice {type_.__name__} holds no value yet, "
                    f"and one cannot be made without arguments; install it with "
                    f"initial={type_.__name__}(...), or seed the slice"
                ) from error
        return method(value, event)

    return reduce


@frozen(eq=False)
class SliceSpec:
    """The specification of one slice type in a session."""

    cls: type
    tag: str
    kind: Kind
    empty: Log[Any]
    merge: Merge | WholeMerge | StateMerge | None

    @classmethod
    def declared(
        cls,
        type_: type,
        tag: str,
        *,
        kind: Kind | None = None,
        initial: object = None,
        merge: Merge | WholeMerge | StateMerge | None = None,
    ) -> SliceSpec:
        """Build a specification from the arguments of `Session.install`."""
        kind = kind or "state"
        if kind not in get_args(Kind):
            raise ValueError(
                f"cannot install {tag!r} as {kind!r}: a slice is of kind 'state' or 'log'; pass one of them"
            )
        value = initial() if callable(initial) else initial
        if value is not None and not isinstance(value, type_):
            raise TypeError(
                f"cannot install {tag!r}: its initial value is {clipped_repr(value)}, {a_type(value)}; pass "
                f"{named_type(type_)}, or a function that returns one"
            )
        if not (merge is None or callable(merge) or isinstance(merge, WholeMerge | StateMerge)):
            raise TypeError(f"cannot install {tag!r}: merge is {merge!r:.60}; pass a function (base, ours, theirs)")
        return cls(type_, tag, kind, Log() if value is None else Log((value,)), merge)


class SliceSource(Protocol):
    """The part of a session or view that is needed to read a slice."""

    def _table(self, kind: Kind) -> Table: ...
    def _spec_of(self, type_: type) -> SliceSpec: ...
    def _reading(self, read: Callable[[], T]) -> T: ...


class SliceHost(SliceSource, Protocol):
    """The part of a session that is needed to change a slice."""

    def _change(self, spec: SliceSpec, change: Literal["seed", "append", "clear"], value: object) -> None: ...
    def _add_reducer(self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice) -> None: ...


class SliceView(Generic[T]):
    """Reads one slice: `latest`, `all`, `where`."""

    __slots__ = ("_known", "_source", "_spec")

    def __init__(self, source: SliceSource, spec: SliceSpec) -> None:
        self._source = source
        self._spec = spec
        # The table that was read last and its newest value. Tables are immutable, and looking up the value is slower.
        self._known: tuple[object, T | None] = (None, None)

    def __repr__(self) -> str:
        spec = self._spec
        return f"<{type(self).__name__} of {spec.cls.__name__}: {plural(len(self._values()), 'value')}>"

    def _values(self) -> Log[Any]:
        values = self._source._table(self._spec.kind).get(self._spec.tag)
        # The slice may have been installed again, with an initial value, since this accessor was made.
        return self._source._spec_of(self._spec.cls).empty if values is None else values

    def latest(self) -> T | None:
        """Return the newest value, or `None` if there is none."""
        spec = self._spec
        table = self._source._table(spec.kind)
        known, value = self._known
        if known is not table:
            values = table.get(spec.tag)
            if values is None:
                values = self._values()
                found: T | None = values.last()
                return found
            try:
                value = values.last()
            except RecordsDropped:
                newest: T | None = self._source._reading(lambda: self._values().last())
                return newest
            self._known = (table, value)
        return value

    def all(self) -> tuple[T, ...]:
        """Return every value, oldest first."""
        return self._source._reading(lambda: tuple(self._values()))

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        """Return the values for which `predicate` is true, oldest first."""
        return self._source._reading(lambda: tuple(value for value in self._values() if predicate(value)))


@attribute_hints(get="latest()", last="latest()", set="seed(value)", value="latest()")
class Slice(SliceView[T]):
    """Reads and changes one slice. Every change is an event in the session's log."""

    __slots__ = ("_host",)

    def __init__(self, host: SliceHost, spec: SliceSpec) -> None:
        super().__init__(host, spec)
        self._host = host

    def seed(self, value: T) -> None:
        """Make `value` the slice's only value."""
        self._host._change(self._spec, "seed", value)

    def append(self, value: T) -> None:
        """Add `value` at the end."""
        self._host._change(self._spec, "append", value)

    def clear(self) -> None:
        """Remove every value from the slice."""
        self._host._change(self._spec, "clear", None)

    def register(self, event: type, reducer: Reducer | WholeSlice) -> None:
        """Let `reducer` change this slice when `event` is dispatched.

        Raises `ValueError` if the slice already has another reducer for the same event.
        """
        self._host._add_reducer(self._spec, event, reducer)
