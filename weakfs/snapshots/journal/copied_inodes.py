"""Which file took the place of which where a journal keeps and puts back by copying: their inode numbers.

Steps name a file by its number. One that was kept as a copy comes back with another number, and the steps before that
have to find it. A line of the file tells of one copy, so that this outlives a killed process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

INODES = b"inodes"

# Where a file lies: on the disk that is worked on, or in the journal, perhaps on another device.
Side = Literal["disk", "journal"]


def remember_copies(journal: int, source: Side, target: Side, pairs: Iterable[tuple[int, int]]) -> None:
    """Write down which numbers the copies of files have; `journal` is the descriptor of its directory."""
    lines = "".join(f"{source} {old} {target} {new}\n" for old, new in pairs)
    descriptor = os.open(
        INODES, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=journal
    )
    with open(descriptor, "w") as stream:
        stream.write(lines)


def current_inodes(journal: int, was: int) -> set[int]:
    """Return the numbers that the file with the number `was` may have by now on the disk: that, and its copies'."""
    try:
        descriptor = os.open(INODES, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=journal)
    except FileNotFoundError:
        return {was}
    found = {("disk", str(was))}
    with open(descriptor) as stream:
        for line in stream:
            # A last line may have been cut off.
            parts = line.split() if line.endswith("\n") else []
            if len(parts) == 4 and (parts[0], parts[1]) in found:
                found.add((parts[2], parts[3]))
    return {int(number) for side, number in found if side == "disk"}
