"""Past states are read from the nearest keyframe, which is never far away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from attrs import frozen

from tests.sampling import is_exhaustive
from weakfs import InMemoryFilesystem, Registry, Session
from weakfs.session.history import keyframes
from weakfs.session.history.keyframes import GAP, NEAR, PACE, PATIENCE, STEPS, STRETCH
from weakfs.session.slices.packed_state import Steps

RECORDS = 40_000 if is_exhaustive() else 16_000


@frozen
class Counted:
    """Something was counted."""

    number: int


@frozen
class Count:
    """How often."""

    number: int = 0


class Reductions:
    """A reducer that counts how often it runs."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, value: Count, event: Counted) -> Count:
        """Reduce one event."""
        self.made += 1
        return Count(value.number + event.number)


def counting_session(reductions: Reductions) -> Session:
    session = Session(session_id="s", registry=Registry.standard().with_types(Count, Counted))
    session.install(Count, initial=Count())
    session[Count].register(Counted, reductions)
    return session


def counting_history(reductions: Reductions | None = None) -> Session:
    session = counting_session(reductions or Reductions())
    for _ in range(RECORDS):
        session.dispatch(Counted(1))
    return session


def most_reductions(session: Session, reductions: Reductions) -> int:
    """Read moments all over the history, and return the largest number of records that one of them replayed."""
    most = 0
    for seq in [*range(1, RECORDS, 997), RECORDS - 1]:
        reductions.made = 0
        assert session.at(seq)[Count].latest() == Count(seq)
        most = max(most, reductions.made)
    return most


@pytest.fixture(scope="module")
def counted() -> tuple[Session, Reductions]:
    reductions = Reductions()
    return counting_history(reductions), reductions


def test_any_moment_of_a_long_history_is_read_from_a_nearby_keyframe(counted: tuple[Session, Reductions]) -> None:
    session, reductions = counted

    assert most_reductions(session, reductions) < GAP + STRETCH


def test_the_newest_moments_are_read_from_even_nearer_keyframes(counted: tuple[Session, Reductions]) -> None:
    session, reductions = counted

    for age in (1, 300, 700, 1000, 1500):
        reductions.made = 0
        session.at(RECORDS - age)
        assert reductions.made < 2 * STRETCH


def test_the_garbage_collector_visits_few_keyframes(counted: tuple[Session, Reductions]) -> None:
    assert len(counted[0]._parts()[1].keyframes.marks) <= NEAR + 1


def test_any_moment_of_a_loaded_history_is_read_from_a_keyframe_in_the_file(
    counted: tuple[Session, Reductions], tmp_path: Path
) -> None:
    counted[0].save(tmp_path / "s.json")
    reductions = Reductions()
    session = Session.load(tmp_path / "s.json", registry=Registry.standard().with_types(Count, Counted))
    session[Count].register(Counted, reductions)

    assert most_reductions(session, reductions) < GAP + STRETCH


