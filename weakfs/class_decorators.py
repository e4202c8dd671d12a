"""`define` and `frozen` of attrs, for classes that are compared and shown by methods which attrs does not compile.

attrs compiles `__eq__`, `__hash__` and `__repr__` for each class, which takes more than half of its time for one (0.16
of 0.30 ms). A new process makes a hundred classes before its first answer, and compares and shows few of their
instances. The methods here take their fields from `operator.attrgetter`, and behave like those of attrs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs

__all__ = ["define", "frozen"]


def _decorator(decorate: Callable[..., type]) -> Callable[..., Any]:
    def decorated(cls: type | None = None, /, *, eq: bool = True, repr: bool = True, **options: Any) -> Any:
        if cls is None:
            return partial(decorated, eq=eq, repr=repr, **options)
        # What a class defines itself stays, as with attrs.
        own = frozenset(vars(cls))
        made = decorate(cls, eq=False, repr=False, **options)
        if eq and "__eq__" not in own:
            values = _values(made)
            made.__eq__ = _equal(values)  # type: ignore[method-assign, assignment]  # as attrs does
            if "__hash__" not in own:
                made.__hash__ = _hash(values) if decorate is attrs.frozen else None  # type: ignore[method-assign, assignment]
        if repr and "__repr__" not in own:
            made.__repr__ = _repr(made)  # type: ignore[method-assign, assignment]
        return made

    return decorated


def _values(cls: Any) -> Callable[[object], object]:
    """Return a function that returns what an instance is compared by."""
    names = [one.name for one in attrs.fields(cls) if one.eq]
    return attrgetter(*names) if names else lambda instance: ()


def _equal(values: Callable[[object], object]) -> Callable[[object, object], bool]:
    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Callable[[object], object]) -> Callable[[object], int]:
    return lambda self: hash(values(self))


def _repr(cls: type) -> Callable[[object], str]:
    names = [one.name for one in attrs.fields(cls) if one.repr]

    @recursive_repr()
    def shown(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__.rpartition('>.')[2]}({values})"

    return shown


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define, frozen = _decorator(attrs.define), _decorator(attrs.frozen)
