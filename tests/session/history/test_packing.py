"""Old stretches of history are packed, which is invisible except for the memory that they take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import pytest
from attrs import define, field, frozen

import weakfs
from weakfs import Registry, Session
from weakfs.session import Log, append_all
from weakfs.session.codec.type_check import consists_of_fields
from weakfs.session.history.batch_reduction import MANY
from weakfs.session.history.packed_rows import LARGEST, NEAR, Packing, pack_rows, unpack_rows
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.log import STRETCH
from weakfs.session.slices.table import EMPTY_TABLE

ENOUGH = STRETCH * (NEAR + 3)


@frozen
class Made:
    """Something was made."""

    number: int
    name: str
    content: bytes
    more: object = None


def row(number: int) -> tuple[int, str | None, str, tuple[object, ...]]:
    return (number, f"cause {number}", ("a", "b")[number % 3 == 0], (number, f"name {number}", bytes([number % 256])))


def packed(size: int) -> Log[tuple[int, str | None, str, tuple[object, ...]]]:
    """Make a log of rows whose old stretches are packed, as a session's records are."""
    line = Timeline()
    for number in range(size):
        line.add(row(number), EMPTY_TABLE, EMPTY_TABLE)
    return line.rows


def made_session(size: int) -> Session:
    session = Session(session_id="s", registry=Registry.empty().with_types(Made))
    session.install(Made, kind="log").register(Made, append_all)
    for number in range(size):
        session.dispatch(Made(number, f"name {number}", b"content %d" % number), cause=f"cause {number}")
    return session


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "a", None, True)],
        [(1.5, float("inf"), -0.0), (2.5, 0.1, 0.0)],
        [(1 << 80, "\ud800", "é" * 500)],
        [("x" * (LARGEST + 1), b"y" * (LARGEST + 1)), ("short", b"short")],
        [(..., [1, 2], {"a": 1}), (None, (1, (b"2", "3")), ...)],
        [(((((((1,),),),),),),)],
        [(), ()],
    ],
    ids=repr,
)
def test_rows_are_unpacked_as_they_were(rows: list[tuple[object, ...]]) -> None:
    unpacked = unpack_rows(pack_rows(rows))
    assert unpacked == rows
    assert repr(unpacked) == repr(rows)


def test_values_that_are_not_plain_and_large_ones_stay_the_same_objects() -> None:
    values = ([1], {"a": 1}, b"x" * (LARGEST + 1), "y" * (LARGEST + 1), bytearray(b"z"))
    (unpacked,) = unpack_rows(pack_rows([values]))
    assert all(mine is theirs for mine, theirs in zip(values, unpacked, strict=True))


def test_bytes_that_are_referenced_elsewhere_stay_shared_and_others_do_not() -> None:
    held = bytes([1, 2, 3])
    rows = [(held,), (bytes([4, 5, 6]),)]
    _, _, kept = pack_rows(rows)
    assert kept == (held,)


def test_all_but_the_newest_records_are_packed() -> None:
    log = packed(ENOUGH)
    assert [stretch.is_packed for stretch, _ in log._stretches()] == [False] * NEAR + [True] * 3


def test_the_values_of_a_slice_share_the_blocks_of_their_records() -> None:
    session = made_session(ENOUGH)
    line = session._parts()[1]
    records = [stretch.items for stretch, _ in line.rows._stretches() if stretch.is_packed]
    values = [stretch.items for stretch, _ in line.logs["Made"]._stretches() if stretch.is_packed]
    assert len(records) == len(values) == 3
    for one, other in zip(records, values, strict=True):
        assert getattr(one, "blocks")[0] is getattr(other, "block")  # noqa: B009  # the types say `Packed`


