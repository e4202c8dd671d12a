"""What snapshots have to do with, on host directories whose snapshots are git commits, and tar archives."""

from __future__ import annotations

import shutil

import pytest

from tests.conformance.places import HostPlaces, ticking
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy
from weakfs.testing import Prepare
from weakfs.testing.conformance.archive_cases import ArchiveCases
from weakfs.testing.conformance.digest_cases import DigestCases
from weakfs.testing.conformance.history_cases import HistoryCases
from weakfs.testing.conformance.snapshot_cases import SnapshotCases


class KindCases(HostPlaces, SnapshotCases, ArchiveCases, DigestCases, HistoryCases):
    kind: SnapshotKind

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
            prepare(HostFilesystem(root, session=session, store=store, snapshots=self.kind))
        return HostFilesystem(
            root,
            session=session,
            limits=limits or Limits(),
            read_only=read_only,
            follow_symlinks=follow_symlinks,
            snapshots=self.kind,
            store=store,
        )


@pytest.mark.sampled
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
class TestGit(KindCases):
    kind = "git"


@pytest.mark.sampled
class TestTar(KindCases):
    kind = "tar"
