"""Whether an event's values are of the types that its fields name, as far as can be told without reading deep.

An event of the wrong types would be applied and written down, and the session could never be saved again. So it is
refused when it is dispatched. Most events repeat the types of earlier ones, and are then not looked at twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from weakfs.session.blobs.blob import Stored
from weakfs.session.codec import field_types as kinds
from weakfs.session.codec.atoms import ATOMS
from weakfs.session.codec.round_trip import difference

# What a field may be declared as and hold exactly; everything else is left to saving.
EXACT = (*ATOMS, bytes, Stored, tuple, list, dict, set, frozenset)


def check_kinds(
    event: object, again: object, names: tuple[str, ...], values: tuple[Any, ...]
) -> list[tuple[int, Callable[[Any], object]]]:
    """Raise `TypeError` for a value of the wrong type, and give the rules that fields name, by place.

    `again` is the event made anew from its values, as it will be when its record is read: one that then says
    something else is refused as well.
    """
    type_ = type(event)
    changed = difference(event, again, type_.__name__)
    if changed is not None:
        raise TypeError(f"{changed} when its record is read; let its fields say all, without conversion")
    try:
        hints = get_type_hints(type_, include_extras=True)
    except NameError:
        # A class defined inside a function: saving will say so.
        return []
    rules: list[tuple[int, Callable[[Any], object]]] = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        hint = hints.get(name, Any)
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            rules += [(place, rule) for rule in more if callable(rule)]
        if not _fits(value, hint):
            raise TypeError(
                f"{type_.__name__}.{name} is {value!r:.60}, a {type(value).__name__}; its type is {_shown(hint)}, "
                f"give that"
            )
    return rules


def _fits(value: object, hint: Any) -> bool:
    if kinds.is_union(hint):
        return any(_fits(value, member) for member in get_args(hint))
    if get_origin(hint) is Annotated:
        return _fits(value, get_args(hint)[0])
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is None:
        return value is None
    plain = get_origin(hint) or hint
    if plain is float:
        return type(value) in (float, int)
    if plain is bytes:
        return isinstance(value, bytes)
    return type(value) is plain if plain in EXACT else True


def _shown(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint)) if not get_args(hint) else str(hint)
