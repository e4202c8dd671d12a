"""Detecting whether a process still exists, without its id: it holds the writing end of a FIFO."""

from __future__ import annotations

import os
from pathlib import Path


class Witness:
    """A FIFO named `fifo` in a directory. Shell code in `HOLD` says "here" in it and keeps it open."""

    HOLD = "exec 9>fifo; echo here >&9; touch begun"
    AWAIT = "until [ -e begun ]; do sleep 0.01; done"

    def __init__(self, directory: Path) -> None:
        os.mkfifo(directory / "fifo")
        self.reading = os.open(directory / "fifo", os.O_RDONLY | os.O_NONBLOCK)

    def close(self) -> None:
        os.close(self.reading)

    def saw_it_end(self) -> bool:
        """Return whether the process began and has ended."""
        assert os.read(self.reading, 100).startswith(b"here"), "it never began"
        try:
            return not os.read(self.reading, 100)
        except BlockingIOError:
            return False

    def waited_for_its_end(self) -> bool:
        """Return whether there was a process, once it is gone: the kernel may still be about to end it."""
        assert os.read(self.reading, 100).startswith(b"here"), "it never began"
        os.set_blocking(self.reading, True)
        return not os.read(self.reading, 100)
