"""The conformance suite on files in a session."""

from __future__ import annotations

from tests.conformance.places import ticking
from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy
from weakfs.testing import FilesystemConformance, Prepare


class TestMemory(FilesystemConformance):
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
        if prepare is not None:
            prepare(InMemoryFilesystem(session))
        return InMemoryFilesystem(
            session, limits=limits or Limits(), read_only=read_only, follow_symlinks=follow_symlinks
        )