@pytest.mark.slow
def test_a_loaded_history_without_keyframes_is_read_once_and_as_far_as_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyframes, "LASTING_SHARE", -1)
    counting_history().save(tmp_path / "s.json")
    reductions = Reductions()
    session = Session.load(tmp_path / "s.json", registry=Registry.standard().with_types(Count, Counted))
    session[Count].register(Counted, reductions)

    session.at(RECORDS // 2)
    assert RECORDS // 2 <= reductions.made <= RECORDS // 2 + STRETCH
    session.at(RECORDS - 1)
    assert reductions.made <= RECORDS + GAP + STRETCH
    assert most_reductions(session, reductions) < GAP + STRETCH


def test_records_after_a_loaded_history_are_read_without_it(
    counted: tuple[Session, Reductions], tmp_path: Path
) -> None:
    counted[0].save(tmp_path / "s.json")
    reductions = Reductions()
    session = Session.load(tmp_path / "s.json", registry=Registry.standard().with_types(Count, Counted))
    session[Count].register(Counted, reductions)
    for _ in range(10):
        session.dispatch(Counted(1))

    reductions.made = 0
    assert session.at(RECORDS + 5)[Count].latest() == Count(RECORDS + 5)
    assert reductions.made == 5


def test_keyframes_of_short_merges_are_near_too() -> None:
    reductions = Reductions()
    session = counting_session(reductions)
    for number in range(4000):
        fork = session.fork()
        fork.dispatch(Counted(1))
        session.dispatch(Counted(0))
        if number % 2:
            session.merge(fork)
    reductions.made = 0
    for seq in range(0, session.seq, 501):
        session.at(seq)

    assert reductions.made / len(range(0, session.seq, 501)) < STRETCH + GAP


@pytest.mark.slow
def test_keyframes_of_large_states_are_further_apart_than_those_of_small_ones() -> None:
    def kept(directories: int) -> int:
        session = Session(session_id="s")
        files = InMemoryFilesystem(session)
        for number in range(5 * GAP + PATIENCE):
            files.write_bytes(f"/{number % directories}/{number % 20}", b"")
        return len(session._parts()[1].keyframes.kept)

    assert kept(20) == 5
    assert kept(GAP) < 4


@frozen
class Packed:
    """A value that is packed in as many steps as a test needs, and counts them."""

    number: int = 0

    length: ClassVar[int] = 0
    made: ClassVar[int] = 0
    fails: ClassVar[bool] = False

    def pack(self, before: object, counted: object) -> Steps[tuple[int, int]]:
        """Pack the number."""
        for _ in range(type(self).length):
            type(self).made += 1
            if type(self).fails:
                raise KeyboardInterrupt
            yield
        return self.number, 0

    @classmethod
    def unpack(cls, packed: int, known: object = None) -> Packed:
        """Return the value."""
        return cls(packed)

    @classmethod
    def weight(cls, packed: int, before: int) -> Steps[int]:
        """Return nothing, in one step."""
        yield
        return 0


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(Packed, "length", 0)
    monkeypatch.setattr(Packed, "made", 0)
    monkeypatch.setattr(Packed, "fails", False)
    session = Session(session_id="s", registry=Registry.standard().with_types(Packed, Counted))
    session.install(Packed, initial=Packed())
    session[Packed].register(Counted, lambda value, event: Packed(value.number + event.number))
    for _ in range(GAP - 1):
        session.dispatch(Counted(1))
    yield session
    for seq in {GAP - 1, GAP, GAP + 1, GAP + STRETCH, session.seq - 1} & {
        *range(session.seq - len(session.records), session.seq)
    }:
        assert session.at(seq)[Packed].latest() == Packed(seq)


def permanent(session: Session) -> list[int]:
    return [mark.seq for mark in session._parts()[1].keyframes.kept]


def test_a_keyframe_is_packed_a_few_steps_at_a_time(packed: Session) -> None:
    Packed.length = 1000
    steps = 0
    while not permanent(packed):
        packed.dispatch(Counted(1))
        assert Packed.made - steps <= STEPS
        steps = Packed.made

    assert permanent(packed) == [GAP]
    assert packed.seq <= GAP + PACE * (3 * Packed.length / STEPS + GAP / STEPS)
    for _ in range(STRETCH):
        packed.dispatch(Counted(1))


def test_a_keyframe_that_takes_long_to_pack_becomes_permanent_before_it_is_old(packed: Session) -> None:
    Packed.length = 100_000
    for _ in range(PATIENCE):
        packed.dispatch(Counted(1))
    assert permanent(packed) == []
    packed.dispatch(Counted(1))

    assert permanent(packed) == [GAP]


def test_a_keyframe_that_cannot_be_packed_in_time_is_replaced_by_a_later_one(packed: Session) -> None:
    packed.dispatch(Counted(1))
    draft = packed._parts()[1].keyframes.draft
    assert draft is not None
    # As if a thread that was packing it were gone: a child process has only the thread that created it.
    with draft._lock:
        for _ in range(PATIENCE + STRETCH):
            packed.dispatch(Counted(1))

    assert permanent(packed) == [GAP + PATIENCE]


def test_a_keyframe_whose_packing_was_interrupted_is_replaced_by_a_later_one(packed: Session) -> None:
    Packed.length, Packed.fails = 1, True
    with pytest.raises(KeyboardInterrupt):
        while True:
            packed.dispatch(Counted(1))
    Packed.fails = False
    for _ in range(2 * STRETCH):
        packed.dispatch(Counted(1))

    assert permanent(packed) == [GAP + STRETCH]


def test_a_fork_and_its_session_pack_a_keyframe_together(packed: Session) -> None:
    Packed.length = 1000
    packed.dispatch(Counted(1))
    fork = packed.fork()
    while not (permanent(packed) and permanent(fork)):
        packed.dispatch(Counted(1))
        fork.dispatch(Counted(1))

    assert permanent(packed) == permanent(fork) == [GAP]
    assert Packed.made <= 3 * Packed.length
    for _ in range(STRETCH):
        packed.dispatch(Counted(1))


def test_a_compaction_drops_a_keyframe_that_is_being_packed(packed: Session) -> None:
    Packed.length = 1000
    for _ in range(100):
        packed.dispatch(Counted(1))
    packed.compact(keep=50)
    for _ in range(2 * GAP):
        packed.dispatch(Counted(1))

    assert permanent(packed)
    assert GAP not in permanent(packed)
