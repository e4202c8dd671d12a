"""What earlier versions stored is read for ever: a storage's keys, and a SQLite file."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest

from weakfs.storage import EventStore, LeaseLost, MemoryStorage, Storage, StorageEventStore, open, open_event_store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "storage"


def keys_1() -> Storage:
    storage = MemoryStorage()
    values = json.loads((FIXTURES / "keys-1.json").read_text())
    storage.set_many({key: base64.b64decode(value) for key, value in values.items()})
    return storage


@pytest.fixture(params=["keys", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EventStore:
    if request.param == "keys":
        # Of the hour in which it was stored, for the lease.
        return StorageEventStore(keys_1(), clock=lambda: 1_700_000_000.0)
    shutil.copy(FIXTURES / "sqlite-1.db", tmp_path / "a.db")
    return open_event_store(f"sqlite:{tmp_path}/a.db")


def test_streams_of_the_first_version_are_read(store: EventStore) -> None:
    assert sorted(store.streams()) == ["../odd name%", "chat-17", "leased"]
    frames = [b'{"frame":%d}' % number for number in range(1, 26)] + ["ä\n".encode(), bytes(range(256))]
    assert list(store.read("chat-17")) == list(enumerate(frames, 1))[2:]
    assert store.get_checkpoint("chat-17") == (20, b"state after frame 20")
    contents = {f"{number:02x}": b"content %d" % number for number in range(25)}
    assert store.get_contents("chat-17", contents) == {key: contents[key] for key in list(contents)[2:]}
    assert [frame.data for frame in store.read("../odd name%")] == [b"a"]
    store.close()


def test_streams_of_the_first_version_go_on(store: EventStore) -> None:
    assert store.append("chat-17", 27, [b"more"]) == 28
    assert [frame.number for frame in store.read("chat-17", after=25)] == [26, 27, 28]
    with pytest.raises(LeaseLost):
        store.append("leased", 1, [b"b"], fencing=2)
    assert store.append("leased", 1, [b"b"], fencing=1) == 2
    store.close()


def test_a_lease_of_the_first_version_holds() -> None:
    with pytest.raises(LeaseLost, match="'worker-1' holds its lease"):
        StorageEventStore(keys_1(), clock=lambda: 1_700_000_000.0).append("leased", 1, [b"b"])


def test_keys_of_the_first_version_are_read(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "sqlite-1.db", tmp_path / "a.db")
    storage = open(f"sqlite:{tmp_path}/a.db")
    assert dict(storage.items()) == {"a/b": b"1", "ä": bytes(range(256))}
    storage.close()
