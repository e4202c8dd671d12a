"""Slices: what a type of state is called, how it starts, which events change it, and how two sides merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, get_args, get_type_hints

from attrs import field, frozen

from weakfs.session.errors import SessionError
from weakfs.session.history.log import Log
from weakfs.session.history.packed_state import PackedValue
from weakfs.session.slices.table import Table

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Kind = Literal["state", "log"]
# (value, event) -> value, on the latest value of the slice; `None` where it has none.
Reducer = Callable[[Any, Any], Any]
# (base, ours, theirs) -> value, on latest values; raises Conflict.
Merge = Callable[[Any, Any, Any], Any]
# The same on all values of the slice.
SliceMerge = Callable[[Log[Any], Log[Any], Log[Any]], Log[Any]]
# What the session runs: (values, event) -> values, the same object if nothing changes.
Reaction = Callable[[Log[Any], Any], Log[Any]]
# An event in a run of them: the number of its record, its type, and its fields in their order.
Folded = tuple[int, type, tuple[Any, ...]]
# (values, run) -> values: what the slice's reducers give for the events of the run one by one, at once. The values
# may be those of a checkpoint: see weakfs.session.history.packed_state.
Fold = Callable[["Log[Any] | PackedValue", Sequence[Folded]], Log[Any]]


class Conflict(Exception):
    """What a slice's merge function raises: the names of all that both sides changed differently."""

    def __init__(self, *names: str) -> None:
        self.names = names
        super().__init__(", ".join(names))


@frozen(eq=False)
class WholeMerge:
    """A merge function that acts on all values of a slice, not on the latest alone."""

    merge: SliceMerge


@frozen(eq=False)
class StateMerge:
    """A merge function that also sees the other slices: (base, ours, theirs) as tables of all STATE slices.

    Gives the values of its own slice.
    """

    merge: Callable[[Table, Table, Table], Log[Any]]


@frozen(eq=False)
class Concern:
    """Which events a reducer sees: those with a value in one field, or, unless `is_set`, those with `None` there.

    Asked first, it spares looking the slice up; a replay asks it of the fields, before there is an event.
    """

    field: str
    is_set: bool = True

    def test(self) -> Callable[[Any], bool]:
        """Give the function that tells it of an event."""
        value = attrgetter(self.field)
        if self.is_set:
            return lambda event: value(event) is not None
        return lambda event: value(event) is None


@frozen(eq=False)
class WholeSlice:
    """A reducer that acts on all values of a slice, not on the latest alone."""

    react: Reaction
    concerns: Concern | None = None
    # Whether the values that it adds are the events themselves, which were checked when they were dispatched.
    keeps_events: bool = False


def reaction(reducer: Reducer | WholeSlice) -> Reaction:
    """Turn a reducer into what the session runs."""
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
                f"the reducer {name} of {type(event).__name__} gave None; let it return the new value, or the "
                f"value that it was given where nothing changes; session[T].clear() empties a slice"
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
    if not (ours.extends(base) and theirs.extends(base)):
        raise Conflict
    return ours.extend(theirs.since(len(base)))


merge_appended = WholeMerge(_both)
"""Merge a slice that only grows: what both sides added is kept, ours first; any other change conflicts."""


def upsert_by(key: Callable[[Any], object]) -> WholeSlice:
    """Keep one value a key: a new one takes the place of the one with its key, else goes behind the others.

    Costs O(values).
    """

    def react(values: Log[Any], event: Any) -> Log[Any]:
        wanted = key(event)
        for index, value in enumerate(values):
            if key(value) == wanted:
                return Log((*values[:index], event, *values[index + 1 :]))
        return values.append(event)

    return WholeSlice(react, keeps_events=True)


def replace_latest_by(key: Callable[[Any], object]) -> WholeSlice:
    """Keep the newest value of each key, in order of arrival: an older one with the same key goes. O(values)."""

    def react(values: Log[Any], event: Any) -> Log[Any]:
        wanted = key(event)
        return Log((*(value for value in values if key(value) != wanted), event))

    return WholeSlice(react, keeps_events=True)


@frozen(eq=False)
class Declaration:
    """A slice type that a registry brings along, so that every session with that registry has it.

    `fold` reduces many events at once where a replay needs no state in between: any of those that have `reducers`.
    `is_safe` says that its reducers give only values that a session file can hold: they are not checked then.
    """

    cls: type
    kind: Kind = "state"
    initial: object = None
    merge: Merge | WholeMerge | StateMerge | None = None
    reducers: Mapping[type, Reducer | WholeSlice] = field(factory=dict)
    is_safe: bool = False
    # Whether the values of a LOG slice tell of calls, so that `Session.compact(keep_calls=...)` may drop old ones.
    holds_calls: bool = False
    # Slices of older session files in whose place this one stands: by type, what makes its value of their values.
    succeeds: Mapping[type, Callable[[Iterable[Any]], object]] = field(factory=dict)
    fold: Fold | None = None


