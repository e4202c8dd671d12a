"""Data stored by earlier versions can always be read: the keys of a storage, and SQLite, PostgreSQL and Redis.

Each engine has a sample of each of its layouts: at first, a lease was stored without its duration (`1`), then with it
(`1-seconds`); then frames and checkpoints got checksums (`2`), which values under keys had from the beginning.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from weakfs.storage import EventStore, LeaseLost, MemoryStorage, Storage, StorageEventStore, open, open_event_store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "storage"
LAYOUTS = ("1", "1-seconds", "2")
KEYS_LAYOUTS = LAYOUTS[:2]
SERVERS = ("postgresql", "redis")
# The time at which the keys were stored, for the lease.
NOW = 1_700_000_000.0

# The PostgreSQL of the tests does not sync.
pytestmark = pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")


def keys(layout: str) -> Storage:
    storage = MemoryStorage()
    values = json.loads((FIXTURES / f"keys-{layout}.json").read_text())
    storage.set_many({key: base64.b64decode(value) for key, value in values.items()})
    return storage


def load_into_postgresql(location: str, layout: str) -> str:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(location) as connection:
        connection.execute("DROP SCHEMA IF EXISTS fixture CASCADE")
        connection.execute((FIXTURES / f"postgresql-{layout}.sql").read_bytes())
    return f"{location}&schema=fixture"


def load_into_redis(location: str, layout: str) -> str:
    commands = (FIXTURES / f"redis-{layout}.resp").read_bytes()
    redis = pytest.importorskip("redis")
    with redis.Redis.from_url(location) as client:
        for key in [*client.scan_iter("fixture:*"), *client.scan_iter("{fixture}:*")]:
            client.delete(key)
    address = urlsplit(location)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(commands + b"*1\r\n$4\r\nQUIT\r\n")
        answers = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    # The answer to a command that failed begins with a minus sign.
    assert not [line for line in answers.split(b"\r\n") if line.startswith(b"-")]
    return f"{location}?namespace=fixture"


def location_of(engine: str, layout: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """Put a sample where its engine finds it."""
    if engine == "sqlite":
        shutil.copy(FIXTURES / f"sqlite-{layout}.db", folder / "a.db")
        return f"sqlite:{folder}/a.db"
    server = request.getfixturevalue(f"{engine}_server")
    return {"postgresql": load_into_postgresql, "redis": load_into_redis}[engine](server.url, layout)


SAMPLES = [("keys", layout) for layout in KEYS_LAYOUTS]
SAMPLES += [(engine, layout) for engine in ("sqlite", *SERVERS) for layout in LAYOUTS]


@pytest.fixture(params=SAMPLES, ids="-".join)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EventStore:
    engine, layout = request.param
    if engine == "keys":
        return StorageEventStore(keys(layout), clock=lambda: NOW)
    return open_event_store(location_of(engine, layout, request, tmp_path))


def test_streams_of_the_first_version_are_read(store: EventStore) -> None:
    assert sorted(store.streams()) == ["../odd name%", "chat-17", "leased"]
    frames = [b'{"frame":%d}' % number for number in range(1, 26)] + ["ä\n".encode(), bytes(range(256))]
    assert list(store.read("chat-17")) == list(enumerate(frames, 1))[2:]
    assert store.get_checkpoint("chat-17") == (20, b"state after frame 20")
    contents = {f"{number:02x}": b"content %d" % number for number in range(25)}
    assert store.get_contents("chat-17", contents) == {key: contents[key] for key in list(contents)[2:]}
    assert [frame.data for frame in store.read("../odd name%")] == [b"a"]
    store.close()


def test_streams_of_the_first_version_can_be_continued(store: EventStore) -> None:
    assert store.append("chat-17", 27, [b"more"]) == 28
    assert [frame.number for frame in store.read("chat-17", after=25)] == [26, 27, 28]
    with pytest.raises(LeaseLost):
        store.append("leased", 1, [b"b"], fencing=2)
    assert store.append("leased", 1, [b"b"], fencing=1) == 2
    store.close()


def test_leases_of_the_first_version_are_taken_over(store: EventStore) -> None:
    if isinstance(store, StorageEventStore):
        with pytest.raises(LeaseLost, match="'worker-1' holds it"):
            store.lease("leased", "worker-2", 30)
        assert store.lease("leased", "worker-1", 30).fencing == 1
    else:
        # It has expired.
        lease = store.lease("leased", "worker-2", 30)
        assert lease.fencing == 2
        store.release(lease)
        assert store.append("leased", 1, [b"b"]) == 2
    store.close()


@pytest.mark.parametrize("layout", KEYS_LAYOUTS)
def test_a_lease_of_the_first_version_is_in_force(layout: str) -> None:
    with pytest.raises(LeaseLost, match="'worker-1' holds its lease"):
        StorageEventStore(keys(layout), clock=lambda: NOW).append("leased", 1, [b"b"])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("engine", ["sqlite", *SERVERS])
def test_keys_of_the_first_version_are_read(
    request: pytest.FixtureRequest, engine: str, layout: str, tmp_path: Path
) -> None:
    with closing(open(location_of(engine, layout, request, tmp_path))) as storage:
        assert dict(storage.items()) == {"a/b": b"1", "ä": bytes(range(256))}
        versions = {}
        for key in ("a/b", "ä", "new"):
            found = storage.get_versioned(key)
            versions[key] = found.version if found is not None else storage.create(key, b"")
        assert len(set(versions.values())) == 3
