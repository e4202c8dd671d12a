"""The reducers that an event goes through, and the plan by which many events of one type are replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from weakfs.class_decorators import frozen
from weakfs.session.slices.events import SLICE_EVENTS
from weakfs.session.slices.log import Log
from weakfs.session.slices.slice import EventFilter, Fold, Reaction
from weakfs.session.slices.type_registry import Shape


@frozen(eq=False)
class Step:
    """One reducer as the session runs it: which slice it changes and how."""

    tag: str
    is_log: bool
    empty: Log[Any]
    react: Reaction
    concerns: EventFilter | None = None
    # Returns whether an event concerns the slice.
    test: Callable[[Any], bool] | None = None
    # Whether the reducer only appends the event to the slice.
    appends: bool = False
    # Reduces many of these events at once.
    fold: Fold | None = None
    # Whether the reducer may change values other than the newest one, and whether its values have to be checked.
    is_whole: bool = False
    is_checked: bool = True

    def new_values(self, before: Log[Any], after: Log[Any]) -> Iterable[Any]:
        """Return the values that a slice gained. O(values) for a reducer that acts on the whole slice."""
        if not self.is_whole:
            return after[-1:]
        if after.extends(before):
            return after.since(len(before))
        known = set(map(id, before))
        return [value for value in after if id(value) not in known]


@frozen(eq=False)
class Part:
    """What an event needs: the slices that fold it, and the steps that need the event itself."""

    folds: tuple[Step, ...]
    steps: tuple[Step, ...]
    # The slice, if the event concerns only one slice and that slice folds it, or is a LOG slice to which it is
    # appended.
    only: str | None
    appended_to: str | None = None

    @property
    def may_wait(self) -> bool:
        """Whether the event and its contents are needed only when a slice is read."""
        return self.only is not None or self.appended_to is not None


@frozen(eq=False)
class Plan:
    """How events of one type are replayed, depending on whether the field at `place` is `None`."""

    shape: Shape
    place: int | None
    if_set: Part
    if_none: Part
    # Whether the event may change a LOG slice.
    is_logged: bool

    @classmethod
    def of(cls, shape: Shape, steps: tuple[Step, ...]) -> Plan:
        """Plan the replay of one event type, which takes these steps."""
        names = {step.concerns.field for step in steps if step.concerns is not None}
        if len(names) > 1 or not names.issubset(shape.names):
            # Nothing is known about an event before it is built.
            whole = Part((), steps, None)
            return cls(shape, None, whole, whole, is_logged=True)
        place = shape.names.index(names.pop()) if names else None
        if_set = _part([step for step in steps if step.concerns is None or step.concerns.is_set])
        if_none = _part([step for step in steps if step.concerns is None or not step.concerns.is_set])
        is_logged = shape.cls in SLICE_EVENTS or any(step.is_log for step in steps)
        return cls(shape, place, if_set, if_none, is_logged)


def _part(steps: list[Step]) -> Part:
    folds = tuple(step for step in steps if step.fold is not None)
    others = tuple(step for step in steps if step.fold is None)
    appended_to = steps[0].tag if len(steps) == 1 and steps[0].appends and steps[0].is_log else None
    return Part(folds, others, folds[0].tag if len(folds) == 1 and not others else None, appended_to)
