"""A host directory for the conformance suite: in memory, where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.sampling import is_exhaustive

# A filesystem in memory: these tests spend half of their time waiting for the disk. What is written to a disk, and in
# which order, is tested in tests/faults.
MEMORY = "/dev/shm"
ROOM = 1 << 30


def _memory() -> str | None:
    """Return the filesystem in memory, if there is one with enough room and this run tests only a sample."""
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    return MEMORY if has_room and not is_exhaustive() else None


@pytest.fixture(scope="class")
def place() -> Iterator[Path]:
    """Create a directory for the tests of a class, and remove it afterwards."""
    place = Path(mkdtemp(dir=_memory()))
    yield place
    # Too deep for `shutil.rmtree` to remove.
    subprocess.run(["rm", "-rf", place], check=True)
