"""The conformance suite on a layer over other files: over none, and over those that it finds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

import pytest

from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy
from weakfs.session import Session
from weakfs.testing import FilesystemConformance, Prepare

MILLISECOND = 1_000_000


class TestOverlayOverNothing(FilesystemConformance):
    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        ticks = count(1_700_000_000_000 * MILLISECOND, MILLISECOND)
        session = Session(clock=lambda: next(ticks))
        lower = InMemoryFilesystem(Session(clock=lambda: next(ticks)))
        if prepare is not None:
            prepare(OverlayFilesystem(lower, session))
        return OverlayFilesystem(
            lower, session, limits=limits or Limits(), read_only=read_only, follow_symlinks=follow_symlinks
        )


class TestOverlayOverWhatIsThere(FilesystemConformance):
    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        ticks = count(1_700_000_000_000 * MILLISECOND, MILLISECOND)
        lower = InMemoryFilesystem(Session(clock=lambda: next(ticks)))
        if prepare is not None:
            prepare(lower)
        return OverlayFilesystem(
            lower,
            Session(clock=lambda: next(ticks)),
            limits=limits or Limits(),
            read_only=read_only,
            follow_symlinks=follow_symlinks,
        )


class TestOverlayOverHost(FilesystemConformance):
    @pytest.fixture(autouse=True)
    def _places(self) -> Iterator[None]:
        self.place = Path(mkdtemp())
        self.numbers = count()
        yield
        # Deeper than what `shutil.rmtree` removes.
        subprocess.run(["rm", "-rf", self.place], check=True)

    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        ticks = count(1_700_000_000_000 * MILLISECOND, MILLISECOND)
        number = next(self.numbers)
        root, store = self.place / f"root{number}", self.place / f"store{number}"
        root.mkdir(mode=0o755)
        lower = HostFilesystem(root, session=Session(clock=lambda: next(ticks)), store=store)
        if prepare is not None:
            prepare(lower)
        return OverlayFilesystem(
            lower,
            Session(clock=lambda: next(ticks)),
            limits=limits or Limits(),
            read_only=read_only,
            follow_symlinks=follow_symlinks,
        )
