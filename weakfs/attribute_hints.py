"""Hints for attributes that a class does not have, but that users of other libraries expect: what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar, cast

C = TypeVar("C", bound=type)


class _AbsentAttribute:
    """Raises `AttributeError` with a hint when it is read.

    A class that defines `__getattr__` instead slows down every attribute of its objects.
    """

    __slots__ = ("_hint", "_name")

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint

    def __repr__(self) -> str:
        return f"<no attribute: use {self._hint}>"

    def __get__(self, instance: object, owner: type) -> NoReturn:
        of = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        raise AttributeError(f"{of} has no attribute {self._name!r}; use {self._hint}")


def attribute_hints(**hints: str) -> Callable[[C], C]:
    """Decorate a class with hints for attributes that it lacks: the error for `name` says to use `hints[name]`.

    An attribute that the class or a subclass has stays as it is. `dir(object)` does not list the names.
    """

    def decorate(cls: C) -> C:
        for name, hint in hints.items():
            if not hasattr(cls, name):
                setattr(cls, name, _AbsentAttribute(name, hint))
        listed = cast("Callable[[object], Iterable[str]]", cls.__dir__)

        def without_hints(self: object) -> Iterable[str]:
            return [name for name in listed(self) if name not in hints or hasattr(self, name)]

        cls.__dir__ = without_hints  # type: ignore[method-assign,assignment]  # mypy takes `cls` for an instance
        return cls

    return decorate
