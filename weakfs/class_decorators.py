"""Cheaper versions of attrs' `define` and `frozen`: methods are generated on first use, and `repr` is short.

A new process creates a hundred classes before its first answer, but makes instances of only a third of them, and
compares instances of very few. attrs takes 3.0 million instructions for a class of four fields: half of that for
`__eq__`, `__hash__` and `__repr__`, and most of the rest for the fields and `__init__`. Creating only the slots at
first takes 0.2 million. `repr` shows only the beginning of long fields, so that a traceback that contains a session
stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from inspect import get_annotations
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

import attrs

from weakfs.short_repr import fields_repr

__all__ = ["define", "frozen", "is_complete", "when_complete"]

_FIELD = type(attrs.field())

# Methods that hold their function in `__func__`.
_WRAPPERS = (classmethod, staticmethod)


class _Example:
    """A sample that shows what attrs adds to a frozen class, and which attributes must be there from the beginning."""


_FROZEN = vars(attrs.frozen(_Example, eq=False, repr=False))
_REFUSALS = {name: _FROZEN[name] for name in ("__setattr__", "__delattr__")}
_ADDED = _FROZEN.keys() - vars(_Example).keys() - _REFUSALS.keys() - {"__slots__"}
# If a class defines one of these, what attrs adds depends on it.
_SPECIAL = {"__init__", "__setattr__", "__delattr__", "__getattr__", "__slots__"}


def _decorator(decorate: Callable[..., type]) -> Callable[..., Any]:
    def decorated(cls: type | None = None, /, *, eq: bool = True, repr: bool = True, **options: Any) -> Any:
        if cls is None:
            return partial(decorated, eq=eq, repr=repr, **options)
        # As with attrs, the class's own definitions are kept.
        eq, repr = eq and "__eq__" not in vars(cls), repr and "__repr__" not in vars(cls)
        has_hash = "__hash__" in vars(cls)
        is_frozen = decorate is attrs.frozen
        complete = partial(decorate, cls, eq=False, repr=False, **options)
        made = _with_slots(cls, complete, is_frozen) if _can_wait(cls, is_frozen, options) else complete()
        if eq:
            _compile_later(made, "__eq__")
        if eq and not has_hash:
            if is_frozen:
                _compile_later(made, "__hash__")
            else:
                made.__hash__ = None  # type: ignore[assignment]  # as attrs does: what changes has no hash
        if repr:
            made.__repr__ = fields_repr  # type: ignore[assignment, method-assign]  # one function for all classes
        return made

    return decorated


def _compile_later(cls: type, name: str) -> None:
    def compile_and_call(self: object, *others: object) -> object:
        fields = {one.name: attrs.field(alias=one.alias, eq=one.eq_key or one.eq) for one in attrs.fields(cls)}
        method = vars(attrs.make_class(cls.__name__, fields, frozen=True, slots=False))[name]
        setattr(cls, name, method)
        return method(self, *others)

    setattr(cls, name, compile_and_call)


class _Later:
    """An attribute that attrs adds to a class. Reading one of them for the first time creates all of them."""

    __slots__ = ("missing", "name")

    def __init__(self, missing: _Missing, name: str) -> None:
        self.missing, self.name = missing, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.missing.add()
        value = vars(self.missing.cls)[self.name]
        return value.__get__(instance, owner) if hasattr(value, "__get__") else value


class _Missing:
    """The attributes that attrs has yet to add to a class, taken from a class that attrs makes from the same body."""

    cls: type

    def __init__(self, body: type, complete: Callable[[], type]) -> None:
        self.body, self.complete = body, complete
        self.then: list[Callable[[type], object]] = []
        self._made: dict[str, type] = {}

    def add(self) -> None:
        # Concurrent threads all take the attributes from the same class.
        made = vars(self._made.setdefault("class", self.complete()))
        for name, value in list(vars(self.cls).items()):
            if isinstance(value, _Later):
                setattr(self.cls, name, made[name])
        for follow_up in self.then:
            follow_up(self.cls)


def is_complete(cls: type) -> bool:
    """Return whether a class has all attributes that attrs adds to it."""
    return not isinstance(vars(cls).get("__init__"), _Later)


def when_complete(cls: type, follow_up: Callable[[type], object]) -> None:
    """Call a function with a class now, or, if attrs has yet to add attributes to it, after it has added them."""
    later = vars(cls).get("__init__")
    if isinstance(later, _Later) and not _has_checked_fields(later.missing.body):
        later.missing.then.append(follow_up)
    else:
        follow_up(cls)


def _has_checked_fields(body: type) -> bool:
    """Return whether fields are converted or validated, or are not arguments of `__init__`."""
    described: list[Any] = [value for value in vars(body).values() if type(value) is _FIELD]
    return any(one.converter or one._validator or one.on_setattr or not one.init for one in described)


def _can_wait(cls: type, is_frozen: bool, options: dict[str, Any]) -> bool:
    """Return whether everything except for the slots and the frozen `__setattr__` can be added to a class later."""
    body = vars(cls)
    return (
        options.keys() <= {"kw_only"}
        and body.keys().isdisjoint(_SPECIAL)
        and not issubclass(cls, BaseException)
        and not any(hasattr(base, "__attrs_attrs__") or vars(base).get("__slots__") for base in cls.__mro__[1:-1])
        and not any(issubclass(kind, cached_property) for kind in {*map(type, body.values())})
        and (is_frozen or not _has_checked_fields(cls))  # setting a field may convert or validate it
    )


def _with_slots(cls: type, complete: Callable[[], type], is_frozen: bool) -> type:
    """Return a class with slots for the fields of `cls`; everything else is added when it is first read."""
    hints = get_annotations(cls)
    fields = [name for name in hints if "ClassVar" not in str(hints[name]).partition("[")[0]]
    body = dict(vars(cls))
    for name in (*fields, "__dict__", "__weakref__"):
        body.pop(name, None)
    has_weakref = any("__weakref__" in vars(base) for base in cls.__mro__[1:-1])
    body["__slots__"] = (*fields, *(() if has_weakref else ("__weakref__",)))
    body.update(_REFUSALS if is_frozen else {"__attrs_own_setattr__": False})
    missing = _Missing(cls, complete)
    body.update({name: _Later(missing, name) for name in _ADDED - body.keys()})
    missing.cls = made = type(cls)(cls.__name__, cls.__bases__, body)
    for cell in _cells(vars(cls).values()):
        with suppress(ValueError):  # an empty cell
            if cell.cell_contents is cls:
                cell.cell_contents = made  # `super()` in a method means the new class
    return made


def _cells(values: Any) -> Iterator[CellType]:
    for value in values:
        if isinstance(value, property):
            value = value.fget
        elif isinstance(value, _WRAPPERS):
            value = value.__func__
        if type(value) is FunctionType and value.__closure__:
            yield from value.__closure__


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define, frozen = _decorator(attrs.define), _decorator(attrs.frozen)
