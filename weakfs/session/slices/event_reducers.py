"""Which events change which slices of a session, by which reducers; and the registered types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from attrs import Factory, evolve, field

from weakfs.class_decorators import frozen
from weakfs.messages import a_type
from weakfs.session.errors import UnknownType
from weakfs.session.slices.plan import Plan, Step
from weakfs.session.slices.slice import (
    Fold,
    Kind,
    Merge,
    Reducer,
    SliceSpec,
    StateMerge,
    WholeMerge,
    WholeSlice,
    append_all,
    marked_reducers,
    reaction,
)
from weakfs.session.slices.tags import tag_of
from weakfs.session.slices.type_registry import Registry


@frozen(eq=False)
class Rules:
    """An immutable value shared by a session and its forks; installing a slice returns a new one."""

    registry: Registry
    specs: Mapping[str, SliceSpec]
    by_type: Mapping[type, SliceSpec]
    steps: Mapping[type, tuple[Step, ...]]
    # The functions that fold many events into a slice at once, by its tag.
    folds: Mapping[str, Fold] = field(factory=dict)
    _plans: dict[str, Plan] = field(factory=dict, init=False)
    _limited: dict[frozenset[str], Rules] = field(factory=dict, init=False)
    # The steps whose reducers may return values that a file cannot hold.
    checked: Mapping[type, tuple[Step, ...]] = field(
        init=False, default=Factory(lambda self: _checked(self.steps), takes_self=True)
    )
    # The tags of STATE slices whose values hold record numbers: see `weakfs.session.slices.tags.event`.
    numbered: tuple[str, ...] = field(init=False, default=Factory(lambda self: _numbered(self), takes_self=True))

    @property
    def logged_events(self) -> tuple[str, ...]:
        """The tags of the events that a LOG slice may hold as its values."""
        found = (self.registry.by_type.get(spec.cls) for spec in self.specs.values() if spec.kind == "log")
        return tuple(shape.tag for shape in found if shape is not None)

    @property
    def call_tags(self) -> list[str]:
        """The tags of the LOG slices whose values belong to calls."""
        every = (self.by_type.get(one.cls) for one in self.registry.slices if one.holds_calls)
        return [spec.tag for spec in every if spec is not None]

    @property
    def calls(self) -> dict[str, tuple[int, int]]:
        """The events that end a call: by tag, the positions of the fields with the call's first and last record."""
        every = (self.registry.by_type.get(one.cls) for one in self.registry.slices if one.holds_calls)
        return {shape.tag: (shape.numbers[0], shape.numbers[1]) for shape in every if shape and len(shape.numbers) > 1}

    @staticmethod
    @cache
    def standard(registry: type[Registry]) -> Rules:
        """Return the rules of a class's standard registry. They are built once, which takes a millisecond."""
        return Rules.of(registry.standard())

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, registry: Registry) -> Rules:
        """Return the rules of a registry, with the slices that it declares installed. Recent ones are cached."""
        draft = _Draft(cls(registry, {}, {}, {}))
        for one in registry.slices:
            spec = draft.install(one.cls, None, one.kind, one.initial, one.merge)
            if one.fold is not None and spec.kind == "state":
                draft.folds[spec.tag] = one.fold
            for event, reducer in one.reducers.items():
                draft.add_reducer(spec, event, reducer, one.fold)
        return draft.rules()

    def plan(self, tag: str) -> Plan:
        """Return how events with a tag are replayed. Raises `UnknownType` if no type has the tag."""
        plan = self._plans.get(tag)
        if plan is None:
            shape = self.registry.shape(tag)
            plan = self._plans[tag] = Plan.of(shape, self.steps.get(shape.cls, ()))
        return plan

    def limited_to(self, slices: frozenset[str]) -> Rules:
        """Return rules under which events change only these slices. They are built once for each set of slices."""
        if self.specs.keys() <= slices:
            return self
        rules = self._limited.get(slices)
        if rules is None:
            steps = {event: tuple(step for step in found if step.tag in slices) for event, found in self.steps.items()}
            folds = {tag: fold for tag, fold in self.folds.items() if tag in slices}
            rules = self._limited[slices] = evolve(self, steps=steps, folds=folds)
        return rules

    def knowing(self, *types: type) -> Rules:
        """Return rules whose registry has `types` as well."""
        new = [type_ for type_ in types if type_ not in self.registry.by_type]
        return evolve(self, registry=self.registry.with_types(*new)) if new else self

    def spec_of(self, type_: type) -> SliceSpec:
        """Return the specification of a slice type. Raises `UnknownType` if it is not installed."""
        spec = self.by_type.get(type_)
        if spec is None:
            raise UnknownType(
                f"{type_.__name__} is not a slice of this session; call session.install({type_.__name__}) first"
            )
        return spec

    def install(
        self,
        type_: type,
        *,
        tag: str | None = None,
        kind: Kind | None = None,
        initial: object = None,
        merge: Merge | WholeMerge | StateMerge | None = None,
    ) -> Rules:
        """Return rules with a slice type and its marked reducers; the same rules if nothing is new.

        Raises `ValueError` if the type is installed under another tag or as another kind.
        """
        if not isinstance(type_, type):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"cannot install {type_!r:.60}: it is {a_type(type_)}; pass the class of the slice")
        draft = _Draft(self)
        draft.install(type_, tag, kind, initial, merge)
        return draft.rules()

    def with_reducer(self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice) -> Rules:
        """Return rules in which `event` changes the slice. Raises `ValueError` if it already does."""
        draft = _Draft(self)
        draft.add_reducer(spec, event, reducer)
        return draft.rules()

    def joined(self, other: Rules) -> Rules:
        """Return rules that also contain those of `other`, for example after merging a fork that installed more."""
        if other is self:
            return self
        for tag, spec in other.specs.items():
            mine = self.specs.get(tag)
            if mine is not None and (mine.kind, mine.cls) != (spec.kind, spec.cls):
                raise ValueError(
                    f"cannot merge: the slice {tag!r} is {spec.kind!r} of {spec.cls.__name__} in the fork and "
                    f"{mine.kind!r} of {mine.cls.__name__} in this session; install it the same way in both"
                )
        events = [*self.steps, *(event for event in other.steps if event not in self.steps)]
        registry = self.registry.with_tags({t: s.cls for t, s in other.registry.by_tag.items()})
        registry = registry.with_pools(*(pool for pool in other.registry.pools if pool not in registry.pools))
        rules = evolve(self, registry=registry)
        return evolve(
            rules,
            specs={**other.specs, **self.specs},
            by_type={**other.by_type, **self.by_type},
            folds={**other.folds, **self.folds},
            steps={event: _union(self.steps.get(event, ()), other.steps.get(event, ())) for event in events},
        )


