"""Storage in object stores: the suites over a server that speaks as S3 does, and messages."""

from __future__ import annotations

import itertools

import pytest

from tests.storage import servers
from tests.storage.servers import Server
from tests.storage.suites import AsyncEventStoreByUrl, AsyncStorageByUrl, EventStoreByUrl, Located, StorageByUrl
from weakfs import storage
from weakfs.storage import StorageError

pytest.importorskip("obstore")

BUCKETS = itertools.count()


class InBucket(Located):
    # The server takes milliseconds for each.
    many_keys = 40

    @pytest.fixture(autouse=True)
    def place(self, s3_server: Server) -> None:
        self.location = servers.bucket(s3_server, f"bucket-{next(BUCKETS)}")


# With and without `async` the engine is the same code over two clients: a sample has each client and each part once.
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
