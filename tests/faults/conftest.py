"""A disk that is small enough to fill up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this needs the right to mount a small disk")
    yield disk
    # Not computed until needed: a failed test's traceback may hold a store, and with it open packs.
    subprocess.run(["umount", "--lazy", str(disk)], check=True)
