"""What a session knows of its types: registered shapes, slice types, and which events change which slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from attrs import Factory, evolve, field, frozen

from weakfs.session.errors import UnknownType
from weakfs.session.events import SLICE_EVENTS
from weakfs.session.history.fold import Plan
from weakfs.session.history.log import Log
from weakfs.session.slices.registry import Registry, tag_of
from weakfs.session.slices.slice import (
    Concern,
    Fold,
    Kind,
    Merge,
    Reaction,
    Reducer,
    SliceSpec,
    StateMerge,
    WholeMerge,
    WholeSlice,
    marked_reducers,
    reaction,
)


@frozen(eq=False)
class Step:
    """One reducer at work: which slice it changes and how."""

    tag: str
    is_log: bool
    empty: Log[Any]
    react: Reaction
    concerns: Concern | None = None
    # Tells of an event whether it concerns the slice.
    test: Callable[[Any], bool] | None = None
    # What reduces many of these events at once.
    fold: Fold | None = None
    # Whether it may give other values than the newest one alone, and whether these are to be checked.
    is_whole: bool = False
    is_checked: bool = True

    def new_values(self, before: Log[Any], after: Log[Any]) -> Iterable[Any]:
        """Return the values that a slice gained. O(values) for a reducer that acts on all of them."""
        if not self.is_whole:
            return after[-1:]
        if after.extends(before):
            return after.since(len(before))
        known = set(map(id, before))
        return [value for value in after if id(value) not in known]


@frozen(eq=False)
class Rules:
    """An immutable value, shared by a session and its forks; installing a slice gives a new one."""

    registry: Registry
    specs: Mapping[str, SliceSpec]
    by_type: Mapping[type, SliceSpec]
    steps: Mapping[type, tuple[Step, ...]]
    # What folds many events into a slice at once, by its tag.
    folds: Mapping[str, Fold] = field(factory=dict)
    _plans: dict[str, Plan] = field(factory=dict, init=False)
    # Those of the steps that may give values which a file cannot hold.
    checked: Mapping[type, tuple[Step, ...]] = field(
        init=False, default=Factory(lambda self: _checked(self.steps), takes_self=True)
    )

    @staticmethod
    @cache
    def standard(registry: type[Registry]) -> Rules:
        """Return the rules of the standard registry of a class. They are made once: that takes a millisecond."""
        return Rules.of(registry.standard())

    @classmethod
    def of(cls, registry: Registry) -> Rules:
        """Start from a registry; the slices that it declares are installed."""
        rules = cls(registry, {}, {}, {})
        for own in registry.slices:
            rules = rules.install(own.cls, kind=own.kind, initial=own.initial, merge=own.merge)
            if own.fold is not None and own.kind == "state":
                rules = evolve(rules, folds={**rules.folds, rules.by_type[own.cls].tag: own.fold})
            for event, reducer in own.reducers.items():
                rules = rules.with_reducer(rules.by_type[own.cls], event, reducer, fold=own.fold)
        return rules

    def plan(self, tag: str) -> Plan:
        """Give how events of one type are replayed; `UnknownType` if the tag stands for none."""
        plan = self._plans.get(tag)
        if plan is None:
            plan = self._plans[tag] = Plan.of(self, self.registry.shape(tag))
        return plan

    def knowing(self, *types: type) -> Rules:
        """Give rules whose registry has `types` as well."""
        new = [type_ for type_ in types if type_ not in self.registry.by_type]
        return evolve(self, registry=self.registry.with_types(*new)) if new else self

    def spec_of(self, type_: type) -> SliceSpec:
        """Give what is known of a slice type; `UnknownType` if it is not installed."""
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
        """Give rules with a slice type and its marked reducers; the same rules if nothing is new.

        Raises `ValueError` if the type is installed under another tag or as another kind.
        """
        known = self.by_type.get(type_)
        if known is not None:
            return self._reinstall(known, tag, kind, initial, merge)
        tag = tag or tag_of(type_)
        rules = evolve(self, registry=self.registry.with_tags({tag: type_}))
        spec = SliceSpec.declared(type_, tag, kind=kind, initial=initial, merge=merge)
        rules = rules._with_spec(spec)
        for event, reducer in marked_reducers(type_):
            rules = rules.with_reducer(spec, event, reducer)
        return rules

    def _reinstall(
        self,
        known: SliceSpec,
        tag: str | None,
        kind: Kind | None,
        initial: object,
        merge: Merge | WholeMerge | StateMerge | None,
    ) -> Rules:
        if (tag or known.tag) != known.tag or (kind or known.kind) != known.kind:
            raise ValueError(
                f"cannot install {known.cls.__name__} as {tag or known.tag!r} of kind {kind or known.kind!r}: it is "
                f"installed as {known.tag!r} of kind {known.kind!r}; use that, or another class"
            )
        if initial is None and merge is None:
            return self
        again = SliceSpec.declared(known.cls, known.tag, kind=known.kind, initial=initial, merge=merge or known.merge)
        if initial is None:
            again = evolve(again, empty=known.empty)
        return self._with_spec(again)

    def _with_spec(self, spec: SliceSpec) -> Rules:
        steps = {
            event: tuple(evolve(step, empty=spec.empty) if step.tag == spec.tag else step for step in found)
            for event, found in self.steps.items()
        }
        return evolve(
            self,
            specs={**self.specs, spec.tag: spec},
            by_type={**self.by_type, spec.cls: spec},
            steps=steps,
        )

    def with_reducer(
        self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice, *, fold: Fold | None = None
    ) -> Rules:
        """Give rules in which `event` changes the slice; `ValueError` if it does so already."""
        found = self.steps.get(event, ())
        if any(step.tag == spec.tag for step in found):
            raise ValueError(
                f"cannot register a second reducer of {event.__name__} for {spec.tag!r}: one event changes a "
                f"slice in one way; dispatch another event type"
            )
        rules = self.knowing(event)
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
            fold=fold if spec.kind == "state" else None,
            is_whole=is_whole,
            is_checked=not (keeps_events or rules.registry.is_safe(spec.cls)),
        )
        return evolve(rules, steps={**rules.steps, event: (*found, step)})

    def joined(self, other: Rules) -> Rules:
        """Give rules that also know what `other` knows, as after merging a fork that installed more."""
        if other is self:
            return self
        for tag, spec in other.specs.items():
            mine = self.specs.get(tag)
            if mine is not None and (mine.kind, mine.cls) != (spec.kind, spec.cls):
                raise ValueError(
                    f"cannot merge: the fork holds the slice {tag!r} as {spec.kind!r} of {spec.cls.__name__} and this "
                    f"session as {mine.kind!r} of {mine.cls.__name__}; install it alike on both"
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

    @property
    def numbered(self) -> tuple[str, ...]:
        """The STATE slices whose values hold record numbers: see `weakfs.session.tagged`."""
        by_type = self.registry.by_type
        return tuple(tag for tag, spec in self.specs.items() if spec.kind == "state" and by_type[spec.cls].numbers)

    @property
    def logging(self) -> frozenset[type]:
        """The events that change a LOG slice."""
        own = {event for event, steps in self.steps.items() if any(step.is_log for step in steps)}
        return frozenset({*own, *SLICE_EVENTS})


def _checked(steps: Mapping[type, tuple[Step, ...]]) -> Mapping[type, tuple[Step, ...]]:
    found = {event: tuple(step for step in own if step.is_checked) for event, own in steps.items()}
    return {event: own for event, own in found.items() if own}


def _union(mine: tuple[Step, ...], other: tuple[Step, ...]) -> tuple[Step, ...]:
    known = {step.tag for step in mine}
    return (*mine, *(step for step in other if step.tag not in known))
