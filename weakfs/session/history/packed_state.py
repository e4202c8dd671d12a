"""Values in the form in which checkpoints keep them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from attrs import frozen

from weakfs.session.history.log import Log


class Counted(set[int]):
    """The identities of the contents that records hold, and how many bytes of other contents were met."""

    others = 0

    def other(self, size: int) -> int:
        """Count a content that no record holds, and give its size."""
        self.others += size
        return size


@runtime_checkable
class Packable(Protocol):
    """A value that a checkpoint keeps in another form: plain tuples, which versions of the value share."""

    def pack(self, before: Any, counted: Counted) -> tuple[Any, int]:
        """Return the form, and about how many bytes it takes that `before`, the form of an earlier value, does not.

        Contents that are `counted` take nothing.
        """
        ...

    @classmethod
    def unpack(cls, packed: Any, known: dict[int, Any] | None = None) -> Any:
        """Return the value again. With `known`, values that are unpacked one after another share what they can."""
        ...

    @classmethod
    def weight(cls, packed: Any, before: Any) -> int:
        """Return about how many bytes the form takes that `before`, an earlier one, does not, contents apart."""
        ...


@frozen(eq=False)
class PackedValue:
    """The only value of a slice, packed."""

    cls: type[Packable]
    packed: Any

    def values(self, known: dict[int, Any] | None = None) -> Log[Any]:
        """Return the values of the slice again."""
        return Log((self.cls.unpack(self.packed, known),))