class _Draft:
    """Rules that are being extended: a copy of their tables, made once for any number of slices and reducers."""

    def __init__(self, given: Rules) -> None:
        self.given = given
        self.registry = given.registry
        self.specs = dict(given.specs)
        self.by_type = dict(given.by_type)
        self.steps = dict(given.steps)
        self.folds = dict(given.folds)
        self.is_changed = False

    def rules(self) -> Rules:
        """Return the extended rules; those that were given if nothing is new."""
        if not self.is_changed:
            return self.given
        return Rules(self.registry, self.specs, self.by_type, self.steps, self.folds)

    def install(
        self,
        type_: type,
        tag: str | None,
        kind: Kind | None,
        initial: object,
        merge: Merge | WholeMerge | StateMerge | None,
    ) -> SliceSpec:
        """Add a slice type and its marked reducers. See `Rules.install`."""
        known = self.by_type.get(type_)
        if known is None:
            tag = tag or tag_of(type_)
            self.registry = self.registry.with_tags({tag: type_})
            spec = SliceSpec.declared(type_, tag, kind=kind, initial=initial, merge=merge)
            self._put(spec)
            for event, reducer in marked_reducers(type_):
                self.add_reducer(spec, event, reducer)
            return spec
        if (tag or known.tag) != known.tag or (kind or known.kind) != known.kind:
            raise ValueError(
                f"cannot install {known.cls.__name__} as {tag or known.tag!r} of kind {kind or known.kind!r}: it is "
                f"installed as {known.tag!r} of kind {known.kind!r}; use that tag and kind, or another class"
            )
        if initial is None and merge is None:
            return known
        again = SliceSpec.declared(known.cls, known.tag, kind=known.kind, initial=initial, merge=merge or known.merge)
        if initial is None:
            again = evolve(again, empty=known.empty)
        self._put(again)
        for event, steps in self.steps.items():
            self.steps[event] = tuple(
                evolve(step, empty=again.empty) if step.tag == again.tag else step for step in steps
            )
        return again

    def _put(self, spec: SliceSpec) -> None:
        self.specs[spec.tag] = self.by_type[spec.cls] = spec
        self.is_changed = True

    def add_reducer(
        self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice, fold: Fold | None = None
    ) -> None:
        """Let an event change a slice. See `Rules.with_reducer`."""
        if not isinstance(event, type):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot register a reducer of {a_type(event)}; pass the class of the event, then the reducer"
            )
        if not (callable(reducer) or isinstance(reducer, WholeSlice)):
            raise TypeError(f"cannot register {reducer!r:.60} as a reducer; pass a function (value, event)")
        found = self.steps.get(event, ())
        if any(step.tag == spec.tag for step in found):
            raise ValueError(
                f"cannot register a second reducer of {event.__name__} for {spec.tag!r}: a slice has one reducer per "
                f"event type; dispatch another event type"
            )
        if event not in self.registry.by_type:
            self.registry = self.registry.with_types(event)
        concerns = reducer.concerns if isinstance(reducer, WholeSlice) else None
        is_whole = isinstance(reducer, WholeSlice)
        keeps_events = isinstance(reducer, WholeSlice) and reducer.keeps_events and event is spec.cls
        step = Step(
            spec.tag,
            spec.kind == "log",
            spec.empty,
            reaction(reducer),
            concerns,
            test=concerns.test() if concerns is not None else None,
            appends=reducer is append_all and event is spec.cls,
            fold=fold if spec.kind == "state" else None,
            is_whole=is_whole,
            is_checked=not (keeps_events or self.registry.is_safe(spec.cls)),
        )
        self.steps[event] = (*found, step)
        self.is_changed = True


def _numbered(rules: Rules) -> tuple[str, ...]:
    by_type = rules.registry.by_type
    found = (tag for tag, spec in rules.specs.items() if spec.kind == "state" and spec.cls in by_type)
    return tuple(tag for tag in found if by_type[rules.specs[tag].cls].numbers)


def _checked(steps: Mapping[type, tuple[Step, ...]]) -> Mapping[type, tuple[Step, ...]]:
    found = {event: tuple(step for step in checked if step.is_checked) for event, checked in steps.items()}
    return {event: checked for event, checked in found.items() if checked}


def _union(mine: tuple[Step, ...], other: tuple[Step, ...]) -> tuple[Step, ...]:
    known = {step.tag for step in mine}
    return (*mine, *(step for step in other if step.tag not in known))
