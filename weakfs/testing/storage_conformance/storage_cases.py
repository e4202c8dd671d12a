"""`StorageConformance`: what every key-value engine must do."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

import pytest

from weakfs.storage import AsyncStorage, Storage, SyncStorage

INVALID_KEYS = ("", "/a", "a/", "a//b", "a/./b", "..", "a\0b", "a\nb", "\ud800", "x" * 901, "\U0010ffff", "\uffff")
# What SQL and the shell treat as patterns, and the edge cases of UTF-8 and UTF-16.
ODD_KEYS = ("%", "_", "*", "?", "[a]", "\\", "'", '"', "a b", "ä", "\ufffd", "\U00010000", "{x}", "a" * 900)


T = TypeVar("T")


class StorageConformance(ABC):
    """Test a key-value engine; inherit from it and implement `open_storage`."""

    # A number of keys that needs several pages.
    many_keys = 1203

    @abstractmethod
    def open_storage(self) -> Storage:
        """Open the storage of the running test, which is empty when the test begins.

        When called again in the same test, it must open the same storage: what one object stores, the other one reads.
        """

    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        storage = self.open_storage()
        yield storage
        storage.close()

    @pytest.fixture
    def other(self, storage: Storage) -> Iterator[Storage]:
        """A second object for the same storage, as another process would open it."""
        other = self.open_storage()
        yield other
        other.close()

    # Single keys

    def test_a_key_that_is_not_set_has_no_value(self, storage: Storage) -> None:
        assert storage.get("a/b") is None
        assert storage.get_versioned("a/b") is None
        assert not storage.exists("a/b")

    @pytest.mark.parametrize("value", [b"", b"x", bytes(range(256)), b"0123456789abcdef" * 65536], ids=len)
    def test_a_value_comes_back_as_it_was_set(self, storage: Storage, other: Storage, value: bytes) -> None:
        storage.set("a/b", value)
        assert other.get("a/b") == value
        assert other.exists("a/b")

    @pytest.mark.parametrize("key", ODD_KEYS, ids=ascii)
    def test_a_key_may_be_any_text(self, storage: Storage, key: str) -> None:
        storage.set_many({key: b"1", "neighbor": b"2"})
        assert storage.get(key) == b"1"
        assert storage.keys(key) == [key]
        assert key in storage.children()
        assert storage.clear(key) == 1
        assert storage.keys() == ["neighbor"]

    def test_set_replaces(self, storage: Storage, other: Storage) -> None:
        storage.set("a", b"1")
        other.set("a", b"2")
        assert storage.get("a") == b"2"

    def test_create_sets_a_key_only_once(self, storage: Storage, other: Storage) -> None:
        version = storage.create("a", b"1")
        assert version
        assert other.create("a", b"2") is None
        assert storage.get_versioned("a") == (b"1", version)

    def test_create_sets_a_key_that_was_deleted(self, storage: Storage) -> None:
        storage.set("a", b"1")
        storage.delete("a")
        assert storage.create("a", b"2")
        assert storage.get("a") == b"2"

    def test_replace_needs_the_version(self, storage: Storage, other: Storage) -> None:
        first = storage.create("a", b"1")
        assert first
        second = other.replace("a", b"2", version=first)
        assert second
        assert second != first
        assert storage.replace("a", b"3", version=first) is None
        assert storage.get_versioned("a") == (b"2", second)
        assert storage.replace("a", b"3", version=second)

    def test_a_version_does_not_outlive_its_value(self, storage: Storage) -> None:
        version = storage.create("a", b"1")
        assert version
        storage.set("a", b"2")
        assert storage.replace("a", b"3", version=version) is None
        storage.delete("a")
        assert storage.replace("a", b"3", version=version) is None
        assert storage.get("a") is None
        storage.set("a", b"4")
        assert storage.replace("a", b"3", version=version) is None
        assert storage.get("a") == b"4"

    def test_a_version_of_set_serves_replace(self, storage: Storage) -> None:
        storage.set("a", b"1")
        found = storage.get_versioned("a")
        assert found is not None
        assert storage.replace("a", b"2", version=found.version)

    def test_an_unknown_version_is_refused(self, storage: Storage) -> None:
        storage.set("a", b"1")
        assert storage.replace("a", b"2", version="0") is None
        assert storage.replace("missing", b"2", version="0") is None
        assert storage.get_many(["a", "missing"]) == {"a": b"1"}

    def test_delete_says_whether_the_key_was_set(self, storage: Storage) -> None:
        storage.set("a", b"1")
        assert storage.delete("a")
        assert not storage.delete("a")
        assert storage.keys() == []

    @pytest.mark.parametrize("key", INVALID_KEYS, ids=lambda key: ascii(key)[:20])
    def test_an_invalid_key_is_refused(self, storage: Storage, key: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: storage.get(key),
            lambda: storage.get_versioned(key),
            lambda: storage.set(key, b""),
            lambda: storage.create(key, b""),
            lambda: storage.replace(key, b"", version="1"),
            lambda: storage.delete(key),
            lambda: storage.exists(key),
            lambda: storage.get_many([key]),
            lambda: storage.set_many({"valid": b"", key: b""}),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="invalid key"):
                call()
        assert storage.keys() == []

    # Listings

    @pytest.mark.parametrize("value", [5, "text", None, [1]])
    def test_a_value_that_is_not_bytes_is_refused(self, storage: Storage, value: object) -> None:
        given = cast(bytes, value)
        version = storage.create("a", b"before") or ""
        changes: list[Callable[[], object]] = [
            lambda: storage.set("a", given),
            lambda: storage.set_many({"b": b"1", "a": given}),
            lambda: storage.create("c", given),
            lambda: storage.replace("a", given, version=version),
        ]
        for change in changes:
            with pytest.raises(TypeError, match=r"cannot store the value of '[ac]': it is .*; pass bytes"):
                change()
        assert list(storage.items()) == [("a", b"before")]

    def test_keys_are_listed_in_the_order_of_their_bytes(self, storage: Storage) -> None:
        keys = ["a", "a-b", "a/b", "a/b/c", "a0", "aa", "b", "B", "ä", "\ufffd", "\U00010000", "10", "9"]
        storage.set_many(dict.fromkeys(keys, b""))
        assert storage.keys() == sorted(keys, key=str.encode)

    def test_keys_by_prefix_and_in_pages(self, storage: Storage) -> None:
        keys = [f"d/{number:03}" for number in range(25)]
        storage.set_many(dict.fromkeys(["c", "d", "d0", "e", *keys], b""))
        assert storage.keys("d/") == keys
        assert storage.keys("d/01") == keys[10:20]
        assert storage.keys("d/", limit=3) == keys[:3]
        assert storage.keys("d/", after="d/004", limit=3) == keys[5:8]
        assert storage.keys("d/", after="d/0045") == keys[5:]
        assert storage.keys("d/", after="a", limit=1) == keys[:1]
        assert storage.keys("d/", after="d/024") == storage.keys("d/", after="x") == storage.keys("x") == []
        assert storage.keys("d/", limit=0) == []

    def test_children_are_the_keys_and_directories_right_below(self, storage: Storage) -> None:
        storage.set_many(dict.fromkeys(["a", "a/b", "a/b/c", "a/b/d", "a/c", "a-b", "b/x/y/z", "b0"], b""))
        assert storage.children() == ["a", "a-b", "a/", "b/", "b0"]
        assert storage.children("a") == ["b", "b/", "c"]
        assert storage.children("a/b") == ["c", "d"]
        assert storage.children("b") == ["x/"]
        assert storage.children("b/x/y/z") == storage.children("missing") == []

    @pytest.mark.parametrize("page", [1, 2, 5])
    def test_children_in_pages(self, storage: Storage, page: int) -> None:
        storage.set_many({f"d/{name}": b"" for name in ("a", "b/1", "b/2", "b/3", "b0", "c", "c/1", "d/1/2")})
        found: list[str] = []
        while names := storage.children("d", after=found[-1] if found else "", limit=page):
            assert len(names) <= page
            found += names
        assert found == ["a", "b/", "b0", "c", "c/", "d/"]

    # Several keys at once

    def test_get_many_leaves_out_missing_keys(self, storage: Storage) -> None:
        storage.set_many({"a": b"1", "b": b"2"})
        assert storage.get_many(iter(["b", "a", "c", "a"])) == {"a": b"1", "b": b"2"}
        assert storage.get_many([]) == {}

    def test_set_many_sets_all(self, storage: Storage, other: Storage) -> None:
        storage.set("a", b"old")
        storage.set_many({"a": b"1", "b": b"2"})
        storage.set_many({})
        assert dict(other.items()) == {"a": b"1", "b": b"2"}

    def test_items_and_clear_go_through_all_pages(self, storage: Storage) -> None:
        values = {f"p/{number:04}": b"%d" % number for number in range(self.many_keys)}
        storage.set_many({**values, "o": b"", "q": b""})
        assert list(storage.items("p/")) == sorted(values.items())
        assert storage.clear("p/") == len(values)
        assert storage.keys() == ["o", "q"]
        assert storage.clear() == 2
        assert storage.clear() == 0

    # Against a model

    @pytest.mark.parametrize("seed", range(4))
    def test_random_histories_agree_with_a_dictionary(self, storage: Storage, other: Storage, seed: int) -> None:
        chance = random.Random(seed)
        names = ["a", "a/b", "a/b/c", "a/d", "b", "b%", "c/d", "ä"]
        model: dict[str, bytes] = {}
        for step in range(60):
            key, value, one = chance.choice(names), b"%d" % step, chance.choice([storage, other])
            match chance.randrange(6):
                case 0:
                    one.set(key, value)
                    model[key] = value
                case 1:
                    assert bool(one.create(key, value)) == (key not in model)
                    model.setdefault(key, value)
                case 2:
                    found = one.get_versioned(key)
                    assert (found and found.value) == model.get(key)
                    if found is not None:
                        assert one.replace(key, value, version=found.version)
                        model[key] = value
                case 3:
                    assert one.delete(key) == (model.pop(key, None) is not None)
                case 4:
                    batch = dict.fromkeys(chance.sample(names, 3), value)
                    one.set_many(batch)
                    model |= batch
                case _:
                    prefix, after = chance.choice(["", "a", "a/", "b", "x"]), chance.choice(["", *names])
                    wanted = sorted(name for name in model if name.startswith(prefix) and name > after)
                    assert one.keys(prefix, after=after, limit=3) == wanted[:3]
        assert dict(storage.items()) == model

    # Concurrent writers

    def test_one_of_many_writers_creates_a_key(self, storage: Storage, other: Storage) -> None:
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda at: (storage, other)[at % 2].create("a", b"%d" % at), range(16)))
        assert sum(map(bool, won)) == 1
        assert storage.get("a") == b"%d" % next(at for at, version in enumerate(won) if version)

    def test_a_counter_of_many_writers_loses_nothing(self, storage: Storage, other: Storage) -> None:
        storage.set("n", b"0")

        def count(one: Storage) -> None:
            for _ in range(5):
                while True:
                    found = one.get_versioned("n")
                    assert found is not None
                    if one.replace("n", b"%d" % (int(found.value) + 1), version=found.version):
                        break

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(count, [storage, other, storage, other]))
        assert storage.get("n") == b"20"

    # The storage itself

    def test_it_has_a_url(self, storage: Storage) -> None:
        assert isinstance(storage, Storage)
        assert ":" in storage.url
        assert isinstance(storage.atomic_batches, bool)

    def test_it_can_be_closed_twice(self) -> None:
        storage = self.open_storage()
        storage.close()
        storage.close()


class AsyncStorageConformance(StorageConformance):
    """Test a key-value engine with `async` methods; inherit from it and implement `aopen_storage`."""

    @abstractmethod
    async def aopen_storage(self) -> AsyncStorage:
        """Open the storage of the running test, as `StorageConformance.open_storage` does."""

    def open_storage(self) -> Storage:
        return SyncStorage.opened(self.aopen_storage())

    def test_a_cancelled_change_is_whole_or_absent(self) -> None:
        async def cancel() -> None:
            storage = await self.aopen_storage()
            for steps in range(25):
                key = f"k{steps}"
                task = asyncio.ensure_future(storage.create(key, b"x" * 1000))
                await cancel_after(task, steps)
                assert await storage.get(key) in (None, b"x" * 1000)
                await storage.set(key, b"2")
                assert await storage.get(key) == b"2"
            await storage.close()

        asyncio.run(cancel())


async def cancel_after(task: asyncio.Future[T], steps: int) -> bool:
    """Cancel a task after some iterations of the event loop. Return whether it was already done."""
    for _ in range(steps):
        await asyncio.sleep(0)
    was_done = task.done()
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return was_done
