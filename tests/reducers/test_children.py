"""The map of a directory's entries against a plain dictionary."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.children import Children

Hash = Callable[[str], int]

HASHES: dict[str, Hash] = {
    "as it is": hash,
    "all the same": lambda name: 7,
    "minus one": lambda name: -1,
    "three": lambda name: len(name) % 3,
    "differs only above 60 bits": lambda name: hash(name) << 60,
    "differs from 30 bits on": lambda name: hash(name) << 30,
    "always negative": lambda name: -abs(hash(name)) - 1,
}

NAMES = tuple(f"name{number}" for number in range(90))


@contextmanager
def hashed_by(function: Hash) -> Generator[None]:
    """Replace the hash function of the module under test."""
    with mock.patch.object(maps, "hash", function, create=True):
        yield


def contents(children: Children) -> dict[str, Any]:
    found = list(maps.items(children))
    assert len(found) == len(dict(found)), "a name is there twice"
    return dict(found)


def check(children: Children, wanted: dict[str, Any]) -> None:
    assert contents(children) == wanted
    assert maps.as_dict(children) == wanted
    assert maps.count(children) == len(wanted)
    for name in (*NAMES, "", "other"):
        assert maps.get(children, name) is wanted.get(name)


def brute_differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        name: (before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if before.get(name) is not after.get(name)
    }


def found_differences(before: Children, after: Children) -> dict[str, tuple[Any, Any]]:
    found = list(maps.differences(before, after))
    assert len(found) == len({name for name, _, _ in found}), "a name is told twice"
    return {name: (old, new) for name, old, new in found}


def widest(children: Children) -> int:
    if len(children) == maps.PAIR:
        return maps.count(children)
    return max(widest(part) for part in children if part is not None)


@pytest.mark.parametrize("function", HASHES.values(), ids=HASHES)
@settings(deadline=None, derandomize=True, max_examples=share(25))
@given(
    start=st.integers(0, len(NAMES)).map(lambda count: NAMES[:count]),
    steps=st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=30, max_size=80),
)
def test_a_map_behaves_like_a_dictionary_and_keeps_old_versions(
    function: Hash, start: tuple[str, ...], steps: list[tuple[str, bool]]
) -> None:
    with hashed_by(function):
        wanted: dict[str, Any] = {name: (name,) for name in start}
        children = maps.build(wanted.items())
        versions: list[tuple[Children, dict[str, Any]]] = [(children, wanted)]
        for number, (name, adds) in enumerate(steps):
            if adds:
                node = (name, number)
                children = maps.put(children, name, node)
                wanted = {**wanted, name: node}
            elif name in wanted:
                children = maps.remove(children, name)
                wanted = {key: node for key, node in wanted.items() if key != name}
            versions.append((children, wanted))
        for kept, expected in versions:
            check(kept, expected)
        for (before, old), (after, new) in zip(versions, reversed(versions), strict=True):
            assert found_differences(before, after) == brute_differences(old, new)


@pytest.mark.parametrize("function", HASHES.values(), ids=HASHES)
def test_a_map_of_hundreds_of_names_empties_to_the_empty_map(function: Hash) -> None:
    random = Random(1)
    with hashed_by(function):
        wanted: dict[str, Any] = {f"n{number}": (number,) for number in range(700)}
        children: Children = maps.EMPTY
        for name, node in wanted.items():
            children = maps.put(children, name, node)
        assert contents(children) == wanted
        order = list(wanted)
        random.shuffle(order)
        for name in order:
            children = maps.remove(children, name)
            del wanted[name]
            assert maps.get(children, name) is None
            if len(wanted) % 50 == 0:
                assert contents(children) == wanted
        assert children == maps.EMPTY


def test_removing_the_last_name_leaves_the_shared_empty_map_untouched() -> None:
    children = maps.put(maps.EMPTY, "a", ("x",))
    assert maps.remove(children, "a") == maps.EMPTY == ({}, ())


def test_a_later_entry_of_the_same_name_wins_in_build() -> None:
    assert contents(maps.build([("a", 1), ("b", 2), ("a", 3)])) == {"a": 3, "b": 2}


def test_building_and_adding_one_by_one_give_the_same_shape() -> None:
    entries = [(f"n{number}", (number,)) for number in range(3000)]
    one_by_one: Children = maps.EMPTY
    for name, node in entries:
        one_by_one = maps.put(one_by_one, name, node)
    assert one_by_one == maps.build(entries)


@pytest.fixture(scope="module")
def large() -> Children:
    return maps.build((f"file{number}.txt", (number,)) for number in range(100_000))


def test_a_hundred_thousand_names_are_found_and_stored_in_small_parts(large: Children) -> None:
    assert maps.count(large) == 100_000
    assert widest(large) <= maps.WIDTH
    assert all(maps.get(large, f"file{number}.txt") == (number,) for number in range(0, 100_000, 7))
    assert maps.get(large, "file100000.txt") is None


def test_a_write_among_a_hundred_thousand_names_shares_all_but_a_few_parts(large: Children) -> None:
    def parts(children: Children) -> Iterator[int]:
        yield id(children)
        if len(children) != maps.PAIR:
            for part in children:
                if part is not None:
                    yield from parts(part)

    known = set(parts(large))
    for changed in (
        maps.put(large, "file5.txt", ("new",)),
        maps.put(large, "another", ("new",)),
        maps.remove(large, "file77777.txt"),
    ):
        assert len(set(parts(changed)) - known) <= 5


def test_differences_look_only_into_parts_that_are_not_shared(large: Children) -> None:
    changed = maps.put(maps.remove(maps.put(large, "file5.txt", ("new",)), "file6.txt"), "another", ("more",))
    calls = 0
    actual = maps.differences

    def counted(before: Children, after: Children) -> Iterator[tuple[str, Any, Any]]:
        nonlocal calls
        calls += 1
        return actual(before, after)

    with mock.patch.object(maps, "differences", counted):
        found = {name: (old, new) for name, old, new in maps.differences(large, changed)}
    assert found == {
        "file5.txt": ((5,), ("new",)),
        "file6.txt": ((6,), None),
        "another": (None, ("more",)),
    }
    # Three ways of at most five parts each, and a part that was split.
    assert calls <= 20


def test_comparing_a_map_with_itself_costs_nothing(large: Children) -> None:
    assert list(maps.differences(large, large)) == []
    assert list(maps.differences(maps.EMPTY, ({}, ()))) == []


@pytest.mark.parametrize("function", HASHES.values(), ids=HASHES)
@settings(deadline=None, derandomize=True, max_examples=share(25))
@given(
    start=st.integers(0, len(NAMES)).map(lambda count: NAMES[:count]),
    batches=st.lists(st.dictionaries(st.sampled_from(NAMES), st.booleans()), max_size=4),
)
def test_many_changes_together_have_the_same_result_as_in_a_dictionary(
    function: Hash, start: tuple[str, ...], batches: list[dict[str, bool]]
) -> None:
    with hashed_by(function):
        wanted: dict[str, Any] = {name: (name,) for name in start}
        children = maps.build(wanted.items())
        for number, batch in enumerate(batches):
            changes = {name: (name, number) if stays else None for name, stays in batch.items()}
            before, old = children, wanted
            children = maps.updated(children, changes)
            wanted = {name: node for name, node in (wanted | changes).items() if node is not None}
            check(children, wanted)
            check(before, old)
            assert found_differences(before, children) == brute_differences(old, wanted)


def test_versions_with_the_same_names_share_them() -> None:
    children = maps.build((f"n{number}", (number,)) for number in range(20))

    changed = maps.put(children, "n7", ("new",))
    assert changed[0] is children[0]
    assert maps.updated(changed, {"n3": ("newer",), "n5": ("newest",)})[0] is children[0]
    assert maps.put(changed, "another", ("new",))[0] is not children[0]


def test_a_map_of_files_soon_becomes_untracked() -> None:
    children = maps.build((f"n{number}", leaves.file(b"", at=number)) for number in range(20))

    for number in range(20):
        children = maps.put(children, f"n{number}", leaves.file(b"new", at=number))
        for _ in range(2):
            gc.collect(0)
            gc.collect(1)

    assert not any(gc.is_tracked(part) for part in children)
