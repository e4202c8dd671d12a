"""How much memory a file may take beyond its own size when it is loaded.

A file tells much by reference: a content as an earlier one and a tail, a directory as its difference from another.
One that was made on purpose can stand for a thousand times its size. So what loading copies is counted before it is
copied, and refused beyond a budget. What is shared in memory, as the appended versions of a file are, costs nothing.
"""

from __future__ import annotations

from weakfs.session.errors import SessionFileError

# The budget: so many times the size of the file, and never less than so many bytes. In a saved session what is
# counted here is about 10 times its size, where it has a snapshot for each small change in a deep tree.
FACTOR = 20.0
LEAST = 64 << 20


class Expansion:
    """The budget of one file that is being loaded, and what of it is used.

    `size` is that of the file in bytes, `factor` how many times that may be copied; `None` is no limit.
    """

    __slots__ = ("_factor", "_most", "_size", "_used")

    def __init__(self, size: int, factor: float | None = FACTOR) -> None:
        check_factor(factor)
        self._size = size
        self._factor = factor
        self._most = None if factor is None else max(int(size * factor), LEAST)
        self._used = 0

    def take(self, size: int, what: str, where: str) -> None:
        """Count `size` bytes that are about to be copied; `SessionFileError` if they go over the budget."""
        self._used += size
        if self._most is not None and self._used > self._most:
            raise SessionFileError(
                f"{what} would bring what is expanded to {self._used:,} bytes, and a file of {self._size:,} bytes may "
                f"expand to {self._most:,} ({self._factor:g} times its size, or {LEAST >> 20} MiB); if you trust the "
                f"file, load it with a larger max_expansion, or with None for no limit",
                where=where,
            )


def check_factor(factor: float | None) -> None:
    """Raise `ValueError` for what is no factor of a budget."""
    if factor is not None and not (type(factor) in (int, float) and factor >= 0):
        raise ValueError(f"max_expansion is {factor!r}; give a number from 0 on, or None for no limit")


def unlimited() -> Expansion:
    """Return a budget that nothing goes over: for values that are in memory already."""
    return Expansion(0, None)
