"""What may be in the place of a file that weakfs reads: devices, FIFOs, directories, links, huge files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def make_sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


# Each function is called with the path of the file.
OBSTACLES: dict[str, Callable[[Path], object]] = {
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a FIFO": os.mkfifo,
    "a directory": Path.mkdir,
    "a looping link": lambda path: path.symlink_to(path),
    "a huge sparse file": make_sparse,
}
