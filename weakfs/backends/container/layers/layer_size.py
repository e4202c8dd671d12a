"""The space that a layer takes up, measured while commands write to it."""

from __future__ import annotations

import os
import stat
from time import monotonic

from weakfs.class_decorators import frozen
from weakfs.snapshots.directory.entries import DIRECTORY

# A layer is measured at least this often, in seconds: other programs may free space while it grows.
SELDOM = 1.0

# Regular measurements take at most 1/SHARE of the time.
SHARE = 20


# The minimum number of bytes that an entry counts as: a disk holds a limited number of entries, even if all are empty.
LEAST = 4096


class LayerSize:
    """Checks a layer, given as an open directory, against a maximum number of bytes; call `is_exceeded` often.

    It checks the free space on the disk, and measures the layer only if enough space was used up, or from time to time.
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
    """Return how many bytes the entries of an open directory take up on the disk; entries that vanish are left out.

    Directories may be nested to any depth: only one is open at a time.
    """
    total, known = 0, set[int]()
    here = os.open(".", DIRECTORY, dir_fd=directory)
    try:
        entered = [_Entered(".", _identity(here), os.listdir(here))]
        while entered:
            while entered[-1].names:
                name = entered[-1].names.pop()
                try:
                    status = os.stat(name, dir_fd=here, follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1 or status.st_ino not in known:
                        known.add(status.st_ino)
                        total += max(status.st_blocks * 512, LEAST)
                    if stat.S_ISDIR(status.st_mode):
                        below = os.open(name, DIRECTORY, dir_fd=here)
                        here = _moved_to(below, here)
                        entered.append(_Entered(name, _identity(here), []))
                        entered[-1].names.extend(os.listdir(here))
                except OSError:
                    continue
            entered.pop()
            if entered:
                here = _moved_to(_parent(here, entered, directory), here)
    finally:
        os.close(here)
    return total


@frozen
class _Entered:
    """A directory that is being measured, with the names of its entries that have not been measured yet."""

    name: str
    identity: tuple[int, int]
    names: list[str]


def _parent(here: int, entered: list[_Entered], top: int) -> int:
    """Open the last directory of `entered`, the parent of the open one.

    If a directory was moved in the meantime, it is looked up by name from the top, and missing ones are dropped.
    """
    above = os.open("..", DIRECTORY, dir_fd=here)
    if _identity(above) == entered[-1].identity:
        return above
    above = _moved_to(os.open(".", DIRECTORY, dir_fd=top), above)
    for at, one in enumerate(entered[1:], 1):
        try:
            below = os.open(one.name, DIRECTORY, dir_fd=above)
        except OSError:
            del entered[at:]
            break
        above = _moved_to(below, above)
    return above


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _moved_to(descriptor: int, before: int) -> int:
    """Close the directory that was open before, and return the next one."""
    os.close(before)
    return descriptor
