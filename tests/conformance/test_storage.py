"""The conformance suite on files in a session that is stored call by call, on each engine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from attrs import frozen

from tests.conformance.places import Open, Places
from tests.session.durable.streams import MemoryStreams
from tests.storage.servers import ENGINES, empty_location
from weakfs import Registry, Session, StorageFilesystem, Toolset, backends, event, session
from weakfs.storage import DurabilityWarning, EventStore, open_event_store
from weakfs.testing import FilesystemConformance
from weakfs.testing.conformance.contents.byte_cases import ByteCases
from weakfs.testing.conformance.entries.relocation_cases import RelocationCases
from weakfs.tools import ToolCalls

NUMBERS = count()


# A simulated S3 takes milliseconds for each request.
@pytest.fixture(
    scope="class",
    params=["streams", *(pytest.param(name, marks=[pytest.mark.exhaustive] * (name == "s3")) for name in ENGINES)],
)
def store(request: pytest.FixtureRequest, place: Path) -> Iterator[EventStore]:
    """Open an empty store, in which each filesystem is a session."""
    if request.param == "streams":
        yield MemoryStreams()
    else:
        location = empty_location(request.param, request, place)
        with warnings.catch_warnings():
            # The server of the tests does not wait for the disk.
            warnings.simplefilter("ignore", DurabilityWarning)
            store = open_event_store(location)
        with closing(store):
            yield store


class InStorage(Places):
    """The files are reopened after they were prepared."""

    @pytest.fixture(autouse=True)
    def _store(self, store: EventStore) -> None:
        self.store = store

    def new_place(self) -> Open:
        store, session_id = self.store, f"files{next(NUMBERS)}"
        return lambda options: StorageFilesystem(store, session_id, **options)


# A sample has each test once, on an engine determined by the test's name.
@pytest.mark.thinned(by="store", whole="streams")
@pytest.mark.sampled(by_rule=True)
class TestStorageFilesystem(InStorage, FilesystemConformance):
    pass


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("store", ["s3"], indirect=True, scope="class")
class TestFilesInObjects(InStorage, RelocationCases, ByteCases):
    pass


@event("test/noted")
@frozen
class Noted:
    text: str


@pytest.mark.parametrize("place", [str, Path], ids=["text", "path"])
def test_files_are_present_after_reopening_a_storage(tmp_path: Path, place: type[str] | type[Path]) -> None:
    for files in (StorageFilesystem, backends.StorageFilesystem):
        files(place(tmp_path / "store")).write("/a", "1")
        again = files(place(tmp_path / "store"))
        assert again.read("/a").content == "1"
        assert isinstance(again.session, session.Session)


def test_changes_by_a_toolset_are_present_after_reopening_a_storage(tmp_path: Path) -> None:
    """It needs no registry: the types of tools are known."""
    files = StorageFilesystem(tmp_path)
    assert isinstance(files.session, Session)
    assert Toolset(files.session, files).call("write_file", {"path": "/a.txt", "content": "1\n"}).success
    again = StorageFilesystem(tmp_path)
    assert again.session is not None
    assert [call.tool for call in again.session[ToolCalls].all()] == ["write_file"]
    assert Toolset(again.session, again).call("read_file", {"path": "/a.txt"}).success


@pytest.mark.parametrize("registry", [Registry.with_types(Noted), session.Registry.empty().with_types(Noted)])
def test_a_registry_of_custom_types_need_not_contain_those_of_files(tmp_path: Path, registry: session.Registry) -> None:
    StorageFilesystem(tmp_path, registry=registry).write("/a", "1")
    files = StorageFilesystem(tmp_path, registry=registry)
    assert files.session is not None
    files.session.dispatch(Noted("x"))
    assert StorageFilesystem(tmp_path, registry=registry).read("/a").content == "1"
