"""The conformance suite on a layer over other files: over an empty filesystem, and over prepared files."""

from __future__ import annotations

import pytest

from tests.conformance.places import HostPlaces, Open, Places, ticking
from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.testing import FilesystemConformance


@pytest.mark.thinned
@pytest.mark.exhaustive
class TestOverlayOverNothing(Places, FilesystemConformance):
    def new_place(self) -> Open:
        clock = ticking()
        session = Session(clock=clock)
        lower = InMemoryFilesystem(Session(clock=clock))
        return lambda options: OverlayFilesystem(lower, session, **options)


@pytest.mark.sampled(by_rule=True)
class TestOverlayOverWhatIsThere(Places, FilesystemConformance):
    """The layer is over the files that were prepared."""

    def new_place(self) -> Open:
        clock = ticking()
        lower = InMemoryFilesystem(Session(clock=clock))
        return lambda options: OverlayFilesystem(lower, Session(clock=clock), **options) if options else lower


@pytest.mark.thinned
@pytest.mark.exhaustive
class TestOverlayOverHost(HostPlaces, FilesystemConformance):
    """The layer is over the files that were prepared."""

    def new_place(self) -> Open:
        clock = ticking()
        root, store = self.new_directory()
        lower = HostFilesystem(root, session=Session(clock=clock), store=store)
        return lambda options: OverlayFilesystem(lower, Session(clock=clock), **options) if options else lower
