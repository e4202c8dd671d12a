"""Contents and checkpoints, and what trimming a stream deletes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from weakfs.storage import Checkpoint, EventStore, StreamConflict

from .event_store_harness import EventStoreCases, data_of


class ContentCases(EventStoreCases):
    """Contents, checkpoints and trims."""

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

    def test_a_checkpoint_of_a_stream_that_was_deleted_is_refused(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"])
        with pytest.raises(StreamConflict):
            store.put_checkpoint("s", Checkpoint(3, b"three"))
        other.delete("s")
        with pytest.raises(StreamConflict) as caught:
            store.put_checkpoint("s", Checkpoint(2, b"two"))
        assert (caught.value.expected, caught.value.actual) == (2, 0)
        assert (store.get_checkpoint("s"), other.streams()) == (None, [])

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

    def test_a_completely_trimmed_stream_keeps_its_number(self, store: EventStore, other: EventStore) -> None:
        store.append("s", 0, [b"a", b"b"])
        store.trim("s", 99)
        assert data_of(other) == []
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
        assert (data_of(store), store.has_contents("s", ["aa"]), store.streams()) == ([b"a", b"b"], {"aa"}, ["s"])
        other.trim("s", 2, contents=["aa"], expected=2)
        assert (data_of(store), store.has_contents("s", ["aa"])) == ([b"b"], set())

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
