"""Inode numbers of files that a journal saved or restored by copying: which copy replaced which file.

Steps refer to a file by its inode number. A file that was restored from a copy has another number, and the earlier
steps still have to find it. Each line of the file `inodes` describes one copy, so that this survives a killed process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

INODES = b"inodes"

# The place of a file: on the disk being changed, or in the journal, which may be on another device.
Side = Literal["disk", "journal"]


def remember_copies(journal: int, source: Side, target: Side, pairs: Iterable[tuple[int, int]]) -> None:
    """Append the inode numbers of files and their copies; `journal` is the descriptor of the journal's directory."""
    lines = "".join(f"{source} {old} {target} {new}\n" for old, new in pairs)
    descriptor = os.open(
        INODES, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=journal
    )
    with open(descriptor, "w") as stream:
        stream.write(lines)


def current_inodes(journal: int, was: int) -> set[int]:
    """Return the inode numbers that the file `was` may have on the disk now: its own, and those of its copies."""
    try:
        descriptor = os.open(INODES, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=journal)
    except FileNotFoundError:
        return {was}
    found = {("disk", str(was))}
    with open(descriptor) as stream:
        for line in stream:
            # The last line may be truncated.
            parts = line.split() if line.endswith("\n") else []
            if len(parts) == 4 and (parts[0], parts[1]) in found:
                found.add((parts[2], parts[3]))
    return {int(number) for side, number in found if side == "disk"}
