"""The conformance suite on files in a session."""

from __future__ import annotations

from tests.conformance.places import Open, Places, ticking
from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.testing import FilesystemConformance


class TestMemory(Places, FilesystemConformance):
    def new_place(self) -> Open:
        session = Session(clock=ticking())
        return lambda options: InMemoryFilesystem(session, **options)