def reducer(*, on: type) -> Callable[[F], F]:
    """Mark a method of a slice type as the reducer of one event type: `(self, event) -> value`."""

    def mark(method: F) -> F:
        events: tuple[type, ...] = getattr(method, "__reduces__", ())
        method.__reduces__ = (*events, on)  # type: ignore[attr-defined]  # functions take attributes
        return method

    return mark


def marked_reducers(type_: type) -> list[tuple[type, Reducer]]:
    """List the reducers that a slice type marks, with the event of each."""
    found: list[tuple[type, Reducer]] = []
    for name in dir(type_):
        method = getattr(type_, name, None)
        for event in getattr(method, "__reduces__", ()):
            _check_annotations(type_, name, cast(Reducer, method), event)
        found.extend((event, _on_value(type_, cast(Reducer, method))) for event in getattr(method, "__reduces__", ()))
    return found


def _check_annotations(type_: type, name: str, method: Reducer, event: type) -> None:
    """Raise `TypeError` for a reducer annotated to take another event or to return another type than its slice.

    Only classes are compared; what is not annotated, or cannot be resolved, is fine.
    """
    try:
        hints = get_type_hints(method)
    except Exception:
        return
    result = hints.pop("return", type_)
    taken = next(iter(hints.values()), event)
    where = f"cannot install {type_.__name__}: its reducer {name!r} of {event.__name__}"
    if isinstance(taken, type) and not issubclass(event, taken):
        raise TypeError(f"{where} takes a {taken.__name__}; annotate its event as {event.__name__}, or change on=...")
    if isinstance(result, type) and not (issubclass(result, type_) or issubclass(type_, result)):
        raise TypeError(f"{where} returns a {result.__name__}; return the new {type_.__name__}")


def _on_value(type_: type, method: Reducer) -> Reducer:
    """Give a method as a reducer; where the slice holds no value it is called on one with all defaults."""

    def reduce(value: Any, event: Any) -> Any:
        if value is None:
            try:
                value = type_()
            except TypeError as error:
                raise SessionError(
                    f"cannot reduce {type(event).__name__}: the slice {type_.__name__} holds no value yet, and one "
                    f"cannot be made without arguments; install it with initial={type_.__name__}(...), or seed it"
                ) from error
        return method(value, event)

    return reduce


@frozen(eq=False)
class SliceSpec:
    """What a session knows of one slice type."""

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
        """Make a slice's entry out of what `Session.install` takes."""
        kind = kind or "state"
        if kind not in get_args(Kind):
            raise ValueError(f"cannot install {tag!r} as {kind!r}: a slice is of kind 'state' or 'log'")
        value = initial() if callable(initial) else initial
        return cls(type_, tag, kind, Log() if value is None else Log((value,)), merge)


class SliceSource(Protocol):
    """What reading a slice needs of a session or a view."""

    def _table(self, kind: Kind) -> Table: ...
    def _spec_of(self, type_: type) -> SliceSpec: ...


class SliceHost(SliceSource, Protocol):
    """What changing a slice needs of a session."""

    def _change(self, spec: SliceSpec, change: Literal["seed", "append", "clear"], value: object) -> None: ...
    def _add_reducer(self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice) -> None: ...


class SliceView(Generic[T]):
    """Read one slice: `latest`, `all`, `where`."""

    __slots__ = ("_known", "_source", "_spec")

    def __init__(self, source: SliceSource, spec: SliceSpec) -> None:
        self._source = source
        self._spec = spec
        # The table that was read last and its newest value: tables are immutable, and looking one up costs.
        self._known: tuple[object, Any] = (None, None)

    def _values(self) -> Log[Any]:
        values = self._source._table(self._spec.kind).get(self._spec.tag)
        # The slice may have been installed again, with an initial value, since this accessor was made.
        return self._source._spec_of(self._spec.cls).empty if values is None else values

    def latest(self) -> T | None:
        """Give the newest value, or `None` where there is none."""
        table = self._source._table(self._spec.kind)
        known, value = self._known
        if known is not table:
            values = table.get(self._spec.tag)
            if values is None:
                return cast("T | None", self._values().last())
            value = values.last()
            self._known = (table, value)
        return cast("T | None", value)

    def all(self) -> tuple[T, ...]:
        """Give every value, oldest first."""
        return tuple(self._values())

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        """Give the values for which `predicate` is true, oldest first."""
        return tuple(value for value in self._values() if predicate(value))


class Slice(SliceView[T]):
    """Read and change one slice. Every change is an event in the session's log."""

    __slots__ = ("_host",)

    def __init__(self, host: SliceHost, spec: SliceSpec) -> None:
        super().__init__(host, spec)
        self._host = host

    def seed(self, value: T) -> None:
        """Make `value` the slice's only value."""
        self._host._change(self._spec, "seed", value)

    def append(self, value: T) -> None:
        """Add `value` behind the others."""
        self._host._change(self._spec, "append", value)

    def clear(self) -> None:
        """Take every value out of the slice."""
        self._host._change(self._spec, "clear", None)

    def register(self, event: type, reducer: Reducer | WholeSlice) -> None:
        """Let `reducer` change this slice when `event` is dispatched.

        Raises `ValueError` if another reducer for the same event and slice is there already.
        """
        self._host._add_reducer(self._spec, event, reducer)
