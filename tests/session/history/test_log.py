"""The append-only sequence that holds slices and records: each length is a value of its own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs.session import Log
from weakfs.session.slices.log import SEGMENT, Stretch


def numbers(size: int) -> Log[object]:
    """Make a log of the numbers from 0 on."""
    return Log(range(size))


SIZES = [0, 1, 2, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT]


@pytest.mark.parametrize("size", SIZES)
def test_a_log_is_a_sequence_of_its_items(size: int) -> None:
    log = numbers(size)

    assert len(log) == size
    assert list(log) == list(range(size))
    assert bool(log) == bool(size)
    assert list(reversed(log)) == list(reversed(range(size)))
    assert log.last() == (size - 1 if size else None)


def test_appending_leaves_the_shorter_log_as_it_was() -> None:
    short = Log("ab")
    long = short.append("c")

    assert (list(short), list(long)) == (["a", "b"], ["a", "b", "c"])


@pytest.mark.parametrize("size", SIZES)
def test_two_logs_that_continue_one_are_independent(size: int) -> None:
    base = numbers(size)

    one, other = base.extend("abc"), base.extend("xy")

    assert list(base) == list(range(size))
    assert list(one) == [*range(size), *"abc"]
    assert list(other) == [*range(size), *"xy"]
    assert list(one.append("d")) == [*range(size), *"abcd"]


@pytest.mark.parametrize("size", SIZES)
def test_replacing_the_last_item(size: int) -> None:
    log = numbers(size)

    replaced = log.replace_last("new")

    assert list(replaced) == [*range(size - 1), "new"]
    assert list(log) == list(range(size))
    assert replaced.last() == "new"


@settings(deadline=None, derandomize=True, max_examples=share(100))
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["append", "replace_last"]), st.integers()),
            st.tuples(st.sampled_from(["prefix", "extends"]), st.integers(0, 3)),
        ),
        max_size=12,
    )
)
def test_short_logs_are_like_lists(steps: list[tuple[str, int]]) -> None:
    versions: list[tuple[Log[int], list[int]]] = [(Log(), [])]
    for step, value in steps:
        log, wanted = versions[-1]
        if step == "append":
            versions.append((log.append(value), [*wanted, value]))
        elif step == "replace_last":
            versions.append((log.replace_last(value), [*wanted[:-1], value]))
        elif step == "prefix":
            versions.append((log.prefix(min(value, len(log))), wanted[:value]))
        else:
            assert log.append(value).extends(log)
            assert log.append(value).begins_like(log)
    for log, wanted in versions:
        assert (len(log), bool(log), list(log), list(reversed(log))) == (
            len(wanted),
            bool(wanted),
            wanted,
            wanted[::-1],
        )
        assert log.last("none") == (wanted[-1] if wanted else "none")
        assert list(log.since(1)) == wanted[1:]
        assert log.equals(Log(wanted))


def test_replacing_the_last_item_of_a_long_log_repeatedly() -> None:
    log: Log[object] = numbers(1000)

    for number in range(1000):
        log = log.replace_last(f"new {number}")

    assert list(log) == [*range(999), "new 999"]


@pytest.mark.parametrize("size", SIZES)
def test_a_prefix_is_the_first_items(size: int) -> None:
    log = numbers(size)

    for length in {0, size // 2, max(size - 1, 0), size}:
        prefix = log.prefix(length)
        assert list(prefix) == list(range(length))
        assert prefix.last() == (length - 1 if length else None)
        assert list(prefix.append(-1)) == [*range(length), -1]


def test_a_prefix_that_ends_where_a_segment_starts() -> None:
    base = numbers(300)
    base.append("taken")
    log = base.append("own").append("more")

    prefix = log.prefix(300)

    assert list(prefix) == list(range(300))
    assert prefix.last() == 299
    assert prefix[-1] == 299


def test_since_iterates_over_the_items_after_the_first_ones() -> None:
    base = numbers(300)
    base.append("taken")
    log = base.extend(range(300, 900))

    for start in (0, 1, 299, 300, 301, 600, 899, 900, 1000):
        assert list(log.since(start)) == list(range(900))[start:]


@pytest.mark.parametrize("index", [0, 1, 255, 256, 299, 300, 599, -1, -300, -301, -600])
def test_items_are_found_from_either_end(index: int) -> None:
    base = numbers(300)
    base.append("taken")
    log = base.extend(range(300, 600))

    assert log[index] == range(600)[index]


@pytest.mark.parametrize("index", [600, -601, 10_000])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"no item {index} in a log of 600 items"):
        numbers(600)[index]


@pytest.mark.parametrize("part", [slice(None), slice(250, 310), slice(-3, None), slice(None, None, -7), slice(5, 2)])
def test_a_slice_is_that_part_of_all_items(part: slice) -> None:
    base = numbers(300)
    base.append("taken")

    assert list(base.extend(range(300, 600))[part]) == list(range(600))[part]


def test_a_log_extends_the_logs_that_it_grew_from() -> None:
    short = Log(object() for _ in range(10))
    long = short.append(object()).append(object())

    assert long.extends(short)
    assert long.extends(long)
    assert not short.extends(long)
    assert long.extends(long.prefix(11))


def test_a_log_of_equal_items_is_not_an_extension() -> None:
    assert not Log([[1]]).append([2]).extends(Log([[1]]))


@pytest.mark.parametrize("size", [2, 300])
def test_a_log_does_not_extend_one_whose_last_item_it_replaced(size: int) -> None:
    log: Log[object] = Log(object() for _ in range(size))

    replaced = log.replace_last(object())

    assert not replaced.extends(log)
    assert not replaced.extend(range(10)).extends(log)
    assert replaced.extends(log.prefix(size - 1))


def test_a_log_does_not_extend_one_that_branched_off_earlier() -> None:
    base = Log(object() for _ in range(300))
    one, other = base.append(object()), base.append(object())

    assert one.extends(base)
    assert other.extends(base)
    assert not one.extends(other)
    assert not other.append(object()).extends(one)


def test_the_empty_log() -> None:
    log: Log[int] = Log()

    assert list(log) == []
    assert log.last("nothing") == "nothing"
    assert log.extends(Log())
    assert list(log.prefix(0).append(1)) == [1]
    assert list(log.replace_last(1)) == [1]


def test_a_thousand_versions_share_their_items() -> None:
    versions = [Log[object]()]
    for number in range(1000):
        versions.append(versions[-1].append(number))

    assert all(list(version) == list(range(length)) for length, version in enumerate(versions[:50]))
    assert versions[700].last() == 699
    assert list(versions[300].append("branch").since(298)) == [298, 299, "branch"]


def test_any_position_is_found_in_few_steps() -> None:
    chain: Stretch[int] = Stretch(None, 0, [])
    for number in range(1, 2000):
        chain = Stretch(chain, number, [])
    for position in (0, 1, 700, 1023, 1024, 1998):
        steps, stretch = 0, chain
        while stretch.start > position:
            assert stretch.base is not None
            far = stretch.jump
            stretch = far if far is not None and far.start > position else stretch.base
            steps += 1
        assert steps < 60
