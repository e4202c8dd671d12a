"""The conformance suite on files in a session that is stored call by call."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.conformance.places import Open, Places
from tests.session.durable.streams import MemoryStreams
from weakfs import session
from weakfs.backends import StorageFilesystem
from weakfs.storage import EventStore, open_event_store
from weakfs.testing import FilesystemConformance

NUMBERS = count()


@pytest.mark.sampled(by_rule=True)
class TestMemoryStreams(Places, FilesystemConformance):
    """Over streams in memory; the files are opened anew after they were prepared."""

    def make_store(self) -> EventStore:
        return MemoryStreams()

    def new_place(self) -> Open:
        store, session_id = self.make_store(), f"files{next(NUMBERS)}"
        return lambda options: StorageFilesystem(store, session_id, **options)


@pytest.mark.exhaustive
class TestFolder(TestMemoryStreams):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._places = (tmp_path / str(number) for number in count())

    def make_store(self) -> EventStore:
        return open_event_store(next(self._places))


@pytest.mark.exhaustive
class TestSqlite(TestFolder):
    def make_store(self) -> EventStore:
        return open_event_store(f"sqlite:{next(self._places)}")


def test_files_are_there_when_a_storage_is_opened_again(tmp_path: Path) -> None:
    StorageFilesystem(tmp_path / "store").write("/a", "1")
    again = StorageFilesystem(str(tmp_path / "store"))
    assert again.read("/a").content == "1"
    assert isinstance(again.session, session.Session)
