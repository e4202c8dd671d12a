"""A session in memory, mounted; skipped if FUSE is not available."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session

Run = Callable[[str], str]


@pytest.fixture(autouse=True)
def fuse() -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or shutil.which("fusermount3") is None:
        pytest.skip("FUSE is not available: there is no fusermount3, or /dev/fuse may not be used")
    try:
        import weakfs.integrations.mount  # noqa: F401
    except OSError as error:
        pytest.skip(str(error))


@pytest.fixture
def files() -> InMemoryFilesystem:
    return InMemoryFilesystem(Session())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "mounted"
    made.mkdir()
    yield made
    assert not os.path.ismount(made)
    assert list(made.iterdir()) == []


@pytest.fixture
def run(place: Path) -> Run:
    """A function that runs a shell command in the mount and returns what it printed."""

    def command(text: str) -> str:
        done = subprocess.run(["sh", "-ec", text], cwd=place, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return command
