"""Connections that are lost at any request, and restarted servers: failed changes are repeated, and made once."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.storage.proxy import Cut, Proxy
from tests.storage.servers import Server
from weakfs.storage import (
    Checkpoint,
    EventStore,
    OutcomeUnknown,
    StorageError,
    StreamConflict,
    SyncEventStore,
    aopen_event_store,
    open,
    open_event_store,
)

# The PostgreSQL of the tests does not sync.
pytestmark = pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")

ENGINES = ["postgresql", "redis"]


def server_of(request: pytest.FixtureRequest, engine: str) -> Server:
    server: Server = request.getfixturevalue(f"{engine}_server")
    return server


@contextmanager
def proxied(server: Server) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy for a server, with the location of the event streams behind it."""
    parts = urlsplit(server.url)

    def connect() -> socket.socket:
        if parts.scheme == "redis":
            return socket.create_connection(("127.0.0.1", parts.port or 0))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432")
        return connection

    proxy = Proxy(connect)
    address = f"127.0.0.1:{proxy.port}"
    yield proxy, f"redis://{address}/0" if parts.scheme == "redis" else f"postgresql://weakfs@{address}/postgres"
    proxy.close()


def opened(location: str, client: str) -> EventStore:
    """Open event streams by either client of their engine."""
    return SyncEventStore.opened(aopen_event_store(location)) if client == "async" else open_event_store(location)


def until_done(change: Callable[[], object]) -> int:
    """Repeat a change until it succeeds. Return how often its outcome was unknown."""
    unknown = 0
    for _ in range(40):
        try:
            change()
        except StreamConflict:
            raise
        except OutcomeUnknown:
            unknown += 1
        except StorageError:
            continue
        else:
            return unknown
    raise AssertionError("it fails again and again")


def empty(store: EventStore) -> None:
    for name in store.streams():
        store.delete(name)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("cut", ["request", "answer"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("client", ["sync", "async"])
def test_a_lost_connection_loses_and_duplicates_nothing(
    request: pytest.FixtureRequest, engine: str, client: str, cut: Cut
) -> None:
    server = server_of(request, engine)
    unknown = 0
    with proxied(server) as (proxy, location):
        store, frames = opened(location, client), list[bytes]()
        empty(store)
        for at in range(1, 14):
            proxy.arm(cut, at=at % 5 + 1)
            while proxy.is_armed:
                new = [b"%d.%d" % (len(frames), part) for part in range(3)]
                number = len(frames)
                unknown += until_done(lambda n=number, f=new: store.append("s", n, f, contents={"ab": b"1"}))  # type: ignore[misc]
                frames += new
            number = len(frames)
            proxy.arm(cut, at=2)
            until_done(lambda n=number: store.put_checkpoint("s", Checkpoint(n, b"state")))  # type: ignore[misc]
            assert [frame.data for frame in store.read("s")] == frames
            assert store.get_checkpoint("s") == (number, b"state")
        store.close()
    assert unknown


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("client", ["sync", "async"])
def test_a_restarted_server_has_all_acknowledged_changes(
    request: pytest.FixtureRequest, engine: str, client: str
) -> None:
    server = server_of(request, engine)
    store, frames = opened(server.url, client), list[bytes]()
    empty(store)
    for is_crash in (True, False):
        for _ in range(20):
            frames.append(b"frame %d" % len(frames))
            store.append("s", len(frames) - 1, [frames[-1]], contents={f"{len(frames):02x}": b"1"})
        server.restart(crash=is_crash)
        until_done(lambda: store.append("s", len(frames), [b"last"]))
        frames.append(b"last")
        assert [frame.data for frame in store.read("s")] == frames
        assert len(store.has_contents("s", [f"{number:02x}" for number in range(1, 42)])) >= 20
    store.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("client", ["sync", "async"])
def test_waiting_continues_when_the_server_is_back(request: pytest.FixtureRequest, engine: str, client: str) -> None:
    server = server_of(request, engine)
    store = opened(server.url, client)
    empty(store)
    store.append("s", 0, [b"a"])
    assert store.wait("s", 1, 0.01) == 1
    server.restart()
    until_done(lambda: store.append("s", 1, [b"b"]))
    found: list[int] = []
    until_done(lambda: found.append(store.wait("s", 1, 60)))
    assert found == [2]
    store.close()


@pytest.mark.parametrize("scheme", ["postgresql", "redis"])
def test_an_unreachable_server_is_named_without_its_password(scheme: str) -> None:
    pytest.importorskip("psycopg" if scheme == "postgresql" else "redis")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(StorageError, match=f"cannot use '{scheme}://me@127.0.0.1:{port}.*; check the server") as caught:
        open(f"{scheme}://me:hunter2@127.0.0.1:{port}/0?password=hunter2")
    assert "hunter2" not in str(caught.value)
