"""The conformance suite on a layer over other files: over none, and over those that it finds."""

from __future__ import annotations

import pytest

from tests.conformance.places import HostPlaces, ticking
from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy
from weakfs.testing import FilesystemConformance, Prepare


@pytest.mark.exhaustive
class TestOverlayOverNothing(FilesystemConformance):
    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        clock = ticking()
        session = Session(clock=clock)
        lower = InMemoryFilesystem(Session(clock=clock))
        if prepare is not None:
            prepare(OverlayFilesystem(lower, session))
        return OverlayFilesystem(
            lower, session, limits=limits or Limits(), read_only=read_only, follow_symlinks=follow_symlinks
        )


@pytest.mark.sampled
class TestOverlayOverWhatIsThere(FilesystemConformance):
    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        clock = ticking()
        lower = InMemoryFilesystem(Session(clock=clock))
        if prepare is not None:
            prepare(lower)
        return OverlayFilesystem(
            lower,
            Session(clock=clock),
            limits=limits or Limits(),
            read_only=read_only,
            follow_symlinks=follow_symlinks,
        )


@pytest.mark.exhaustive
class TestOverlayOverHost(HostPlaces, FilesystemConformance):
    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        clock = ticking()
        root, store = self.next_place()
        lower = HostFilesystem(root, session=Session(clock=clock), store=store)
        if prepare is not None:
            prepare(lower)
        return OverlayFilesystem(
            lower,
            Session(clock=clock),
            limits=limits or Limits(),
            read_only=read_only,
            follow_symlinks=follow_symlinks,
        )
