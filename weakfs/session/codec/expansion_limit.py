"""A limit on how much memory loading a session file or a checkpoint may take beyond its own size.

A file stores many values by reference: a blob as an earlier one and a tail, a directory as its difference from another.
A malicious file can expand to a thousand times its size. So everything that loading copies is counted before it is
copied, and refused beyond a budget. Values that are shared in memory, such as the appended versions of a file, cost
nothing.
"""

from __future__ import annotations

from weakfs.session.errors import SessionFileError

# The budget: a multiple of the file's size, and a minimum in bytes. Loading a session with a snapshot for each small
# change in a deep tree uses about 10 times the size of its file.
FACTOR = 20.0
LEAST = 64 << 20


class ExpansionExceeded(SessionFileError):
    """A file or a checkpoint expands beyond its budget. Reading it again makes no difference."""


class Expansion:
    """The expansion budget of one file or checkpoint that is being loaded, and how much of it is used.

    `size` is its size in bytes, `factor` the multiple of it that may be copied; `None` means no limit. Messages call it
    `name`.
    """

    __slots__ = ("_factor", "_most", "_name", "_size", "_used")

    def __init__(self, size: int, factor: float | None = FACTOR, name: str = "file") -> None:
        check_factor(factor)
        self._size = size
        self._name = name
        self._factor = factor
        self._most = None if factor is None else max(int(size * factor), LEAST)
        self._used = 0

    def take(self, size: int, what: str, where: str) -> None:
        """Count `size` bytes that are about to be copied. Raises `ExpansionExceeded` if they exceed the budget."""
        self._used += size
        if self._most is not None and self._used > self._most:
            raise ExpansionExceeded(
                f"{what} would expand the {self._name} to {self._used:,} bytes, but a {self._name} of {self._size:,} "
                f"bytes may expand to {self._most:,} ({self._factor:g} times its size, or {LEAST >> 20} MiB); if you "
                f"trust the {self._name}, load it with a larger max_expansion, or with None for no limit",
                where=where,
            )


def check_factor(factor: float | None) -> None:
    """Raise `ValueError` if `factor` is not a valid expansion factor."""
    if factor is not None and not (type(factor) in (int, float) and factor >= 0):
        raise ValueError(f"max_expansion is {factor!r}; pass a number of at least 0, or None for no limit")


def unlimited() -> Expansion:
    """Return a budget without a limit, for values that are in memory already."""
    return Expansion(0, None)
