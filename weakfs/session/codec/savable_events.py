"""Acceptance of events: checks that a session file can hold an event before it enters a session."""

from __future__ import annotations

from typing import Any

from weakfs.messages import named_type
from weakfs.session.codec.type_check import fit_of
from weakfs.session.slices.type_registry import Registry, Shape

# Types of fields whose values can be changed.
MUTABLE = frozenset({list, dict, set})

# How many combinations of field types are remembered per event type.
MAX_FITTING = 256


def accepted(
    shape: Shape, event: Any, values: tuple[Any, ...], registry: Registry, known: tuple[Any, ...] | None = None
) -> Any:
    """Return the event that a session keeps for these values: the event itself, or a copy if it is mutable.

    `known` are values that were accepted before: what they share with `values` is not checked again.

    Raises `TypeError`, or whatever a field's rule raises, for an event that could not be read back from a file.
    """
    kinds = tuple(map(type, values))
    fit = shape.fitting.get(kinds)
    if fit is None:
        fit = fit_of(event, shape.build(*values), shape.names, values, registry)
        if len(shape.fitting) < MAX_FITTING:
            shape.fitting[kinds] = fit
    for place, rule in fit.rules:
        rule(values[place])
    if fit.is_always_safe or fit.is_safe(values, known):
        return event
    # This loads cattrs, which most programs that only dispatch events do not need.
    from weakfs.session.codec.savable_values import accepted_value

    return accepted_value(registry, event, f"cannot accept {named_type(shape.cls)}")


def copied(shape: Shape, event: Any, registry: Registry) -> Any:
    """Return a private copy of a mutable event that was accepted before."""
    return accepted(shape, event, shape.pack(event), registry)
