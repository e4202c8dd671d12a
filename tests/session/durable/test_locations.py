"""Where sessions are stored: the forms of a location, and what a location without a session is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionClosed, SessionError
from weakfs.session.durable.open_session import event_store
from weakfs.storage.folder import FolderEventStore


def test_a_session_can_be_stored_in_a_folder(tmp_path: Path) -> None:
    with Session.open(tmp_path / "work", "s") as session:
        InMemoryFilesystem(session).write("/a", "1" * 3000)
        expected = session.to_bytes()
    with pytest.raises(SessionClosed, match="it was closed; open or load it again"):
        session.snapshot()
    with Session.open(str(tmp_path / "work")) as again:
        assert again.session_id == "s"
        assert again.to_bytes() == expected


def test_the_only_session_in_a_storage_needs_no_id() -> None:
    store = MemoryStreams()
    InMemoryFilesystem(Session.open(store, "one")).write("/a", "1")
    assert Session.open(store).session_id == "one"
    InMemoryFilesystem(Session.open(store, "two")).write("/a", "1")
    with pytest.raises(SessionError, match="'one', 'two'"):
        Session.open(store)


def is_synced(where: str, durability: Literal["process", "power"]) -> bool:
    store = event_store(where, durability)
    assert isinstance(store, FolderEventStore)
    return store._options.is_synced


@pytest.mark.parametrize("location", ["{}/a:b", "file://{}/a", "folder:{}/a", "{}/a?b", "{}/a"])
def test_durability_applies_to_every_form_of_a_folder_location(tmp_path: Path, location: str) -> None:
    where = location.format(tmp_path)
    assert not is_synced(where, "process")
    assert is_synced(where, "power")
    assert is_synced("folder:a?durability=power", "process")


@pytest.mark.parametrize("location", ["{}/a?durability=power", "{}/a?durability="])
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_folder_whose_name_ends_like_an_option_can_be_reopened(
    tmp_path: Path, location: str, durability: Literal["process", "power"]
) -> None:
    where = Path(location.format(tmp_path))
    with Session.open(where, "s", durability=durability) as session:
        InMemoryFilesystem(session).write("/a", "1")
        assert session._log is not None
        url = session._log.store.url
    with Session.open(url, "s") as session:
        assert InMemoryFilesystem(session).read("/a").content == "1"
    assert is_synced(url, durability) == is_synced(str(where.parent), durability)
    assert [path.name for path in tmp_path.iterdir()] == [where.name]


def test_a_location_without_a_storage_or_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="pass a folder, a URL or a storage"):
        Session.open(cast(Path, b"sessions"))
    with pytest.raises(ValueError, match="session_id is ''"):
        Session.open(tmp_path, "")
    assert not list(tmp_path.iterdir())
