"""Files on each kind of backend, and threads that switch often."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, OverlayFilesystem, Session
from weakfs.filesystem import SymlinkPolicy

Files: TypeAlias = InMemoryFilesystem | HostFilesystem | OverlayFilesystem
OpenFiles: TypeAlias = Callable[..., Files]


@pytest.fixture(params=["memory", "host", "overlay"])
def open_files(request: pytest.FixtureRequest, tmp_path: Path) -> OpenFiles:
    """Return a function that opens empty files of a session, on each kind of backend."""

    def opened(session: Session, *, follow_symlinks: SymlinkPolicy = "deny") -> Files:
        if request.param == "memory":
            return InMemoryFilesystem(session, follow_symlinks=follow_symlinks)
        if request.param == "overlay":
            return OverlayFilesystem(InMemoryFilesystem(), session, follow_symlinks=follow_symlinks)
        root, store = tmp_path / "root", tmp_path / "store"
        root.mkdir()
        return HostFilesystem(root, session=session, store=store, follow_symlinks=follow_symlinks)

    return opened


@pytest.fixture
def switching_often() -> Iterator[None]:
    """Make threads switch a thousand times as often, so that they meet in the middle of operations."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)
