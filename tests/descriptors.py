"""Checks whether something leaves descriptors open, in a process where other threads come and go."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_descriptor_left() -> Generator[None, None, None]:
    """Check that all descriptors that are opened in the block are closed after it."""
    # Objects that earlier tests left to the garbage collector are closed now, not in the block.
    gc.collect()
    before = {*os.listdir("/proc/self/fd")}
    yield
    # Another thread may have one open for a moment; a leaked one stays open.
    for _ in range(1000):
        if {*os.listdir("/proc/self/fd")} <= before:
            return
        time.sleep(0.01)
    left = {*os.listdir("/proc/self/fd")} - before
    assert not left, f"left open: {sorted(left)}"
