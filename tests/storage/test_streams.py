"""Event streams over a storage: contents that are trimmed and stored again at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from weakfs.storage import MemoryStorage, StorageEventStore, StreamConflict


class Interrupted(MemoryStorage):
    """A storage that others change just before a deletion or a read."""

    others: Callable[[], object] | None = None

    def _let_others(self) -> None:
        others, self.others = self.others, None
        if others is not None:
            others()

    def delete(self, key: str) -> bool:
        self._let_others()
        return super().delete(key)

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        self._let_others()
        return super().get_many(keys)


@pytest.fixture
def memory() -> Interrupted:
    memory = Interrupted()
    StorageEventStore(memory).append("s", 0, [b"a"], contents={"aa": b"1", "ab": b"2"})
    return memory


def contents_of(memory: MemoryStorage) -> list[str]:
    return [key.rpartition("/")[2] for key in memory.keys("streams/s/") if "/contents/" in key]


@pytest.mark.parametrize("trims", [1, 2])
def test_a_trim_keeps_contents_that_others_store_again_meanwhile(memory: Interrupted, trims: int) -> None:
    writer, store = StorageEventStore(memory), StorageEventStore(memory)
    for number in range(1, trims + 1):
        memory.others = lambda number=number: writer.append("s", number, [b"b"], contents={"aa": b"1"})
        store.trim("s", 0, contents=["aa"], expected=number)
        assert StorageEventStore(memory).get_contents("s", ["aa"]) == {"aa": b"1"}
        assert StorageEventStore(memory).has_contents("s", ["aa", "a", "ab"]) == {"aa", "ab"}
        assert contents_of(memory) == [f"aa.{number}", "ab"]
        with pytest.raises(StreamConflict):
            store.trim("s", 0, contents=["aa"], expected=number)
    store.trim("s", 0, contents=["aa"], expected=trims + 1)
    assert contents_of(memory) == ["ab"]
    assert store.has_contents("s", ["aa"]) == set()


def test_a_reader_finds_contents_stored_again_while_it_reads(memory: Interrupted) -> None:
    def others() -> None:
        store = StorageEventStore(memory)
        store.trim("s", 0, contents=["aa"], expected=1)
        store.append("s", 1, [b"b"], contents={"aa": b"1"})

    memory.others = others
    assert StorageEventStore(memory).get_contents("s", ["aa", "ab", "ac"]) == {"aa": b"1", "ab": b"2"}


def test_a_writer_that_trims_stores_nothing_twice(memory: Interrupted) -> None:
    store = StorageEventStore(memory)
    store.append("s", 1, [b"b"], contents={"aa": b"1", "ab": b"2"})
    store.trim("s", 0, contents=["aa"], expected=2)
    store.append("s", 2, [b"c"], contents={"aa": b"1", "ab": b"2"})
    assert contents_of(memory) == ["aa.1", "ab"]
