"""The state after any record, compared with a model that stores every state."""

from __future__ import annotations

from random import Random

import pytest

from tests.session.ledger import (
    Added,
    Noted,
    Put,
    Shelf,
    Taken,
    Total,
    make_session,
    notes_of,
    shelf_of,
    total_of,
)
from weakfs import Session
from weakfs.session import Merged, SessionView, append_all

Moment = tuple[int, dict[str, int], tuple[str, ...]]


# A history has hundreds of steps of every kind, so that a single seed covers each of them.
LONG = [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 4))]


def moment(source: Session | SessionView) -> Moment:
    """Read all slices of a session or of a view of its past."""
    total, shelf = source[Total].latest(), source[Shelf].latest()
    assert total is not None
    assert shelf is not None
    return total.value, dict(shelf.items), tuple(note.text for note in source[Noted].all())


def step(session: Session, random: Random) -> None:
    """Dispatch one event of any kind."""
    kind = random.randrange(4)
    if kind == 0:
        session.dispatch(Added(random.randrange(-5, 6)))
    elif kind == 1:
        session.dispatch(Put(random.choice("abcdef"), random.randrange(100)))
    elif kind == 2:
        session.dispatch(Taken(random.choice("abcdef")))
    else:
        session.dispatch(Noted(str(random.randrange(1000))))


