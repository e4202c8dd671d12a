"""`define` and `frozen` of attrs at less cost: comparisons are compiled when first called, and `repr` is short.

Compiling `__eq__`, `__hash__` and `__repr__` takes more than half of the time that attrs needs for a class (0.16 of
0.30 ms). A new process makes a hundred classes before its first answer, and compares instances of few. `repr` shows
only the beginning of long fields, so that a traceback that holds a session stays short.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from weakfs.short_repr import fields_repr

__all__ = ["define", "frozen"]


def _decorator(decorate: Callable[..., type]) -> Callable[..., Any]:
    def decorated(cls: type | None = None, /, *, eq: bool = True, repr: bool = True, **options: Any) -> Any:
        if cls is None:
            return partial(decorated, eq=eq, repr=repr, **options)
        # What a class defines itself stays, as with attrs.
        eq, repr = eq and "__eq__" not in vars(cls), repr and "__repr__" not in vars(cls)
        has_hash = "__hash__" in vars(cls)
        made = decorate(cls, eq=False, repr=False, **options)
        if eq:
            _compile_later(made, "__eq__")
        if eq and not has_hash:
            if decorate is attrs.frozen:
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


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define, frozen = _decorator(attrs.define), _decorator(attrs.frozen)
