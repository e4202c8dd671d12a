"""Swap entries with one another as fast as possible, until killed: `python -m tests.faults.swapping A B [A B ...]`.

Each pair is exchanged in one step, so that both names are always there.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def main(pairs: list[tuple[bytes, bytes]]) -> None:
    """Swap the entries; the first line of output reports the start."""
    system = ctypes.CDLL(None, use_errno=True)
    print("swapping", flush=True)
    for one, other in itertools.cycle(pairs):
        if system.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) and ctypes.get_errno() not in (2, 16, 39):
            raise OSError(ctypes.get_errno(), "cannot swap")


if __name__ == "__main__":
    given = [os.fsencode(argument) for argument in sys.argv[1:]]
    main(list(zip(given[::2], given[1::2], strict=True)))
