"""`EventStoreConformance`: what every store of event streams must do."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from weakfs.storage import (
    AsyncEventStore,
    Checkpoint,
    EventStore,
    LeaseLost,
    StreamConflict,
    SyncEventStore,
)

from .storage_cases import cancel_after

INVALID_STREAMS = ("", "a\0b", "a\nb", "\ud800", "x" * 256)
ODD_STREAMS = ("..", ".", ".a", "a/b", "a/frames", "../x", "%2F", "a b", "ä", "'", "*", "{x}", "s:1", "x" * 255)

# Appends three frames and a content at a time, and writes the number of the last frame once it is acknowledged.
WRITER = """
import sys
from weakfs.storage import open_event_store

store = open_event_store(sys.argv[1])
number = 0
while True:
    frames = [b"%d.%d" % (number, part) for part in range(3)]
    number = store.append("s", number, frames, contents={f"{number:08x}": b"content %d" % number})
    print(number, flush=True)
"""


def _data(store: EventStore, stream: str = "s") -> list[bytes]:
    return [frame.data for frame in store.read(stream)]


class EventStoreConformance(ABC):
    """Test an event store; inherit from it and implement `open_event_store`."""

    # The location of the running test's store, at which another process can open it.
    location: str | None = None

    @abstractmethod
    def open_event_store(self) -> EventStore:
        """Open the store of the running test, which is empty when the test begins.

        Called again in the same test, this opens the same store: what one object appends, the other one reads.
        """

    @pytest.fixture
    def store(self) -> Iterator[EventStore]:
        store = self.open_event_store()
        yield store
        store.close()

    @pytest.fixture
    def other(self, store: EventStore) -> Iterator[EventStore]:
        """A second object for the same store, as another process would open it."""
        other = self.open_event_store()
        yield other
        other.close()

    # Appending and reading

    def test_a_stream_that_does_not_exist_is_empty(self, store: EventStore) -> None:
        assert store.head("s") == 0
        assert list(store.read("s")) == []
        assert store.get_checkpoint("s") is None
        assert store.get_contents("s", ["ab"]) == {}
        assert store.has_contents("s", ["ab"]) == set()
        assert store.streams() == []
        assert not store.delete("s")
        store.trim("s", 5, contents=["ab"])
        assert store.streams() == []

    def test_frames_are_numbered_from_one_without_gaps(self, store: EventStore, other: EventStore) -> None:
        assert store.append("s", 0, [b"a", b"", b"c"]) == 3
        assert other.append("s", 3, [bytes(range(256))]) == 4
        assert list(store.read("s")) == [(1, b"a"), (2, b""), (3, b"c"), (4, bytes(range(256)))]
        assert store.head("s") == other.head("s") == 4

    def test_reading_begins_after_a_frame_and_ends_at_a_limit(self, store: EventStore) -> None:
        store.append("s", 0, [b"%d" % number for number in range(1, 8)])
        assert [frame.number for frame in store.read("s", after=2)] == [3, 4, 5, 6, 7]
        assert [frame.number for frame in store.read("s", after=2, limit=2)] == [3, 4]
        assert list(store.read("s", after=7)) == list(store.read("s", after=99)) == list(store.read("s", limit=0)) == []

    def test_an_iterator_may_be_left_early(self, store: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"])
        frames = store.read("s")
        assert next(frames) == (1, b"a")
        del frames
        assert store.append("s", 2, [b"c"]) == 3

    def test_a_large_append_is_whole(self, store: EventStore, other: EventStore) -> None:
        frames = [b"%06d" % number * 50 for number in range(1500)]
        assert store.append("s", 0, frames) == 1500
        assert _data(other) == frames
        assert store.append("s", 1500, [b"x" * 1_000_000]) == 1501
        assert [len(frame.data) for frame in other.read("s", after=1499)] == [300, 1_000_000]

    def test_an_append_without_frames_stores_contents(self, store: EventStore) -> None:
        assert store.append("s", 0, [], contents={"ab": b"1"}) == 0
        assert store.get_contents("s", ["ab"]) == {"ab": b"1"}
        with pytest.raises(StreamConflict):
            store.append("s", 1, [])

    def test_many_appends_stay_readable(self, store: EventStore, other: EventStore) -> None:
        frames = [b"%d:" % number + b"x" * (number % 700) for number in range(300)]
        for at in range(0, 300, 3):
            store.append("s", at, frames[at : at + 3])
        assert _data(other) == frames
        assert [frame.data for frame in store.read("s", after=150, limit=2)] == frames[150:152]

    # Expected numbers

    def test_an_append_in_the_wrong_place_changes_nothing(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"])
        for expected in (0, 1, 3, 99):
            with pytest.raises(StreamConflict) as caught:
                other.append("s", expected, [b"x"])
            assert (caught.value.stream, caught.value.expected, caught.value.actual) == ("s", expected, 2)
        with pytest.raises(StreamConflict):
            other.append("new", 1, [b"x"])
        assert _data(store) == [b"a", b"b"]
        assert other.head("new") == 0

    def test_the_slower_writer_loses(self, store: EventStore, other: EventStore) -> None:
        assert store.append("s", 0, [b"a"]) == other.append("s", 0, [b"a"]) == 1
        assert store.append("s", 1, [b"b"]) == 2
        with pytest.raises(StreamConflict):
            other.append("s", 1, [b"c"])
        assert other.append("s", 2, [b"c"]) == 3
        assert _data(store) == [b"a", b"b", b"c"]

    def test_a_retry_is_recognized(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a"])
        assert store.append("s", 1, [b"b", b"c"], contents={"ab": b"1"}) == 3
        assert other.append("s", 1, [b"b", b"c"], contents={"ab": b"1"}) == 3
        other.append("s", 3, [b"d"])
        assert store.append("s", 1, [b"b", b"c"]) == 3
        assert _data(store) == [b"a", b"b", b"c", b"d"]

    def test_half_of_a_retry_is_a_conflict(self, store: EventStore) -> None:
        store.append("s", 0, [b"a"])
        for frames in ([b"a", b"b"], [b"b"], [b""]):
            with pytest.raises(StreamConflict):
                store.append("s", 0, frames)
        assert _data(store) == [b"a"]

    def test_many_writers_lose_nothing(self, store: EventStore, other: EventStore) -> None:
        def work(worker: int) -> None:
            one, done = (store, other)[worker % 2], 0
            while done < 4:
                try:
                    one.append("s", one.head("s"), [b"%d.%d" % (worker, done)], contents={f"{worker}{done}": b"x"})
                    done += 1
                except StreamConflict:
                    continue

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        frames = _data(store)
        assert sorted(frames) == sorted(b"%d.%d" % (worker, at) for worker in range(4) for at in range(4))
        for worker in range(4):
            assert [one for one in frames if one.startswith(b"%d." % worker)] == [
                b"%d.%d" % (worker, at) for at in range(4)
            ]

    # Contents

    def test_contents_are_kept_by_digest(self, store: EventStore, other: EventStore) -> None:
        store.put_contents("s", {"aa": b"1", "bb": bytes(range(256)) * 500, "cc": b""})
        store.put_contents("s", {})
        store.append("s", 0, [b"x"], contents={"dd": b"4", "aa": b"1"})
        wanted = {"aa": b"1", "bb": bytes(range(256)) * 500, "cc": b"", "dd": b"4"}
        assert other.get_contents("s", iter(["aa", "bb", "cc", "dd", "ee"])) == wanted
        assert other.has_contents("s", iter(["dd", "ee", "aa"])) == {"aa", "dd"}
        assert other.get_contents("other", ["aa"]) == {}

    def test_contents_of_a_refused_append_do_no_harm(self, store: EventStore) -> None:
        store.append("s", 0, [b"a"])
        with pytest.raises(StreamConflict):
            store.append("s", 7, [b"b"], contents={"ab": b"1"})
        store.append("s", 1, [b"b"], contents={"ab": b"1"})
        assert store.get_contents("s", ["ab"]) == {"ab": b"1"}

    @pytest.mark.parametrize("digest", ["", "XY", "../a", "a/b", "g", "a" * 129])
    def test_an_invalid_digest_is_refused(self, store: EventStore, digest: str) -> None:
        for call in (
            lambda: store.put_contents("s", {digest: b""}),
            lambda: store.append("s", 0, [b"x"], contents={digest: b""}),
        ):
            with pytest.raises(ValueError, match="invalid digest"):
                call()
        assert store.head("s") == 0

    # Checkpoints

    def test_a_checkpoint_replaces_older_ones(self, store: EventStore, other: EventStore) -> None:
        store.put_checkpoint("s", Checkpoint(0, b"empty"))
        store.append("s", 0, [b"x"] * 12)
        store.put_checkpoint("s", Checkpoint(9, b"nine"))
        assert other.get_checkpoint("s") == (9, b"nine")
        other.put_checkpoint("s", Checkpoint(10, b"ten" * 100_000))
        assert store.get_checkpoint("s") == (10, b"ten" * 100_000)
        store.put_checkpoint("s", Checkpoint(10, b"again"))
        assert other.get_checkpoint("s") == (10, b"again")
        assert store.head("s") == 12

    def test_an_older_checkpoint_does_not_replace_a_newer_one(self, store: EventStore) -> None:
        store.append("s", 0, [b"x"] * 12)
        store.put_checkpoint("s", Checkpoint(10, b"ten"))
        store.put_checkpoint("s", Checkpoint(9, b"nine"))
        assert store.get_checkpoint("s") == (10, b"ten")

    # Trimming

    def test_trimmed_frames_are_gone_and_the_others_stay(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"%d" % number for number in range(1, 11)], contents={"aa": b"1", "bb": b"2"})
        other.trim("s", 4, contents=["aa"])
        assert [frame.number for frame in store.read("s")] == [4, 5, 6, 7, 8, 9, 10]
        assert [frame.number for frame in store.read("s", after=1, limit=2)] == [4, 5]
        assert store.has_contents("s", ["aa", "bb"]) == {"bb"}
        assert store.head("s") == 10
        store.trim("s", 2)
        assert store.append("s", 10, [b"11"]) == 11
        assert [frame.number for frame in other.read("s")] == [4, 5, 6, 7, 8, 9, 10, 11]

    def test_a_stream_that_was_trimmed_wholly_keeps_its_number(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"])
        store.trim("s", 99)
        assert _data(other) == []
        assert other.head("s") == 2
        assert other.append("s", 2, [b"c"]) == 3
        assert list(store.read("s")) == [(3, b"c")]

    def test_contents_that_were_deleted_are_stored_again(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a"], contents={"aa": b"1"})
        other.trim("s", 0, contents=["aa"])
        store.append("s", 1, [b"b"], contents={"aa": b"1"})
        assert other.get_contents("s", ["aa"]) == {"aa": b"1"}
        store.trim("s", 0, contents=["aa"])
        store.put_contents("s", {"aa": b"1"})
        assert other.get_contents("s", ["aa"]) == {"aa": b"1"}

    def test_a_trim_is_refused_once_more_was_appended(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"], contents={"aa": b"1"})
        for expected in (0, 1, 3):
            with pytest.raises(StreamConflict) as caught:
                other.trim("s", 2, contents=["aa"], expected=expected)
            assert (caught.value.stream, caught.value.expected, caught.value.actual) == ("s", expected, 2)
        with pytest.raises(StreamConflict):
            other.trim("new", 2, expected=2)
        other.trim("new", 2, contents=["aa"], expected=0)
        assert (_data(store), store.has_contents("s", ["aa"]), store.streams()) == ([b"a", b"b"], {"aa"}, ["s"])
        other.trim("s", 2, contents=["aa"], expected=2)
        assert (_data(store), store.has_contents("s", ["aa"])) == ([b"b"], set())

    def test_contents_stay_while_the_newest_frame_names_them(self, store: EventStore, other: EventStore) -> None:
        steps, trims = 22, 0

        def write() -> None:
            for step in range(steps):
                digest = f"{step % 3:02x}"
                store.append("s", step, [digest.encode()], contents={digest: digest.encode()})
                assert store.get_contents("s", [digest]) == {digest: digest.encode()}

        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(write)
            while not written.done() or not trims:
                for frame in other.read("s", after=other.head("s") - 1):
                    gone = {b"00", b"01", b"02"} - {frame.data}
                    try:
                        other.trim("s", frame.number, contents=map(bytes.decode, gone), expected=frame.number)
                        trims += 1
                    except StreamConflict:
                        continue
            written.result()
        other.trim("s", steps, contents=["01", "02"], expected=steps)
        assert other.get_contents("s", ["00", "01", "02"]) == {"00": b"00"}

    # Streams

    def test_streams_are_listed_in_order_and_in_pages(self, store: EventStore) -> None:
        names = [f"s{number:02}" for number in range(12)]
        for name in [*reversed(names), "t", "a"]:
            store.append(name, 0, [name.encode()])
        assert store.streams() == ["a", *names, "t"]
        assert store.streams("s") == names
        assert store.streams("s0") == names[:10]
        assert store.streams("s", after="s03", limit=3) == names[4:7]
        assert store.streams(after="s10") == ["s11", "t"]
        assert store.streams("x") == store.streams(limit=0) == []

    def test_streams_do_not_touch_one_another(self, store: EventStore) -> None:
        for at, name in enumerate(ODD_STREAMS):
            store.append(name, 0, [name.encode()], contents={"ab": name.encode()})
            store.put_checkpoint(name, Checkpoint(1, b"%d" % at))
        assert sorted(store.streams()) == sorted(ODD_STREAMS)
        assert store.streams("../") == ["../x"]
        assert store.delete("a") is False
        assert store.delete("a/b")
        for at, name in enumerate(ODD_STREAMS):
            is_there = name != "a/b"
            assert _data(store, name) == [name.encode()] * is_there
            assert store.get_contents(name, ["ab"]) == ({"ab": name.encode()} if is_there else {})
            assert store.get_checkpoint(name) == ((1, b"%d" % at) if is_there else None)

    @pytest.mark.parametrize("stream", INVALID_STREAMS, ids=lambda name: ascii(name)[:20])
    def test_an_invalid_name_is_refused(self, store: EventStore, stream: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.head(stream),
            lambda: store.append(stream, 0, [b""]),
            lambda: list(store.read(stream)),
            lambda: store.put_contents(stream, {"ab": b""}),
            lambda: store.put_checkpoint(stream, Checkpoint(0, b"")),
            lambda: store.delete(stream),
            lambda: store.lease(stream, "me", 1),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="invalid stream"):
                call()
        assert store.streams() == []

    def test_a_deleted_stream_can_be_made_again(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"], contents={"aa": b"1"})
        store.put_checkpoint("s", Checkpoint(2, b"two"))
        assert other.delete("s")
        assert not store.delete("s")
        assert (store.head("s"), _data(store), store.get_checkpoint("s")) == (0, [], None)
        assert store.get_contents("s", ["aa"]) == {}
        assert store.append("s", 0, [b"c"], contents={"aa": b"1"}) == 1
        assert _data(other) == [b"c"]
        assert other.get_contents("s", ["aa"]) == {"aa": b"1"}

    # Waiting

    def test_waiting_for_what_is_there_returns_at_once(self, store: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"])
        assert store.wait("s", 1, 3600) == 2
        assert store.wait("s", 2, 0) == 2
        assert store.wait("s", 2, 0.03) == 2
        assert store.wait("new", 0, 0) == 0

    def test_waiting_sees_what_another_appends(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a"])
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(other.wait, "s", 1, 60)
            store.append("t", 0, [b"x"])
            store.append("s", 1, [b"b"])
            assert waiting.result() == 2

    # Leases

    def test_a_lease_excludes_others(self, store: EventStore, other: EventStore) -> None:
        lease = store.lease("s", "one", 3600)
        assert (lease.stream, lease.owner, lease.seconds) == ("s", "one", 3600)
        with pytest.raises(LeaseLost, match="one"):
            other.lease("s", "two", 3600)
        with pytest.raises(LeaseLost):
            other.append("s", 0, [b"x"])
        with pytest.raises(LeaseLost):
            other.append("s", 0, [b"x"], fencing=lease.fencing - 1)
        assert store.head("s") == 0
        assert store.append("s", 0, [b"a"], fencing=lease.fencing) == 1
        assert store.lease("s", "one", 3600).fencing == lease.fencing
        store.release(lease)
        assert other.lease("s", "two", 3600).fencing > lease.fencing
        with pytest.raises(LeaseLost):
            store.append("s", 1, [b"b"], fencing=lease.fencing)
        assert _data(other) == [b"a"]

    def test_an_expired_lease_can_be_taken_over(self, store: EventStore, other: EventStore) -> None:
        old = store.lease("s", "one", 0)
        assert store.append("s", 0, [b"a"], fencing=old.fencing) == 1
        assert store.append("s", 1, [b"b"]) == 2
        new = other.lease("s", "two", 3600)
        assert new.fencing > old.fencing
        store.release(old)
        with pytest.raises(LeaseLost):
            store.append("s", 2, [b"c"], fencing=old.fencing)
        assert other.append("s", 2, [b"c"], fencing=new.fencing) == 3
        other.release(new)
        other.release(new)
        assert store.append("s", 3, [b"d"]) == 4

    def test_a_retry_is_recognized_after_the_lease_was_lost(self, store: EventStore, other: EventStore) -> None:
        old = store.lease("s", "one", 0)
        store.append("s", 0, [b"a"], fencing=old.fencing)
        other.lease("s", "two", 3600)
        assert store.append("s", 0, [b"a"], fencing=old.fencing) == 1

    # Against a model

    @pytest.mark.parametrize("seed", range(4))
    def test_random_histories_agree_with_lists(self, store: EventStore, other: EventStore, seed: int) -> None:
        chance = random.Random(seed)
        frames: dict[str, list[bytes]] = {"a": [], "b": []}
        first = {"a": 1, "b": 1}
        for step in range(60):
            one, name = chance.choice([store, other]), chance.choice("ab")
            known = frames[name]
            match chance.randrange(6):
                case 0 | 1 | 2:
                    new = [b"%d.%d" % (step, part) * chance.randrange(40) for part in range(chance.randrange(1, 5))]
                    assert one.append(name, len(known), new, contents={f"{step:02x}": b"c"}) == len(known) + len(new)
                    known += new
                case 3:
                    with pytest.raises(StreamConflict):
                        one.append(name, len(known) + 1, [b"wrong"])
                case 4:
                    first[name] = max(first[name], chance.randrange(len(known) + 2))
                    one.trim(name, first[name])
                case _:
                    after = chance.randrange(len(known) + 1)
                    wanted = [(at, data) for at, data in enumerate(known, 1) if at > after and at >= first[name]]
                    assert list(one.read(name, after=after, limit=7)) == wanted[:7]
            assert one.head(name) == len(known)
        for name, known in frames.items():
            assert list(store.read(name)) == list(enumerate(known, 1))[first[name] - 1 :]

    # Processes and the store itself

    def test_what_was_acknowledged_outlives_a_killed_process(self, store: EventStore) -> None:
        if self.location is None:
            pytest.skip("no other process can open this store")
        with subprocess.Popen([sys.executable, "-c", WRITER, self.location], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(20)][-1]
            writer.kill()
            lines = writer.stdout.read().splitlines(keepends=True)
        acknowledged = max([acknowledged, *(int(line) for line in lines if line.endswith(b"\n"))])
        number = store.head("s")
        # One more may have been stored without being acknowledged.
        assert number in (acknowledged, acknowledged + 3)
        assert _data(store) == [b"%d.%d" % (at, part) for at in range(0, number, 3) for part in range(3)]
        digests = {f"{at:08x}": b"content %d" % at for at in range(0, number, 3)}
        assert store.get_contents("s", digests) == digests
        assert store.append("s", number, [b"on"]) == number + 1

    def test_it_says_where_it_is(self, store: EventStore) -> None:
        assert isinstance(store, EventStore)
        assert ":" in store.url
        store.flush()

    def test_it_can_be_closed_twice(self) -> None:
        store = self.open_event_store()
        store.close()
        store.close()


class AsyncEventStoreConformance(EventStoreConformance):
    """Test an event store with `async` methods; inherit from it and implement `aopen_event_store`."""

    @abstractmethod
    async def aopen_event_store(self) -> AsyncEventStore:
        """Open the store of the running test, as `EventStoreConformance.open_event_store` does."""

    def open_event_store(self) -> EventStore:
        return SyncEventStore.opened(self.aopen_event_store())

    def test_a_cancelled_append_is_whole_or_absent(self) -> None:
        async def cancel() -> None:
            store = await self.aopen_event_store()
            for steps in range(30):
                number, frames = await store.head("s"), [b"%d" % steps, b"b", b"c"]
                task = asyncio.ensure_future(store.append("s", number, frames, contents={f"{steps:02x}": b"c"}))
                was_done = await cancel_after(task, steps)
                found = [frame.data async for frame in store.read("s", after=number)]
                assert found == frames or (not found and not was_done)
                if found:
                    assert await store.has_contents("s", [f"{steps:02x}"])
                assert await store.append("s", number, frames) == number + 3
            await store.close()

        asyncio.run(cancel())

    def test_a_cancelled_wait_ends(self) -> None:
        async def cancel() -> None:
            store = await self.aopen_event_store()
            task = asyncio.ensure_future(store.wait("s", 0, 3600))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            assert await store.append("s", 0, [b"a"]) == 1
            assert await store.wait("s", 0, 3600) == 1
            await store.close()

        asyncio.run(cancel())
