"""Checks of an event's values against its field types, and which types prove an event safe without a trial.

An event that a file cannot hold would be applied and written to the log, and the session could never be saved again.
So it is refused when it is dispatched. Most events repeat the types of earlier ones and are not checked twice; those
with unconstrained fields are tried one by one: see `weakfs.session.codec.savable_values`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import attrs
from attrs import Factory, field

from weakfs.class_decorators import frozen
from weakfs.messages import a_type, named_type
from weakfs.session.blobs.blob import Stored
from weakfs.session.codec import field_types as kinds
from weakfs.session.codec.round_trip import difference
from weakfs.session.codec.scalars import ATOMS
from weakfs.session.slices.tags import fields_of, is_dataclass
from weakfs.session.slices.type_registry import Registry
from weakfs.short_repr import clipped_repr

# Field types that a value must match exactly. Values of all other types are checked by the trial.
EXACT = (*ATOMS, bytes, Stored, tuple, list, dict, set, frozenset)
# Types whose values are safe wherever they match the declared type.
SAFE: frozenset[type] = frozenset({*ATOMS, bytes, Stored})

Check = Callable[[Any], bool]

# A tuple with more items than this is compared with the previous one instead of being checked as a whole.
MANY = 32


@frozen(eq=False)
class Fit:
    """What is known about events whose fields have certain types.

    `rules` holds the rules that fields declare, by position. `checks` holds functions, by position, that tell whether a
    value is safe where its type alone does not. If `checks` is `None`, every event has to be tried.
    """

    rules: tuple[tuple[int, Callable[[Any], object]], ...]
    checks: tuple[tuple[int, Check], ...] | None
    # Whether the types alone prove every such event safe.
    is_always_safe: bool = field(init=False, default=Factory(lambda self: self.checks == (), takes_self=True))

    def is_safe(self, values: tuple[Any, ...], known: tuple[Any, ...] | None = None) -> bool:
        """Return whether a file can certainly hold an event of these values, and the values are immutable.

        `known` are the values of an event that was accepted before. A value that is the same object in both is safe,
        and so are the items that a longer tuple shares with the beginning of the earlier one: appending one item to
        10,000 takes 0.2 ms instead of 1.3 ms.
        """
        if self.checks is None:
            return False
        if known is None:
            return all(check(values[place]) for place, check in self.checks)
        return all(
            values[place] is known[place] or check(_without_beginning(values[place], known[place]))
            for place, check in self.checks
        )


def _without_beginning(value: Any, known: Any) -> Any:
    """Return a long tuple without the items of `known` if it begins with them; otherwise return the value as it is."""
    if type(value) is tuple and type(known) is tuple and len(value) > len(known) > MANY:
        return value[len(known) :] if all(map(is_, value, known)) else value
    return value


def fit_of(event: object, again: object, names: tuple[str, ...], values: tuple[Any, ...], registry: Registry) -> Fit:
    """Return what is known about events of these types. Raises `TypeError` for a value of the wrong type.

    `again` is the event rebuilt from its values, as it will be when its record is read: if the two differ, the
    event is refused as well.
    """
    type_ = type(event)
    changed = difference(event, again, "$")
    if changed is not None:
        raise TypeError(
            f"cannot accept {named_type(type_)}: {changed} when its record is read; keep everything "
            f"in its fields, without converters"
        )
    try:
        hints = get_type_hints(type_, include_extras=True)
    except NameError:
        # A class defined inside a function: the trial reports it.
        return Fit((), None)
    rules: list[tuple[int, Callable[[Any], object]]] = []
    checks: list[tuple[int, Check]] | None = [] if is_plain(type_) else None
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        hint = hints.get(name, Any)
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            rules += [(place, rule) for rule in more if callable(rule)]
        if not _fits(value, hint):
            raise TypeError(
                f"{type_.__name__}.{name} is {clipped_repr(value)}, {a_type(value)}; pass a value of its type, "
                f"{_shown(hint)}"
            )
        if _is_safe_by_type(type(value), hint, registry):
            continue
        check = _check_of(hint, registry)
        checks = None if check is None or checks is None else [*checks, (place, check)]
    return Fit(tuple(rules), None if checks is None else tuple(checks))


def is_frozen(type_: type) -> bool:
    """Return whether a class is a frozen attrs class or dataclass, whose fields cannot be assigned."""
    if attrs.has(type_):
        return type_.__setattr__ is _FROZEN_SETATTR
    return is_dataclass(type_) and bool(cast(Any, type_).__dataclass_params__.frozen)


@frozen
class _Frozen:
    """A sample that shows how attrs marks a frozen class."""


_FROZEN_SETATTR = _Frozen.__setattr__


def consists_of_fields(type_: type) -> bool:
    """Return whether an object of a class can be rebuilt from its fields alone: nothing is converted or derived."""
    if attrs.has(type_):
        names = ("__attrs_post_init__", "__attrs_pre_init__", "__attrs_init__")
        return not any(hasattr(type_, name) for name in names) and all(
            field.init and field.converter is None for field in attrs.fields(type_)
        )
    return is_dataclass(type_) and not hasattr(type_, "__post_init__") and all(field.init for field in fields_of(type_))


def is_plain(type_: type) -> bool:
    """Return whether an object of a class is frozen and consists of its fields alone."""
    return is_frozen(type_) and consists_of_fields(type_)


def _is_safe_by_type(type_: type, hint: Any, registry: Registry) -> bool:
    """Return whether every value of a type is safe in a field with this hint."""
    if kinds.is_union(hint):
        member = kinds.optional(hint)
        # In a union with several types besides None, values are tagged.
        is_exact = type_ in SAFE and any(type_ is one for one in get_args(hint))
        return is_exact or (member is not None and _is_safe_by_type(type_, member, registry))
    if kinds.is_table(hint):
        return True
    if hint is float:
        return type_ in (float, int)
    if hint is None or hint is type(None):
        return type_ is type(None)
    if hint in (Any, object):
        return type_ in SAFE or any(type_ is pool.cls for pool in registry.pools)
    return type_ is hint and (hint in SAFE or any(hint is pool.cls for pool in registry.pools))


def _check_of(hint: Any, registry: Registry) -> Check | None:
    """Return a function that tells whether a value is safe in a field of this type; `None` if only a trial can tell."""
    if kinds.is_union(hint):
        member = kinds.optional(hint)
        check = None if member is None else _check_of(member, registry)
        return None if check is None else lambda value: value is None or check(value)
    if get_origin(hint) is Literal:
        choices = [choice for choice in get_args(hint) if type(choice) in SAFE]
        return lambda value: any(type(value) is type(choice) and value == choice for choice in choices)
    if get_origin(hint) is tuple and get_args(hint):
        return _check_of_tuple(get_args(hint), registry)
    if _is_safe_type(hint, registry):
        return lambda value: type(value) is hint
    if isinstance(hint, type) and (attrs.has(hint) or is_dataclass(hint)) and is_plain(hint):
        return _check_of_class(hint, registry)
    return None


def _is_safe_type(hint: Any, registry: Registry) -> bool:
    """Return whether every value whose class is `hint` itself is safe."""
    return isinstance(hint, type) and (hint in SAFE or any(hint is pool.cls for pool in registry.pools))


def _check_of_tuple(members: tuple[Any, ...], registry: Registry) -> Check | None:
    if members[-1] is ...:
        check = _check_of(members[0], registry)
        return None if check is None else lambda value: type(value) is tuple and all(map(check, value))
    if all(_is_safe_type(member, registry) for member in members):
        # The usual case, such as the pieces of an edited file: this takes half as long.
        count = len(members)
        return lambda value: type(value) is tuple and len(value) == count and all(map(is_, map(type, value), members))
    checks = [_check_of(member, registry) for member in members]
    complete = [check for check in checks if check is not None]
    if len(complete) != len(checks):
        return None
    return lambda value: (
        type(value) is tuple
        and len(value) == len(complete)
        and all(check(item) for check, item in zip(complete, value, strict=True))
    )


def _check_of_class(type_: type, registry: Registry) -> Check | None:
    try:
        hints = get_type_hints(type_, include_extras=True)
    except NameError:
        return None
    checks: list[tuple[str, Check]] = []
    for member in fields_of(type_):
        hint = hints.get(member.name)
        # How deeply a class that refers to itself is nested depends on its values.
        check = None if hint is None or type_.__name__ in str(hint) else _check_of(hint, registry)
        if check is None:
            return None
        checks.append((member.name, check))
    return lambda value: type(value) is type_ and all(check(getattr(value, name)) for name, check in checks)


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
