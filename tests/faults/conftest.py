"""A disk that is small enough to fill up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.damage import Court, small_story
from tests.snapshots.hosts import snapshot
from weakfs.snapshots import Store


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


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Court:
    return Court(tmp_path_factory.mktemp("damage"), small_story())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"content")
    return tmp_path / "root"


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    """A store with one snapshot, named s."""
    snapshot(Store(tmp_path / "store"), root, "s")
    return tmp_path / "store"
