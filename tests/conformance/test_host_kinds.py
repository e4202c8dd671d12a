"""The cases about snapshots, on host directories whose snapshots are git commits or tar archives."""

from __future__ import annotations

import shutil

import pytest

from tests.conformance.places import HostPlaces, Open, ticking
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.testing.conformance.states.archive_cases import ArchiveCases
from weakfs.testing.conformance.states.digest_cases import DigestCases
from weakfs.testing.conformance.states.history_cases import HistoryCases
from weakfs.testing.conformance.states.snapshot_cases import SnapshotCases


class KindCases(HostPlaces, SnapshotCases, ArchiveCases, DigestCases, HistoryCases):
    kind: SnapshotKind

    def new_place(self) -> Open:
        root, store = self.new_directory()
        session = Session(clock=ticking())
        return lambda options: HostFilesystem(root, session=session, snapshots=self.kind, store=store, **options)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
class TestGit(KindCases):
    kind = "git"


@pytest.mark.sampled(by_rule=True)
class TestTar(KindCases):
    kind = "tar"