class Remembering:
    """A session that changes at random, and a list of its states after each record.

    While a fork's records are appended, STATE is what the merge gave and LOG slices grow by the fork's notes.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.session = make_session()
        self.moments = [moment(self.session)]
        self.oldest = 0

    def remember(self) -> None:
        assert len(self.moments) == self.session.seq
        self.moments.append(moment(self.session))

    def dispatch(self) -> None:
        step(self.session, self.random)
        self.remember()

    def rollback(self) -> None:
        self.session.rollback(self.random.randrange(self.oldest, self.session.seq + 1))
        self.remember()

    def snapshot_and_back(self) -> None:
        snapshot = self.session.snapshot()
        for _ in range(self.random.randrange(1, 4)):
            self.dispatch()
        self.session.rollback(snapshot)
        self.remember()

    def transaction(self) -> None:
        fails = self.random.random() < 0.5
        try:
            with self.session.transaction():
                for _ in range(self.random.randrange(1, 5)):
                    self.dispatch()
                if fails:
                    raise InterruptedError
        except InterruptedError:
            self.remember()

    def merge(self) -> None:
        fork = self.session.fork()
        for _ in range(self.random.randrange(6)):
            fork.dispatch(Put(self.random.choice("uvw"), self.random.randrange(100)))
            fork.dispatch(Noted(f"fork {self.random.randrange(100)}"))
            if self.random.random() < 0.2:
                fork.rollback(self.random.randrange(self.oldest, fork.seq + 1))
        before = notes_of(self.session)
        if self.random.random() < 0.7:
            self.dispatch_aside()
            before = notes_of(self.session)
        record = self.session.merge(fork)
        assert isinstance(record.event, Merged)
        merged = (total_of(self.session), shelf_of(self.session))
        notes = tuple(before)
        self.moments.append((*merged, notes))
        for later in self.session.records.since(record.seq):
            if isinstance(later.event, Noted):
                notes = (*notes, later.event.text)
            self.moments.append((*merged, notes))

    def dispatch_aside(self) -> None:
        """Change what no fork changes, so that there is no conflict."""
        self.session.dispatch(Noted("aside"))
        self.remember()

    def work(self, steps: int) -> None:
        acts = (self.rollback, self.snapshot_and_back, self.transaction, self.merge)
        for _ in range(steps):
            act = self.random.choice(acts) if self.random.random() < 0.2 else self.dispatch
            act()


@pytest.mark.slow
@pytest.mark.parametrize("seed", LONG)
def test_every_moment_of_a_long_history_is_what_it_was(seed: int) -> None:
    work = Remembering(seed)
    work.work(900)

    assert work.session.seq > 1200
    for seq, expected in enumerate(work.moments):
        assert moment(work.session.at(seq)) == expected, f"after record {seq}"


@pytest.mark.parametrize("seed", LONG)
def test_a_rollback_to_any_moment_gives_its_state_and_keeps_the_notes(seed: int) -> None:
    work = Remembering(seed)
    work.work(300)
    moments = list(work.moments)

    for seq in Random(seed).sample(range(len(moments)), 40):
        work.session.rollback(seq)
        total, shelf, _ = moments[seq]
        assert (total_of(work.session), shelf_of(work.session)) == (total, shelf)
        assert tuple(notes_of(work.session)) == moments[-1][2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", LONG[:3])
def test_compaction_keeps_every_moment_that_it_keeps(seed: int) -> None:
    work = Remembering(seed)
    work.work(500)
    work.oldest = work.session.compact(keep=work.session.seq // 3)

    work.work(300)

    for seq in range(work.oldest, work.session.seq + 1):
        assert moment(work.session.at(seq)) == work.moments[seq], f"after record {seq}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", LONG[:3])
def test_a_session_that_replays_all_records_has_the_same_past(seed: int) -> None:
    work = Remembering(seed)
    work.work(500)

    again = make_session("again")
    again.replay(work.session.records)

    assert moment(again) == moment(work.session)
    for seq, expected in enumerate(work.moments):
        assert moment(again.at(seq)) == expected, f"after record {seq}"


def test_a_view_does_not_change_with_the_session() -> None:
    session = make_session()
    session.dispatch(Added(1))
    view = session.at(1)

    session.dispatch(Added(1))
    session.rollback(0)
    session.compact(keep=0)

    assert view[Total].latest() == Total(1)
    assert view.seq == 1
    assert view.query(Total).latest() == Total(1)


def test_a_snapshot_can_be_viewed_by_itself_its_id_or_its_tag() -> None:
    session = make_session()
    session.dispatch(Added(1))
    session.dispatch(Noted("before"))
    snapshot = session.snapshot("here")
    session.dispatch(Added(1))
    session.dispatch(Noted("after"))

    for target in (snapshot, snapshot.snapshot_id, "here"):
        assert moment(session.at(target)) == (1, {}, ("before",))


def test_the_state_before_the_first_record_is_the_initial_one() -> None:
    session = make_session()
    session.dispatch(Added(1))

    assert moment(session.at(0)) == (0, {}, ())


def test_records_of_an_open_transaction_can_be_viewed_inside_it() -> None:
    session = make_session()
    session.dispatch(Added(1))

    with session.transaction():
        session.dispatch(Added(10))
        session.dispatch(Added(100))
        assert [moment(session.at(seq))[0] for seq in range(4)] == [0, 1, 11, 111]
        session.rollback(2)
        assert total_of(session) == 11

    assert [moment(session.at(seq))[0] for seq in range(5)] == [0, 1, 11, 111, 11]


def test_a_view_of_the_present_does_not_follow_the_session() -> None:
    session = make_session()
    session.dispatch(Added(1))

    view = session.view()
    session.dispatch(Added(1))

    assert moment(view) == (1, {}, ())
    assert view.seq == 1


@pytest.mark.parametrize("before", [3, 600])
def test_a_reducer_that_is_registered_later_does_not_change_the_past(before: int) -> None:
    session = make_session()
    for number in range(before):
        session.dispatch(Put("a", number))
    session.at(1)

    session[Total].register(Put, lambda total, event: Total(total.value + 1))
    session.dispatch(Put("a", 1))
    session.dispatch(Put("a", 2))

    assert [session.at(seq)[Total].latest() for seq in (0, 1, before, before + 1, before + 2)] == [
        Total(0),
        Total(0),
        Total(0),
        Total(1),
        Total(2),
    ]
    session.rollback(before - 1)
    assert total_of(session) == 0


def test_a_log_slice_that_is_installed_later_is_empty_in_the_past() -> None:
    session = make_session()
    session.dispatch(Put("a", 1))
    session.dispatch(Put("a", 2))

    session.install(Put, kind="log").register(Put, append_all)
    session.dispatch(Put("a", 3))

    assert [session.at(seq)[Put].all() for seq in range(4)] == [(), (), (), (Put("a", 3),)]
