"""A faster `__init__` for frozen classes that are instantiated in every tool call.

The fields of a frozen class can only be set with `object.__setattr__`, which attrs calls for each of them. `fast_init`
temporarily changes the class of a new instance to an open class, which is not frozen, while its fields are assigned.
Six fields then take 0.29 µs instead of 0.53 µs, and twelve take 0.35 µs instead of 0.86 µs (CPython 3.11).
"""

from __future__ import annotations

from functools import wraps
from typing import Any, TypeVar, cast

import attrs

from weakfs.class_decorators import when_complete

__all__ = ["fast_init", "open_class"]

C = TypeVar("C", bound=type)

# The number of calls after which `__init__` is compiled. Compiling takes as long as about a hundred calls, so a process
# that makes only one tool call should not compile it.
MANY = 8

_BECOME: Any = object.__dict__["__class__"].__set__


def open_class(cls: type) -> Any:
    """Return a class whose instances need no arguments, can be assigned to, and can become instances of `cls`."""
    how = {"__init__": object.__init__, "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(cls)(cls.__name__, (cls,), {"__slots__": (), **how})


def fast_init(cls: C) -> C:
    """Give a class made by `frozen` a faster `__init__`, which is compiled after a few calls.

    Use this decorator on the line above `@frozen`. The class must neither convert nor validate its fields, and fields
    that are not arguments must have a factory. Its subclasses are initialized as before.
    """
    when_complete(cls, _count_calls)
    return cls


def _count_calls(cls: Any) -> None:
    fields = attrs.fields(cls)
    is_derived = all(one.init or hasattr(one.default, "takes_self") for one in fields)
    if not is_derived or any(one.converter is not None or one.validator is not None for one in fields):
        raise TypeError(f"cannot give {cls.__name__} a faster __init__: it converts, validates or leaves out a field")
    given = cls.__init__
    calls = 0

    @wraps(given)
    def first_calls(self: object, *args: Any, **options: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == MANY:
            cls.__init__ = wraps(given)(_compiled(cls, given))
        given(self, *args, **options)

    cls.__init__ = first_calls


def _compiled(cls: type, given: Any) -> Any:
    fields = attrs.fields(cls)
    names = [cast(str, one.alias) for one in fields if one.init and not one.kw_only]
    keywords = [cast(str, one.alias) for one in fields if one.init and one.kw_only]
    known = {"_cls": cls, "_open": open_class(cls), "_become": _BECOME, "_given": given, "_NOTHING": attrs.NOTHING}
    lines = [
        f"def __init__({', '.join(['self', *names, *(['*', *keywords] if keywords else [])])}):",
        "    if self.__class__ is not _cls:",
        f"        return _given({', '.join(['self', *names, *(f'{name}={name}' for name in keywords)])})",
        "    _become(self, _open)",
    ]
    for one in fields:
        default: Any = one.default
        value = cast(str, one.alias)
        if hasattr(default, "takes_self"):
            known[f"_make_{one.name}"] = default.factory
            made = f"_make_{one.name}({'self' if default.takes_self else ''})"
            value = f"{made} if {value} is _NOTHING else {value}" if one.init else made
        lines.append(f"    self.{one.name} = {value}")
    exec("\n".join([*lines, "    self.__class__ = _cls"]), known)
    init: Any = known["__init__"]
    init.__defaults__, init.__kwdefaults__ = given.__defaults__, given.__kwdefaults__
    return init
