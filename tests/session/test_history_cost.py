"""How far back any moment is read from: the nearest keyframe, which is never far, and what the keyframes hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from tests.sampling import is_exhaustive
from weakfs import InMemoryFilesystem, Registry, Session
from weakfs.session.history import keyframes
from weakfs.session.history.keyframes import GAP, NEAR, STRETCH

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
    """Read moments all over the history, and give how many records the dearest one replayed."""
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


def test_any_moment_of_a_long_history_is_read_from_a_keyframe_nearby(counted: tuple[Session, Reductions]) -> None:
    session, reductions = counted

    assert most_reductions(session, reductions) < GAP + STRETCH


def test_the_newest_moments_are_read_from_keyframes_nearer_still(counted: tuple[Session, Reductions]) -> None:
    session, reductions = counted

    for age in (1, 300, 700, 1000, 1500):
        reductions.made = 0
        session.at(RECORDS - age)
        assert reductions.made < 2 * STRETCH


def test_few_keyframes_are_states_that_the_garbage_collector_visits(counted: tuple[Session, Reductions]) -> None:
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


def test_what_follows_a_loaded_history_is_read_without_it(counted: tuple[Session, Reductions], tmp_path: Path) -> None:
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
def test_keyframes_of_wide_states_lie_further_apart_than_those_of_small_ones() -> None:
    def kept(directories: int) -> int:
        session = Session(session_id="s")
        files = InMemoryFilesystem(session)
        for number in range(5 * GAP):
            files.write_bytes(f"/{number % directories}/{number % 20}", b"")
        return len(session._parts()[1].keyframes.kept)

    assert kept(20) == 5
    assert kept(GAP) < 4
