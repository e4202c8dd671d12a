"""Values in the packed form that keyframes keep."""

from __future__ import annotations

from collections.abc import Generator
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

from weakfs.class_decorators import frozen
from weakfs.session.slices.log import Log

R = TypeVar("R")

# Work that can be done a bit at a time, and its result: it yields after each bit, which takes 10 to 20 µs.
Steps = Generator[None, None, R]


def complete(steps: Steps[R]) -> R:
    """Do all of the work at once, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: R = stop.value
            return result


class Counted(set[int]):
    """The identities of the blobs that records hold, and the total size of the others encountered."""

    others = 0

    def other(self, size: int) -> int:
        """Count a blob that no record holds, and return its size."""
        self.others += size
        return size


@runtime_checkable
class Packable(Protocol):
    """A value that keyframes keep in another form: plain tuples, shared between versions of the value."""

    def pack(self, before: Any, counted: Counted | None) -> Steps[tuple[Any, int]]:
        """Return the packed form, and the approximate number of bytes that it does not share with `before`.

        `before` is the packed form of an earlier value. Blobs in `counted` cost nothing. Without `counted`, sizes are
        not computed.
        """
        ...

    @classmethod
    def unpack(cls, packed: Any, known: dict[int, Any] | None = None) -> Any:
        """Return the value, unpacked. With `known`, values that are unpacked in sequence share what they can."""
        ...

    @classmethod
    def weight(cls, packed: Any, before: Any) -> Steps[int]:
        """Return the approximate number of bytes that a form does not share with `before`, without blobs."""
        ...


@lru_cache(256)
def _has_packed_form(type_: type) -> bool:
    return issubclass(type_, Packable)


def is_packable(value: object) -> TypeGuard[Packable]:
    """Return whether a value is `Packable`. Checks each type once: checking a protocol takes 20 µs."""
    return _has_packed_form(type(value))  # type: ignore[arg-type]  # mypy takes the hash of a class for its instances'


@frozen(eq=False)
class PackedValue:
    """The only value of a slice, packed."""

    cls: type[Packable]
    packed: Any

    def values(self, known: dict[int, Any] | None = None) -> Log[Any]:
        """Return the values of the slice, unpacked."""
        return Log((self.cls.unpack(self.packed, known),))