@pytest.mark.parametrize("length", [1, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH, ENOUGH])
def test_any_version_of_a_packed_log_is_the_same_list(length: int) -> None:
    log, rows = packed(ENOUGH), [row(number) for number in range(ENOUGH)]
    version = log.prefix(length)
    assert list(version) == rows[:length]
    assert version.last() == rows[length - 1] == version[-1] == version[length - 1]
    assert list(version.since(length // 2)) == rows[length // 2 : length]
    assert log.extends(version)
    assert list(version.without_first(length // 3)) == rows[length // 3 : length]
    more = version.append(row(-1))
    assert list(more) == [*rows[:length], row(-1)]
    assert list(version.replace_last(row(-2))) == [*rows[: length - 1], row(-2)]
    assert not version.replace_last(row(-2)).extends(version)
    assert list(log) == rows


def test_other_threads_read_and_append_while_stretches_are_packed() -> None:
    bases = [Log(row(number) for number in range(ENOUGH)) for _ in range(20)]
    wrong: list[object] = []

    def work(log: Log[tuple[int, str | None, str, tuple[object, ...]]]) -> None:
        for number in range(40):
            log = log.append(row(number))
            if log[number] != row(number) or log.last() != row(number):
                wrong.append(number)

    for base in bases:
        threads = [Thread(target=work, args=(base,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        Packing.of_history(base, {})
        for thread in threads:
            thread.join()
        assert [stretch.is_packed for stretch, _ in base._stretches()].count(True) > 0
        assert list(base) == [row(number) for number in range(ENOUGH)]
    assert wrong == []


def check(session: Session, numbers: Sequence[int]) -> None:
    assert [value.number for value in session[Made].all()] == list(numbers)
    assert [made.content for made in session[Made].all()] == [b"content %d" % number for number in numbers]


@pytest.mark.slow
def test_records_and_values_survive_saving_and_loading(tmp_path: Path) -> None:
    session = made_session(ENOUGH)
    session.save(tmp_path / "s.json")
    again = Session.load(tmp_path / "s.json", registry=Registry.empty().with_types(Made))
    check(again, range(ENOUGH))
    assert list(again.records) == list(session.records)
    assert again.save(tmp_path / "t.json").size_bytes == session.save(tmp_path / "s.json").size_bytes
    assert (tmp_path / "t.json").read_bytes() == (tmp_path / "s.json").read_bytes()
    line = again._parts()[1]
    assert sum(stretch.is_packed for stretch, _ in line.rows._stretches()) > 0
    assert sum(stretch.is_packed for stretch, _ in line.logs["Made"]._stretches()) > 0


def interrupted(read: Callable[[], object], places: set[tuple[str, int]]) -> bool:
    """Run `read`, and once more inside it, as another thread may do, at the first line of the library not in `places`.

    Add that line to `places`; return false if there is none.
    """
    library = str(Path(weakfs.__file__).parent)
    known = len(places)

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        place = frame.f_code.co_filename, frame.f_lineno
        if not place[0].startswith(library):
            return None
        if event == "line" and place not in places:
            places.add(place)
            sys.settrace(None)
            read()
            return None
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read()
    finally:
        sys.settrace(before)
    return len(places) > known


def test_events_that_are_built_when_they_are_read_may_be_read_by_another_thread_meanwhile() -> None:
    made = made_session(MANY + 1)
    places: set[tuple[str, int]] = set()
    while interrupted(made.at(MANY)[Made].all, places):
        pass
    assert len(places) > 5


def test_forks_that_are_merged_in_turn_leave_packed_records() -> None:
    session = made_session(ENOUGH)
    for number in range(0, 3 * ENOUGH // 4, 2):
        fork, other = session.fork(), session.fork()
        fork.dispatch(Made(ENOUGH + number, "f", b"content %d" % (ENOUGH + number)))
        other.dispatch(Made(ENOUGH + number + 1, "o", b"content %d" % (ENOUGH + number + 1)))
        session.merge(fork)
        session.merge(other)
    check(session, range(ENOUGH + 3 * ENOUGH // 4))
    live = sum(end - stretch.start for stretch, end in session._parts()[1].rows._stretches() if not stretch.is_packed)
    assert live <= STRETCH * (NEAR + 2)
    assert [record.seq for record in session.records] == list(range(1, session.seq + 1))


def test_compaction_keeps_values_whose_records_were_dropped() -> None:
    session = made_session(ENOUGH)
    session.compact(keep=700)
    check(session, range(ENOUGH))
    assert [record.event.number for record in session.records] == list(range(ENOUGH - 700, ENOUGH))
    check_at = session.at(session.seq - 300)
    assert [made.number for made in check_at[Made].all()] == list(range(ENOUGH - 300))


def _upper(name: str) -> str:
    return name.upper()


@frozen
class Odd:
    """A value that is more than its fields."""

    name: str = field(converter=_upper)


@define
class Derived:
    """A value with a field that is not an argument of `__init__`."""

    name: str
    length: int = field(init=False, default=0)


@pytest.mark.parametrize(("kind", "answer"), [(Made, True), (Odd, False), (Derived, False), (int, False)])
def test_only_values_determined_by_their_fields_are_packed(kind: type, answer: object) -> None:
    assert consists_of_fields(kind) is answer


def _next(value: int) -> int:
    return value + 1


@frozen
class Growing:
    """An event that is a different value each time it is created."""

    a: int = field(converter=_next)


def test_an_event_that_its_record_cannot_reproduce_is_refused() -> None:
    session = Session(session_id="s", registry=Registry.empty().with_types(Growing))
    session.install(Growing, kind="log").register(Growing, append_all)
    with pytest.raises(TypeError, match=r"cannot accept a Growing: .* when its record is read"):
        session.dispatch(Growing(1))
    assert session.seq == 0
