"""Event streams on a storage that fails at every step: repeating an append loses and duplicates nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.storage import (
    Checkpoint,
    EventStore,
    MemoryStorage,
    OutcomeUnknown,
    StorageDamaged,
    StorageError,
    StorageEventStore,
    Versioned,
)
from weakfs.testing import FAULTS, Fault, FaultyStorage

BUDGETS = {"tail_bytes": 10, "merge_bytes": 40}


def until_done(change: Callable[[], object]) -> int:
    """Repeat a change until it succeeds. Return how often it failed."""
    for failures in range(5):
        try:
            change()
        except StorageError:
            continue
        return failures
    raise AssertionError("it fails again and again")


def history(store: EventStore) -> list[bytes]:
    """Make every kind of change, each until it succeeds; return the frames that the stream should have."""
    frames: list[bytes] = []
    for step in range(12):
        new = [b"%d.%d" % (step, part) for part in range(step % 3 + 1)]
        expected, contents = len(frames), {f"{step:02x}": b"c", f"{step:02x}ff": b"d"}
        until_done(lambda n=new, e=expected, c=contents: store.append("s", e, n, contents=c))  # type: ignore[misc]
        frames += new
    until_done(lambda: store.put_checkpoint("s", Checkpoint(3, b"three")))
    until_done(lambda: store.put_checkpoint("s", Checkpoint(4, b"four")))
    until_done(lambda: store.trim("s", 5, contents=["00", "00ff"]))
    until_done(lambda: store.append("t", 0, [b"x"], contents={"aa": b"1"}))
    until_done(lambda: store.delete("t"))
    return frames


@given(st.sampled_from(FAULTS), st.integers(1, 80))
def test_repeating_failed_changes_loses_and_duplicates_nothing(fault: Fault, at: int) -> None:
    memory = MemoryStorage()
    storage = FaultyStorage(memory, fault, at=at)
    frames = history(StorageEventStore(storage, **BUDGETS))  # type: ignore[arg-type]
    fresh = StorageEventStore(memory)
    assert [frame.data for frame in fresh.read("s")] == frames[4:]
    assert fresh.head("s") == len(frames)
    assert fresh.get_checkpoint("s") == (4, b"four")
    assert len(fresh.has_contents("s", [f"{step:02x}{end}" for step in range(12) for end in ("", "ff")])) == 22
    assert fresh.streams() == ["s"]


def test_the_faults_reach_every_change_of_the_history() -> None:
    storage = FaultyStorage(MemoryStorage(), "twice", at=80)
    history(StorageEventStore(storage, **BUDGETS))  # type: ignore[arg-type]
    assert not storage.fired
    storage = FaultyStorage(MemoryStorage(), "twice", at=30)
    history(StorageEventStore(storage, **BUDGETS))  # type: ignore[arg-type]
    assert storage.fired


@given(st.sampled_from(["before", "lost"]), st.integers(1, 30))
def test_a_change_that_failed_before_its_last_write_is_absent(fault: Fault, at: int) -> None:
    """The state is that of the last call that succeeded, until the next one succeeds."""
    memory = MemoryStorage()
    storage = FaultyStorage(memory, fault, at=at)
    store = StorageEventStore(storage, **BUDGETS)  # type: ignore[arg-type]
    frames: list[bytes] = []
    for step in range(15):
        try:
            store.append("s", len(frames), [b"%d" % step], contents={f"{step:02x}": b"c"})
            frames.append(b"%d" % step)
        except StorageError:
            assert [frame.data for frame in StorageEventStore(memory).read("s")] == frames
    assert storage.fired
    assert [frame.data for frame in store.read("s")] == frames


def test_an_append_with_unknown_outcome_that_cannot_be_found_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(key: str) -> Versioned | None:
        raise StorageError("cannot reach the storage")

    storage = FaultyStorage(MemoryStorage(), "after", at=2)
    store = StorageEventStore(storage)
    store.append("s", 0, [b"a"])
    with monkeypatch.context() as patch:
        patch.setattr(storage, "get_versioned", unreachable)
        with pytest.raises(OutcomeUnknown):
            store.append("s", 1, [b"b"])
    assert store.append("s", 1, [b"b"]) == 2
    assert [frame.data for frame in store.read("s")] == [b"a", b"b"]


def damaged_values() -> list[tuple[str, bytes]]:
    memory = MemoryStorage()
    store = StorageEventStore(memory, tail_bytes=10, merge_bytes=100)
    for number in range(30):
        store.append("s", number, [b"frame %d" % number])
    return list(memory.items())


@given(st.data())
def test_damage_is_an_error_that_names_the_key_or_does_no_harm(data: st.DataObject) -> None:
    memory = MemoryStorage()
    values = dict(damaged_values())
    memory.set_many(values)
    key = data.draw(st.sampled_from(sorted(values)))
    value = bytearray(values[key])
    at = data.draw(st.integers(0, len(value) - 1))
    if data.draw(st.booleans()):
        value[at] ^= data.draw(st.integers(1, 255))
        memory.set(key, bytes(value))
    else:
        memory.set(key, bytes(value[:at]))
    store = StorageEventStore(memory)
    found: list[bytes] = []
    with pytest.raises(StorageError) as caught:
        found.extend(frame.data for frame in store.read("s"))
    assert key in str(caught.value) or not isinstance(caught.value, StorageDamaged)
    assert found == [b"frame %d" % number for number in range(len(found))]


def with_checksum(kind: bytes, fields: dict[str, object], rest: bytes) -> bytes:
    body = json.dumps(fields).encode() + b"\n" + rest
    return b"%s 1 %08x\n%s" % (kind, crc32(body), body)


@pytest.mark.parametrize("lengths", [[6, -6] * 1000 + [6], [2.0, 4], [True, 5], ["6"], {"6": 6}, None])
def test_lengths_that_do_not_add_up_are_damage(lengths: object) -> None:
    memory = MemoryStorage()
    StorageEventStore(memory).append("s", 0, [b"secret"])
    (key,) = dict(memory.items())
    fields = json.loads(memory.get(key).split(b"\n")[1])  # type: ignore[union-attr]  # there is a value
    memory.set(key, with_checksum(b"weakfs stream", {**fields, "tail": lengths}, b"secret"))
    with pytest.raises(StorageDamaged, match="its length differs from the length that it states"):
        list(StorageEventStore(memory).read("s"))


@pytest.mark.parametrize("version", [b"9" * 5000, b"-1", b"x"])
def test_a_version_that_is_not_a_number_is_damage(version: bytes) -> None:
    memory = MemoryStorage()
    StorageEventStore(memory).append("s", 0, [b"frame"])
    (key,) = dict(memory.items())
    memory.set(key, b"weakfs stream %s 00000000\n{}\n" % version)
    with pytest.raises(StorageDamaged, match="does not begin like a value"):
        list(StorageEventStore(memory).read("s"))


def test_a_missing_segment_is_named() -> None:
    memory = MemoryStorage()
    memory.set_many(dict(damaged_values()))
    segment = next(key for key in memory.keys("streams/") if "/frames/" in key)
    memory.delete(segment)
    with pytest.raises(StorageDamaged, match="frame 1 of 30 is missing in memory:"):
        list(StorageEventStore(memory).read("s"))
    assert StorageEventStore(memory).append("s", 30, [b"on"]) == 31


def test_the_number_of_segments_stays_small() -> None:
    memory = MemoryStorage()
    store = StorageEventStore(memory, tail_bytes=1_000, merge_bytes=20_000)
    for number in range(2_000):
        store.append("s", number, [b"x" * 100])
    # 200,000 bytes: one merged segment for each 20,000 of them, and those waiting to be merged.
    assert len(memory.keys()) <= 10 + 20 + 1
    assert max(len(value) for _, value in memory.items()) < 30_000
    assert sum(len(value) for _, value in memory.items()) < 1.2 * 200_000


class Counted(MemoryStorage):
    """A storage that counts its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = Counter[str]()

    def get_versioned(self, key: str) -> Versioned | None:
        self.calls["get_versioned"] += 1
        return super().get_versioned(key)

    def create(self, key: str, value: bytes) -> str | None:
        self.calls["create"] += 1
        return super().create(key, value)

    def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        self.calls["replace"] += 1
        return super().replace(key, value, version=version)

    def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        self.calls["keys"] += 1
        return super().keys(prefix, after=after, limit=limit)


def test_an_append_takes_one_request_plus_one_for_its_content() -> None:
    storage = Counted()
    store = StorageEventStore(storage)
    store.append("s", 0, [b"first"])
    storage.calls.clear()
    for number in range(1, 21):
        store.append("s", number, [b"frame"])
    assert storage.calls == {"replace": 20}
    for number in range(21, 41):
        store.append("s", number, [b"frame"], contents={"ab": b"the same", f"{number:04x}": b"another"})
    assert storage.calls["keys"] == storage.calls["get_versioned"] == 0
