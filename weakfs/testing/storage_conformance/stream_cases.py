"""Several streams: their names, waiting for frames, and leases."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from weakfs.storage import Checkpoint, EventStore, LeaseLost, StreamConflict, StreamHandle

from .event_store_harness import EventStoreCases, data_of

INVALID_STREAMS = ("", "a\0b", "a\nb", "\ud800", "x" * 256)
ODD_STREAMS = ("..", ".", ".a", "a/b", "a/frames", "../x", "%2F", "a b", "ä", "'", "*", "{x}", "s:1", "x" * 255)


READS: list[Callable[[EventStore, str], object]] = [
    lambda store, name: store.head(name),
    data_of,
    lambda store, name: store.get_checkpoint(name),
]


class StreamCases(EventStoreCases):
    """Names, waiting and leases."""

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

    def test_streams_are_independent(self, store: EventStore) -> None:
        for at, name in enumerate(ODD_STREAMS):
            store.append(name, 0, [name.encode()], contents={"ab": name.encode()})
            store.put_checkpoint(name, Checkpoint(1, b"%d" % at))
        assert sorted(store.streams()) == sorted(ODD_STREAMS)
        assert store.streams("../") == ["../x"]
        assert store.delete("a") is False
        assert store.delete("a/b")
        for at, name in enumerate(ODD_STREAMS):
            is_there = name != "a/b"
            assert data_of(store, name) == [name.encode()] * is_there
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
        assert (store.head("s"), data_of(store), store.get_checkpoint("s")) == (0, [], None)
        assert store.get_contents("s", ["aa"]) == {}
        assert store.append("s", 0, [b"c"], contents={"aa": b"1"}) == 1
        assert data_of(other) == [b"c"]
        assert other.get_contents("s", ["aa"]) == {"aa": b"1"}

    # Handles

    def test_a_handle_does_not_come_to_mean_another_stream(self, store: EventStore, other: EventStore) -> None:
        handle = StreamHandle("s")
        store.append(handle, 0, [b"a", b"b"], contents={"aa": b"1"})
        for frames in ([b"c", b"d"], [b"c", b"d", b"e"]):
            other.delete("s")
            other.append("s", 0, frames, contents={"aa": b"1"})
            with pytest.raises(StreamConflict) as caught:
                store.append(handle, 2, [b"e"])
            assert (caught.value.stream, caught.value.expected, caught.value.actual) == ("s", 2, 0)
            with pytest.raises(StreamConflict):
                store.put_checkpoint(handle, Checkpoint(2, b"two"))
            with pytest.raises(StreamConflict):
                store.trim(handle, 2, contents=["aa"], expected=2)
            store.trim(handle, 2, contents=["aa"])
            assert (store.head(handle), data_of(store, handle), store.get_checkpoint(handle)) == (0, [], None)
            assert data_of(other) == frames
            assert other.get_checkpoint("s") is None
            assert other.get_contents("s", ["aa"]) == {"aa": b"1"}

    @pytest.mark.parametrize("read", READS, ids=["head", "read", "get_checkpoint"])
    def test_a_handle_refers_to_the_stream_that_is_read_first(
        self, store: EventStore, other: EventStore, read: Callable[[EventStore, str], object]
    ) -> None:
        handle = StreamHandle("s")
        # At first there is no stream, then one without frames: the handle refers to neither.
        read(store, handle)
        other.put_contents("s", {"aa": b"1"})
        read(store, handle)
        other.append("s", 0, [b"a"])
        other.put_checkpoint("s", Checkpoint(1, b"one"))
        read(store, handle)
        assert store.append(handle, 1, [b"b"]) == 2
        other.delete("s")
        other.append("s", 0, [b"c", b"d"])
        with pytest.raises(StreamConflict):
            store.append(handle, 2, [b"e"])
        assert data_of(other) == [b"c", b"d"]

    def test_an_append_at_the_beginning_makes_a_handle_refer_to_another_stream(
        self, store: EventStore, other: EventStore
    ) -> None:
        handle = StreamHandle("s")
        store.append(handle, 0, [b"a"])
        store.delete(handle)
        assert store.append(handle, 0, [b"b"]) == 1
        assert store.append(handle, 1, [b"c"]) == 2
        assert (data_of(store, handle), data_of(other)) == ([b"b", b"c"], [b"b", b"c"])

    # Waiting

    def test_waiting_for_existing_frames_returns_at_once(self, store: EventStore) -> None:
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

    def test_waiting_for_a_stream_that_is_gone_takes_time(self, store: EventStore, other: EventStore) -> None:
        handle = StreamHandle("s")
        store.append(handle, 0, [b"a"])
        other.delete("s")
        other.append("s", 0, [b"b", b"c"])
        began = monotonic()
        assert store.wait(handle, 1, 0.2) == 0
        assert monotonic() - began > 0.1

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
        assert data_of(other) == [b"a"]

    def test_others_append_as_soon_as_a_lease_is_released(self, store: EventStore, other: EventStore) -> None:
        lease = store.lease("s", "one", 3600)
        store.append("s", 0, [b"a"], fencing=lease.fencing)
        with pytest.raises(LeaseLost):
            other.append("s", 1, [b"b"])
        store.release(lease)
        assert other.append("s", 1, [b"b"]) == 2
        again = store.lease("s", "one", 3600)
        # The number is valid whichever object uses it.
        assert other.append("s", 2, [b"c"], fencing=again.fencing) == 3
        store.release(again)

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

    # The store itself

    def test_it_has_a_url(self, store: EventStore) -> None:
        assert isinstance(store, EventStore)
        assert ":" in store.url
        store.flush()

    def test_it_can_be_closed_twice(self) -> None:
        store = self.open_event_store()
        store.close()
        store.close()
