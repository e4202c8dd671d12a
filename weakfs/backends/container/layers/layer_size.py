"""The space that a layer takes, measured while commands write to it."""

from __future__ import annotations

import os
from time import monotonic

# A layer is measured at least this often, in seconds: other programs may free space while it grows.
SELDOM = 1.0

# Regular measurements take at most 1/SHARE of the time.
SHARE = 20


class LayerSize:
    """Checks a layer, given as an open directory, against a number of bytes; call `is_exceeded` often.

    It checks the free space of the disk, and measures the layer only when enough of it is gone, or from time to time.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._room = -1
        self._free = 0
        self._next = 0.0

    def is_exceeded(self, directory: int) -> bool:
        """Return whether the layer takes more space than allowed. O(1), or O(entries) if it is measured."""
        now = monotonic()
        if now < self._next and self._free - free_space(directory) < self._room // 2:
            return False
        self._free = free_space(directory)
        self._room = self.most - size_of_layer(directory)
        self._next = monotonic() + max(SELDOM, SHARE * (monotonic() - now))
        return self._room < 0


def free_space(directory: int) -> int:
    """Return how many bytes are free on the disk of an open directory."""
    status = os.fstatvfs(directory)
    return status.f_bfree * status.f_frsize


def size_of_layer(directory: int) -> int:
    """Return how many bytes the entries of an open directory take on the disk; entries that vanish are left out."""
    total, known = 0, set[int]()
    for _, directories, files, descriptor in os.fwalk(".", dir_fd=directory):
        for name in (*directories, *files):
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue
            if status.st_nlink == 1 or name in directories or status.st_ino not in known:
                known.add(status.st_ino)
                total += status.st_blocks * 512
    return total
