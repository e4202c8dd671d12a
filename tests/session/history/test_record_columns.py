"""Records by column: they are saved and loaded as they are packed, wherever the stretches of a history begin."""

from __future__ import annotations

import pytest
from attrs import frozen

from weakfs import Registry, Session
from weakfs.session import append_all
from weakfs.session.history.packed_rows import AT_ONCE, NEAR, PackedRecords, PackedValues, is_loose
from weakfs.session.history.record_columns import column_stretches
from weakfs.session.slices.log import STRETCH

ENOUGH = STRETCH * (NEAR + 4) + 17


@frozen
class Said:
    """Something was said."""

    number: int
    text: str
    more: str | bytes | None = None


@frozen
class Empty:
    """Something without fields happened."""


REGISTRY = Registry.empty().with_types(Said, Empty)


def prepared(session: Session) -> Session:
    session.install(Said, kind="log").register(Said, append_all)
    return session


def loaded(data: bytes) -> Session:
    return prepared(Session.from_bytes(data, registry=REGISTRY))


def told(size: int) -> Session:
    session = prepared(Session(session_id="s", registry=REGISTRY))
    for number in range(size):
        if number % 5 == 3:
            session.dispatch(Empty(), cause="")
        else:
            session.dispatch(Said(number, f"text {number}", (None, "more", b"more")[number % 3]), cause=f"c{number}")
    return session


@pytest.fixture(scope="module")
def long() -> Session:
    return told(ENOUGH)


def compacted(session: Session, drop: int) -> Session:
    fork = session.fork()
    fork.compact(keep=ENOUGH - drop)
    return fork


@pytest.mark.parametrize("drop", [0, 1, STRETCH - 1, STRETCH, STRETCH + 5, 5 * STRETCH + 100])
def test_columns_hold_the_records_in_stretches_that_end_at_multiples_of_512(long: Session, drop: int) -> None:
    line = compacted(long, drop)._parts()[1]

    stretches = list(column_stretches(line.rows, line.dropped))

    assert [row for one in stretches for row in one.rows()] == list(line.rows)
    seq = line.dropped
    for one in stretches[:-1]:
        seq += len(one.tags)
        assert seq % STRETCH == 0
        assert len(one.tags) <= STRETCH


@pytest.mark.parametrize("drop", [0, 1, STRETCH, 5 * STRETCH + 100])
def test_a_loaded_history_is_equal_and_saved_as_the_same_bytes(long: Session, drop: int) -> None:
    session = compacted(long, drop)
    data = session.to_bytes()

    again = loaded(data)

    assert list(again.records) == list(session.records)
    assert again[Said].all() == session[Said].all()
    assert again.to_bytes() == data
    for seq in (drop, drop + 1, 3000, ENOUGH - 1):
        if seq >= drop:
            assert again.at(seq)[Said].all() == session.at(seq)[Said].all()


FEW = 3


@pytest.fixture
def few_loose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only a few stretches of a file as columns, so that a history need not be long to have compressed ones."""
    monkeypatch.setattr("weakfs.session.files.record_reader.LOOSE", FEW)
    monkeypatch.setattr("weakfs.session.history.packed_rows.LOOSE", FEW)


@pytest.mark.usefixtures("few_loose")
@pytest.mark.parametrize("drop", [0, 1, 5 * STRETCH + 100])
def test_loaded_values_that_are_events_share_the_packed_blocks_of_their_records(long: Session, drop: int) -> None:
    _, line, _ = loaded(compacted(long, drop).to_bytes())._parts()
    packed = [(one.items, drop + end) for one, end in line.rows._stretches() if isinstance(one.items, PackedRecords)]
    blocks = {id(block) for one, _ in packed for block in one.blocks}
    (tag,) = line.logs

    values = [stretch.items for stretch, _ in line.logs[tag]._stretches()]

    # All full stretches are packed, and all but the newest are compressed. Keyframes hold the same values.
    assert len(packed) >= (ENOUGH - drop) // STRETCH - 1
    assert [one.is_loose for one, _ in packed] == [True] * FEW + [False] * (len(packed) - FEW)
    shared = [one for one in values if isinstance(one, PackedValues) and id(one.block) in blocks]
    assert len(shared) == len(packed)
    assert line.past.lasting
    for mark in line.past.lasting:
        kept = [stretch.items for stretch, _ in mark.logs[tag]._stretches()]
        older = sum(end <= mark.seq for _, end in packed)
        assert sum(isinstance(one, PackedValues) and id(one.block) in blocks for one in kept) >= older


@pytest.mark.parametrize("more", [0, 1, 2 * STRETCH, (NEAR + 3) * STRETCH])
def test_the_newest_records_of_a_file_are_compressed_once_they_are_old(long: Session, more: int) -> None:
    session = loaded(long.to_bytes())
    _, line, _ = session._parts()
    (tag,) = line.logs
    before = [*line.rows], [*line.logs[tag]]
    loose = [one for one, _ in line.rows._stretches() if isinstance(one.items, PackedRecords) and one.items.is_loose]
    assert len(loose) == ENOUGH // STRETCH

    for number in range(more):
        session.dispatch(Said(number, "more"))

    _, line, _ = session._parts()
    assert [*line.rows][:ENOUGH] == before[0]
    assert [*line.logs[tag]][: len(before[1])] == before[1]
    # Two at a time, until only the newest are left.
    still = [one for one in loose if isinstance(one.items, PackedRecords) and one.items.is_loose]
    full = more // STRETCH
    assert len(still) == max(len(loose) - AT_ONCE * full, min(len(loose), NEAR - full), 0)
    # Records and values still share their blocks.
    packed = [one.items for one, _ in line.rows._stretches() if isinstance(one.items, PackedRecords)]
    blocks = {id(block) for one in packed for block in one.blocks}
    values = [one.items for one, _ in line.logs[tag]._stretches() if isinstance(one.items, PackedValues)]
    assert {id(one.block) for one in values} <= blocks
    assert session.to_bytes() == loaded(session.to_bytes()).to_bytes()


def test_the_newest_records_of_a_file_are_compressed_also_after_a_compaction(long: Session) -> None:
    session = loaded(long.to_bytes())
    session.compact(keep=ENOUGH - 3 * STRETCH)
    calls = session[Said].all()

    for number in range((NEAR + 3) * STRETCH):
        session.dispatch(Said(number, "more"))

    _, line, _ = session._parts()
    packed = [one.items for one, _ in line.rows._stretches() if isinstance(one.items, PackedRecords)]
    assert len(packed) > NEAR
    assert not any(one.is_loose for one in packed)
    (tag,) = line.logs
    values = [one.items for one, _ in line.logs[tag]._stretches() if isinstance(one.items, PackedValues)]
    assert not any(is_loose(one.block) for one in values)
    blocks = {id(block) for one in packed for block in one.blocks}
    # Only the values whose records were dropped have blocks of their own.
    assert sum(id(one.block) not in blocks for one in values) == 3
    assert session[Said].all()[: len(calls)] == calls


def test_a_loaded_session_continues_like_the_one_that_was_saved() -> None:
    session = told(700)
    again = loaded(session.to_bytes())
    for number in range(700, 700 + 3 * STRETCH):
        session.dispatch(Said(number, f"text {number}"))
        again.dispatch(Said(number, f"text {number}"))

    assert again[Said].all() == session[Said].all()
    assert [one.event for one in again.records] == [one.event for one in session.records]
