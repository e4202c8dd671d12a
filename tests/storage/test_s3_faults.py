"""An object store that fails: errors, throttling, expired credentials, answers that are lost, late or cut short.

Acknowledged changes stay, others are complete or absent, and no change is mistaken for one by others.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random
from uuid import uuid4

import pytest

from tests.sampling import is_exhaustive
from tests.storage import servers
from tests.storage.s3_faults import Fault, set_faults
from tests.storage.servers import Server
from weakfs import InMemoryFilesystem, Session
from weakfs.session import MergeConflict, SessionConflict
from weakfs.storage import OutcomeUnknown, Storage, StorageError, open_event_store
from weakfs.storage import open as open_storage

pytest.importorskip("obstore")

DONE: tuple[Fault, ...] = ("failed after", "answer lost")
NOT_DONE: tuple[Fault, ...] = ("failed", "throttled", "conflict", "request lost")


@pytest.fixture
def location(s3_server: Server) -> Iterator[str]:
    yield servers.bucket(s3_server, f"faults-{uuid4().hex[:12]}")
    set_faults(s3_server.url, rate=0)


@pytest.fixture
def storage(location: str) -> Iterator[Storage]:
    with closing(open_storage(location)) as opened:
        yield opened


@pytest.mark.parametrize("kind", DONE)
def test_a_conditional_write_with_a_lost_answer_is_not_mistaken_for_one_by_others(
    s3_server: Server, storage: Storage, kind: Fault
) -> None:
    set_faults(s3_server.url, kinds=[kind], limit=1)
    with pytest.raises(OutcomeUnknown, match=r"cannot tell whether .* was changed: .*; repeat the call"):
        storage.create("key", b"1")
    found = storage.get_versioned("key")
    assert found is not None
    assert found.value == b"1"
    set_faults(s3_server.url, kinds=[kind], limit=1)
    with pytest.raises(OutcomeUnknown):
        storage.replace("key", b"2", version=found.version)
    assert storage.get("key") == b"2"
    # Without a fault, the answer is definite.
    assert storage.create("key", b"3") is None
    assert storage.replace("key", b"3", version=found.version) is None


def test_a_truncated_answer_is_requested_again(s3_server: Server, storage: Storage) -> None:
    storage.set("key", b"1" * 1000)
    set_faults(s3_server.url, kinds=["cut"], limit=2)
    assert storage.get("key") == b"1" * 1000


@pytest.mark.parametrize("kind", NOT_DONE)
def test_a_conditional_write_that_did_not_arrive_is_repeated(s3_server: Server, storage: Storage, kind: Fault) -> None:
    set_faults(s3_server.url, kinds=[kind], limit=2)
    version = storage.create("key", b"1")
    assert version
    set_faults(s3_server.url, kinds=[kind], limit=2)
    assert storage.replace("key", b"2", version=version)
    assert storage.get("key") == b"2"


def test_a_request_conflict_is_not_mistaken_for_an_existing_key(s3_server: Server, location: str) -> None:
    with closing(open_storage(location)) as storage:
        set_faults(s3_server.url, kinds=["conflict"])
        with pytest.raises(StorageError, match="409"):
            storage.create("key", b"1")
        set_faults(s3_server.url, rate=0)
        version = storage.create("key", b"1")
        assert version
        set_faults(s3_server.url, kinds=["conflict"])
        with pytest.raises(StorageError, match="409"):
            storage.replace("key", b"2", version=version)
        set_faults(s3_server.url, rate=0)
        assert storage.get("key") == b"1"
    # An append must not assume that its contents are stored.
    with closing(open_event_store(location)) as store:
        set_faults(s3_server.url, kinds=["conflict"], limit=1)
        store.append("s", 0, [b"a"], contents={"ab": b"content"})
        set_faults(s3_server.url, rate=0)
        assert store.get_contents("s", ["ab"]) == {"ab": b"content"}


def test_expired_credentials_change_nothing_and_are_reported_immediately(s3_server: Server, storage: Storage) -> None:
    set_faults(s3_server.url, kinds=["expired"], limit=1)
    with pytest.raises(
        StorageError, match=r"ExpiredToken.*; check the bucket, its address and the credentials"
    ) as told:
        storage.create("key", b"1")
    assert not isinstance(told.value, OutcomeUnknown)
    set_faults(s3_server.url, kinds=["expired"], limit=1)
    with pytest.raises(StorageError, match="ExpiredToken"):
        storage.get("key")
    # Neither request was repeated: the second attempt would have met no fault.
    assert storage.get("key") is None


@pytest.mark.parametrize("kind", DONE)
def test_an_append_whose_answer_was_lost_is_found_in_the_stream(s3_server: Server, location: str, kind: Fault) -> None:
    with closing(open_event_store(location)) as store:
        for number in range(3):
            set_faults(s3_server.url, kinds=[kind], limit=1)
            assert store.append("s", number, [b"%d" % number]) == number + 1
        set_faults(s3_server.url, kinds=[kind], limit=1)
        lease = store.lease("s", "one", 60)
        set_faults(s3_server.url, kinds=[kind], limit=1)
        store.release(lease)
        assert [frame.data for frame in store.read("s")] == [b"0", b"1", b"2"]


class Worker:
    """A worker whose every call writes two files, and which records whether each call was stored."""

    def __init__(self, location: str, name: str, seed: int) -> None:
        self.location, self.name, self.random = location, name, Random(seed)
        self.acknowledged, self.failed = set[int](), set[int]()

    def work(self, calls: int) -> None:
        session: Session | None = None
        for number in range(calls):
            try:
                if session is None:
                    session = Session.open(self.location, "s", on_conflict="merge")
                fs = InMemoryFilesystem(session)
                with session.transaction():
                    fs.write(f"/{self.name}/{number}", f"{number}" * 700)
                    fs.write(f"/{self.name}/{number}.again", f"{number}" * 700)
                self.acknowledged.add(number)
                if self.random.random() < 0.05:
                    session.checkpoint()
                if self.random.random() < 0.02:
                    session.compact(keep=5)
                if self.random.random() < 0.05:
                    closing, session = session, None
                    closing.close()
            except (SessionConflict, MergeConflict):
                raise
            except StorageError:
                if number not in self.acknowledged:
                    self.failed.add(number)
                if self.random.random() < 0.3:
                    # Like a process that dies without closing it.
                    session = None


@pytest.mark.slow
def test_sessions_lose_nothing_when_a_store_fails_at_random(s3_server: Server, location: str) -> None:
    rounds = 40 if is_exhaustive() else 1
    for seed in range(rounds):
        session_location = f"{location.partition('?')[0]}/{seed}?{location.partition('?')[2]}"
        workers = [Worker(session_location, f"worker{number}", seed * 10 + number) for number in range(3)]
        set_faults(s3_server.url, rate=0.12, seed=seed)
        with ThreadPoolExecutor(len(workers)) as threads:
            for done in [threads.submit(worker.work, 25) for worker in workers]:
                done.result()
        set_faults(s3_server.url, rate=0)
        with Session.open(session_location, "s") as session:
            fs = InMemoryFilesystem(session)
            for worker in workers:
                for number in range(25):
                    paths = f"/{worker.name}/{number}", f"/{worker.name}/{number}.again"
                    is_there = [fs.exists(path) for path in paths]
                    assert is_there in ([True, True], [False, False]), (seed, worker.name, number)
                    if number in worker.acknowledged:
                        assert all(fs.read(path).content == f"{number}" * 700 for path in paths)
            saved = session.to_bytes()
        with Session.open(session_location, "s") as session:
            assert session.to_bytes() == saved
