"""What a session knows of its types: registered shapes, slice types, and which events change which slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from attrs import evolve, frozen

from weakfs.session.errors import UnknownType
from weakfs.session.events import SLICE_EVENTS
from weakfs.session.history.log import Log
from weakfs.session.slices.registry import Registry, tag_of
from weakfs.session.slices.slice import (
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
    concerns: Callable[[Any], object] | None = None


@frozen(eq=False)
class Rules:
    """An immutable value, shared by a session and its forks; installing a slice gives a new one."""

    registry: Registry
    specs: Mapping[str, SliceSpec]
    by_type: Mapping[type, SliceSpec]
    steps: Mapping[type, tuple[Step, ...]]

    @staticmethod
    @cache
    def standard() -> Rules:
        """Give the rules of the standard registry. They are made once: that takes a millisecond."""
        return Rules.of(Registry.standard())

    @classmethod
    def of(cls, registry: Registry) -> Rules:
        """Start from a registry; the slices that it declares are installed."""
        rules = cls(registry, {}, {}, {})
        for own in registry.slices:
            rules = rules.install(own.cls, kind=own.kind, initial=own.initial, merge=own.merge)
            for event, reducer in own.reducers.items():
                rules = rules.with_reducer(rules.by_type[own.cls], event, reducer)
        return rules

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

    def with_reducer(self, spec: SliceSpec, event: type, reducer: Reducer | WholeSlice) -> Rules:
        """Give rules in which `event` changes the slice; `ValueError` if it does so already."""
        found = self.steps.get(event, ())
        if any(step.tag == spec.tag for step in found):
            raise ValueError(
                f"cannot register a second reducer of {event.__name__} for {spec.tag!r}: one event changes a "
                f"slice in one way; dispatch another event type"
            )
        rules = self.knowing(event)
        concerns = reducer.concerns if isinstance(reducer, WholeSlice) else None
        step = Step(spec.tag, spec.kind == "log", spec.empty, reaction(reducer), concerns)
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
        rules = evolve(self, registry=self.registry.with_tags({t: s.cls for t, s in other.registry.by_tag.items()}))
        return evolve(
            rules,
            specs={**other.specs, **self.specs},
            by_type={**other.by_type, **self.by_type},
            steps={event: _union(self.steps.get(event, ()), other.steps.get(event, ())) for event in events},
        )

    @property
    def logging(self) -> frozenset[type]:
        """The events that change a LOG slice."""
        own = {event for event, steps in self.steps.items() if any(step.is_log for step in steps)}
        return frozenset({*own, *SLICE_EVENTS})


def _union(mine: tuple[Step, ...], other: tuple[Step, ...]) -> tuple[Step, ...]:
    known = {step.tag for step in mine}
    return (*mine, *(step for step in other if step.tag not in known))
