"""The conformance suite on a host directory."""

from __future__ import annotations

import pytest

from tests.conformance.places import HostPlaces, Open, ticking
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.testing import FilesystemConformance


@pytest.mark.sampled(by_rule=True)
class TestHost(HostPlaces, FilesystemConformance):
    def new_place(self) -> Open:
        root, store = self.new_directory()
        session = Session(clock=ticking())
        return lambda options: HostFilesystem(root, session=session, store=store, **options)
