"""The conformance suite on a directory of the host."""

from __future__ import annotations

import pytest

from tests.conformance.places import HostPlaces, ticking
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy
from weakfs.testing import FilesystemConformance, Prepare


@pytest.mark.sampled
class TestHost(HostPlaces, FilesystemConformance):
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
        session = Session(clock=clock)
        if prepare is not None:
            prepare(HostFilesystem(root, session=session, store=store))
        return HostFilesystem(
            root,
            session=session,
            limits=limits or Limits(),
            read_only=read_only,
            follow_symlinks=follow_symlinks,
            store=store,
        )
