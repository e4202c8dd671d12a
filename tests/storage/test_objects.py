"""Storage in object stores: the suites over a server with the protocol of S3, and error messages."""

from __future__ import annotations

import asyncio
import itertools
import threading

import pytest

from tests.storage import servers
from tests.storage.servers import Server
from tests.storage.suites import AsyncEventStoreByUrl, AsyncStorageByUrl, EventStoreByUrl, Located, StorageByUrl
from weakfs import storage
from weakfs.storage import Storage, StorageError
from weakfs.storage.adapters import run_in_place
from weakfs.testing.storage_conformance.storage_cases import ODD_KEYS

pytest.importorskip("obstore")

BUCKETS = itertools.count()


class InBucket(Located):
    # The server takes milliseconds for each.
    many_keys = 40

    @pytest.fixture(autouse=True)
    def place(self, s3_server: Server) -> None:
        self.location = servers.bucket(s3_server, f"bucket-{next(BUCKETS)}")


# With and without `async`, and over any server, the engine is the same code: a sample has each client, each server and
# each part once.
@pytest.mark.exhaustive
class TestObjectStorage(InBucket, StorageByUrl):
    pass


class TestAsyncObjectStorage(InBucket, AsyncStorageByUrl):
    pass


class TestObjectEventStore(InBucket, EventStoreByUrl):
    pass


@pytest.mark.exhaustive
class TestAsyncObjectEventStore(InBucket, AsyncEventStoreByUrl):
    pass


# Azurite is too large for most machines: these are skipped without it.
class InContainer(Located):
    many_keys = 40

    @pytest.fixture(autouse=True)
    def place(self, azure_server: Server) -> None:
        self.location = servers.container(azure_server, f"container-{next(BUCKETS)}")


class AzureCases(InContainer):
    @pytest.mark.parametrize("key", ODD_KEYS, ids=ascii)
    def test_a_key_may_be_any_text(self, storage: Storage, key: str) -> None:
        if "\\" not in key:
            super().test_a_key_may_be_any_text(storage, key)  # type: ignore[misc]
            return
        with pytest.raises(ValueError, match=r"invalid key .*: Azure turns a backslash into a slash"):
            storage.set(key, b"1")

    def test_keys_are_listed_in_the_order_of_their_bytes(self, storage: Storage) -> None:
        pytest.skip("Azurite sorts as JavaScript does")


class TestAzureStorage(AzureCases, StorageByUrl):
    pass


@pytest.mark.exhaustive
class TestAsyncAzureStorage(AzureCases, AsyncStorageByUrl):
    pass


@pytest.mark.exhaustive
class TestAzureEventStore(InContainer, EventStoreByUrl):
    pass


@pytest.mark.exhaustive
class TestAsyncAzureEventStore(InContainer, AsyncEventStoreByUrl):
    pass


# These are skipped without fake-gcs-server, which is too large as well.
class InGoogleBucket(Located):
    many_keys = 40

    @pytest.fixture(autouse=True)
    def place(self, gcs_server: Server) -> None:
        self.location = servers.gcs_bucket(gcs_server, f"bucket-{next(BUCKETS)}")


class TestGoogleStorage(InGoogleBucket, StorageByUrl):
    pass


@pytest.mark.exhaustive
class TestAsyncGoogleStorage(InGoogleBucket, AsyncStorageByUrl):
    pass


class TestGoogleEventStore(InGoogleBucket, EventStoreByUrl):
    pass


@pytest.mark.exhaustive
class TestAsyncGoogleEventStore(InGoogleBucket, AsyncEventStoreByUrl):
    pass


class TestMessages(InBucket):
    def test_a_password_is_never_shown(self) -> None:
        assert "hunter2" not in storage.open(self.url()).url
        wrong = self.url().replace("s3://", "s3://no-such-")
        with pytest.raises(StorageError, match="check the bucket") as caught:
            storage.open(wrong)
        assert "hunter2" not in str(caught.value)

    def test_an_unknown_option_is_refused(self) -> None:
        with pytest.raises(ValueError, match="check the options of the URL"):
            storage.open(self.url() + "&colour=red")


async def test_no_request_outlives_the_error_of_another_one() -> None:
    from weakfs.storage.engines.objects.client import AsyncClient

    done: list[str] = []

    async def put(key: str) -> None:
        await asyncio.sleep(0)
        if key == "bad":
            raise StorageError("told to fail")
        await asyncio.sleep(0)
        done.append(key)

    with pytest.raises(StorageError):
        await AsyncClient("memory:///").each(put, ["bad", "a", "b"])
    before = list(done)
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == before


def test_no_blocking_request_outlives_the_error_of_another_one() -> None:
    from weakfs.storage.engines.objects.client import BlockingClient

    client, may_go, begun, done = BlockingClient("memory:///"), threading.Event(), threading.Event(), list[str]()

    async def put(key: str) -> None:
        if key == "bad":
            begun.wait(60)
            # The other one is released a moment after the error.
            threading.Timer(0.05, may_go.set).start()
            raise StorageError("told to fail")
        begun.set()
        may_go.wait(60)
        done.append(key)

    with pytest.raises(StorageError):
        run_in_place(client.each(put, ["bad", "a"]))
    assert done == ["a"]
    client.close()
