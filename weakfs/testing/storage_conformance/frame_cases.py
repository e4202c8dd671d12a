"""Appending and reading frames: expected numbers, retries, many writers, killed processes."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from weakfs.storage import EventStore, StreamConflict

from .event_store_harness import EventStoreCases, data_of

# Appends three frames and one blob at a time, and writes the number of the last frame once it is acknowledged.
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


class FrameCases(EventStoreCases):
    """Frames."""

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

    def test_an_iterator_need_not_be_exhausted(self, store: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"])
        frames = store.read("s")
        assert next(frames) == (1, b"a")
        del frames
        assert store.append("s", 2, [b"c"]) == 3

    def test_a_large_append_is_whole(self, store: EventStore, other: EventStore) -> None:
        frames = [b"%06d" % number * 50 for number in range(1500)]
        assert store.append("s", 0, frames) == 1500
        assert data_of(other) == frames
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
        assert data_of(other) == frames
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
        assert data_of(store) == [b"a", b"b"]
        assert other.head("new") == 0

    @pytest.mark.parametrize("frames", [b"bytes", "text", ["text"], [b"1", None], [5]])
    def test_a_frame_that_is_not_bytes_is_refused(self, store: EventStore, frames: object) -> None:
        store.append("s", 0, [b"1"])
        with pytest.raises(TypeError, match=r"cannot append a frame: it is .*; pass a list of bytes"):
            store.append("s", 1, cast("Sequence[bytes]", frames))
        assert data_of(store) == [b"1"]

    def test_the_slower_writer_loses(self, store: EventStore, other: EventStore) -> None:
        assert store.append("s", 0, [b"a"]) == other.append("s", 0, [b"a"]) == 1
        assert store.append("s", 1, [b"b"]) == 2
        with pytest.raises(StreamConflict):
            other.append("s", 1, [b"c"])
        assert other.append("s", 2, [b"c"]) == 3
        assert data_of(store) == [b"a", b"b", b"c"]

    def test_a_retry_is_recognized(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a"])
        assert store.append("s", 1, [b"b", b"c"], contents={"ab": b"1"}) == 3
        assert other.append("s", 1, [b"b", b"c"], contents={"ab": b"1"}) == 3
        other.append("s", 3, [b"d"])
        assert store.append("s", 1, [b"b", b"c"]) == 3
        assert data_of(store) == [b"a", b"b", b"c", b"d"]

    def test_a_partial_retry_is_a_conflict(self, store: EventStore) -> None:
        store.append("s", 0, [b"a"])
        for frames in ([b"a", b"b"], [b"b"], [b""]):
            with pytest.raises(StreamConflict):
                store.append("s", 0, frames)
        assert data_of(store) == [b"a"]

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
        frames = data_of(store)
        assert sorted(frames) == sorted(b"%d.%d" % (worker, at) for worker in range(4) for at in range(4))
        for worker in range(4):
            assert [one for one in frames if one.startswith(b"%d." % worker)] == [
                b"%d.%d" % (worker, at) for at in range(4)
            ]

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

    # Processes

    def test_what_was_acknowledged_outlives_a_killed_process(self, store: EventStore) -> None:
        if self.location is None:
            pytest.skip("no other process can open this store")
        with subprocess.Popen([sys.executable, "-c", WRITER, self.location], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(20)][-1]
            writer.kill()
            lines = writer.stdout.read().splitlines(keepends=True)
        acknowledged = max([acknowledged, *(int(line) for line in lines if line.endswith(b"\n"))])
        try:
            number = store.append("s", acknowledged, [b"on"]) - 1
        except StreamConflict as conflict:
            # One more was stored without being acknowledged. A server may do that a moment after the process died, so
            # what is stored is known only once something else was appended.
            number = conflict.actual
            assert store.append("s", number, [b"on"]) == number + 1
        assert number in (acknowledged, acknowledged + 3)
        stored = [b"%d.%d" % (at, part) for at in range(0, number, 3) for part in range(3)]
        assert data_of(store) == [*stored, b"on"]
        digests = {f"{at:08x}": b"content %d" % at for at in range(0, number, 3)}
        assert store.get_contents("s", digests) == digests
