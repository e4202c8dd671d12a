"""A session compared with a model that stores every state, for any order of steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Thread

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine  # pyright: ignore[reportUnknownVariableType]  # untyped

from tests.property.session_model import Differs, Line, Moment, State
from tests.sampling import share
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
from weakfs import MergeConflict, Session
from weakfs.session import SessionView, UnknownSnapshot

KEYS = st.sampled_from("abc")
AMOUNTS = st.integers(0, 3)


def elsewhere(work: Callable[[], object]) -> None:
    """Do something in another thread, and wait for it."""
    thread = Thread(target=work)
    thread.start()
    thread.join()


def moment(view: SessionView) -> Moment:
    total, shelf = view[Total].latest(), view[Shelf].latest()
    assert total is not None
    assert shelf is not None
    return State(total.value, dict(shelf.items)), tuple(note.text for note in view[Noted].all())


def differences(merge: Callable[[], object]) -> list[str]:
    """Have the model merge, and name what it cannot merge."""
    try:
        merge()
    except Differs as differs:
        return sorted(differs.names)
    return []


class SessionMachine(RuleBasedStateMachine):
    """One session with its open transactions and its forks."""

    def __init__(self) -> None:
        super().__init__()
        self.session = make_session()
        # The trunk and the branch of each open transaction, innermost last.
        self.lines = [Line()]
        self.open: list[AbstractContextManager[Session]] = []
        self.merged: list[list[tuple[Line, Line | None]]] = []
        # Each fork with the one that it was forked from, if that was not the session itself.
        self.forks: list[tuple[Session, Line]] = []
        self.parents: dict[Session, tuple[Session, Line]] = {}
        self.notes = 0

    @property
    def line(self) -> Line:
        return self.lines[-1]

    def change(self, session: Session, line: Line, kind: str, key: str, amount: int) -> None:
        if kind == "add":
            session.dispatch(Added(amount))
            line.record(line.state.with_total(line.state.total + amount))
        elif kind == "put":
            session.dispatch(Put(key, amount))
            line.record(line.state.with_item(key, amount))
        elif kind == "take":
            session.dispatch(Taken(key))
            line.record(line.state.with_item(key, None))
        elif kind == "seed":
            session[Total].seed(Total(amount))
            line.record(line.state.with_total(amount))
        else:
            self.notes += 1
            session.dispatch(Noted(f"note {self.notes}"))
            line.record(note=f"note {self.notes}")

    def go_back(self, session: Session, line: Line, data: st.DataObject) -> None:
        to_snapshot = data.draw(st.booleans())
        if line.snapshots and to_snapshot:
            name = data.draw(st.sampled_from(sorted(line.snapshots)))
            session.rollback(name)
            line.record(line.snapshots[name])
        else:
            seq = data.draw(st.integers(line.dropped, line.seq))
            session.rollback(seq)
            line.record(line.moments[seq][0])

    def some_fork(self, data: st.DataObject) -> tuple[Session, Line]:
        return self.forks[data.draw(st.integers(0, len(self.forks) - 1))]

    KINDS = st.sampled_from(["add", "put", "take", "seed", "note"])

    @rule(kind=KINDS, key=KEYS, amount=AMOUNTS)
    def dispatch(self, kind: str, key: str, amount: int) -> None:
        self.change(self.session, self.line, kind, key, amount)

    @rule(kind=KINDS, key=KEYS, amount=AMOUNTS)
    def dispatch_elsewhere(self, kind: str, key: str, amount: int) -> None:
        elsewhere(lambda: self.change(self.session, self.lines[0], kind, key, amount))

    @rule()
    def snapshot(self) -> None:
        self.line.snapshots[self.session.snapshot().snapshot_id] = self.line.state

    @rule()
    def snapshot_elsewhere(self) -> None:
        trunk = self.lines[0]
        elsewhere(lambda: trunk.snapshots.setdefault(self.session.snapshot().snapshot_id, trunk.state))

    @precondition(lambda self: self.line.snapshots)
    @rule(data=st.data())
    def drop_snapshot(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.line.snapshots)))
        self.session.drop_snapshot(name)
        del self.line.snapshots[name]

    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        self.go_back(self.session, self.line, data)

    @rule(data=st.data())
    def rollback_elsewhere(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(self.lines[0].dropped, self.lines[0].seq))
        elsewhere(lambda: self.session.rollback(seq))
        self.lines[0].record(self.lines[0].moments[seq][0])

    @precondition(lambda self: len(self.open) < 3)
    @rule()
    def begin(self) -> None:
        transaction = self.session.transaction()
        transaction.__enter__()
        self.open.append(transaction)
        self.merged.append([])
        self.lines.append(self.line.branch())

    @precondition(lambda self: self.open)
    @rule()
    def commit(self) -> None:
        branch, merged = self.lines.pop(), self.merged.pop()
        differing = differences(lambda: self.line.join(branch))
        if differing:
            with pytest.raises(MergeConflict) as caught:
                self.open.pop().__exit__(None, None, None)
            assert sorted(caught.value.paths) == differing
            self.undo(branch, merged)
        else:
            self.open.pop().__exit__(None, None, None)
            if self.merged:
                self.merged[-1] += merged

    @precondition(lambda self: self.open)
    @rule()
    def fail(self) -> None:
        branch, merged = self.lines.pop(), self.merged.pop()
        error = LookupError("of this transaction")
        assert not self.open.pop().__exit__(LookupError, error, None)
        self.undo(branch, merged)

    def undo(self, branch: Line, merged: list[tuple[Line, Line | None]]) -> None:
        for fork, base in reversed(merged):
            fork.base = base
        self.line.abandon(branch)

    @precondition(lambda self: len(self.forks) < 3)
    @rule()
    def fork(self) -> None:
        self.forks.append((self.session.fork(), self.line.branch()))

    @precondition(lambda self: 0 < len(self.forks) < 4)
    @rule(data=st.data())
    def fork_of_fork(self, data: st.DataObject) -> None:
        parent = self.some_fork(data)
        fork, line = parent[0].fork(), parent[1].branch()
        self.parents[fork] = parent
        self.forks.append((fork, line))

    @precondition(lambda self: self.forks)
    @rule(data=st.data(), kind=KINDS, key=KEYS, amount=AMOUNTS)
    def dispatch_in_fork(self, data: st.DataObject, kind: str, key: str, amount: int) -> None:
        self.change(*self.some_fork(data), kind, key, amount)

    @precondition(lambda self: self.forks)
    @rule(data=st.data())
    def go_back_in_fork(self, data: st.DataObject) -> None:
        self.go_back(*self.some_fork(data), data)

    @precondition(lambda self: self.forks)
    @rule(data=st.data())
    def snapshot_in_fork(self, data: st.DataObject) -> None:
        fork, line = self.some_fork(data)
        line.snapshots[fork.snapshot().snapshot_id] = line.state

    @precondition(lambda self: self.forks)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        fork, line = self.some_fork(data)
        into, own = self.parents.get(fork, (self.session, self.line))
        differing = differences(lambda: own.absorb(line))
        if differing:
            with pytest.raises(MergeConflict) as caught:
                into.merge(fork)
            assert sorted(caught.value.paths) == differing
            return
        into.merge(fork)
        if self.merged and into is self.session:
            self.merged[-1].append((line, line.base))
        line.rebase()

    @precondition(lambda self: self.forks)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        self.forks.remove(self.some_fork(data))

    @rule(keep=st.integers(0, 10))
    def compact_elsewhere(self, keep: int) -> None:
        went: list[int] = []
        elsewhere(lambda: went.append(self.session.compact(keep=keep)))
        assert went == [self.lines[0].compact(keep)]

    @invariant()
    def stands_where_the_model_stands(self) -> None:
        for session, line in [(self.session, self.line), *self.forks]:
            assert State(total_of(session), shelf_of(session)) == line.state
            assert tuple(notes_of(session)) == line.notes
            assert session.seq == line.seq
            assert {snapshot.snapshot_id for snapshot in session.snapshots} == line.snapshots.keys()
            assert [record.seq for record in session.records] == list(range(line.dropped + 1, line.seq + 1))

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        line = self.line
        seq = data.draw(st.integers(line.dropped, line.seq))
        assert moment(self.session.at(seq)) == line.moments[seq]
        for gone in (line.dropped - 1, line.seq + 1):
            with pytest.raises(UnknownSnapshot):
                self.session.at(gone)

    def teardown(self) -> None:
        while self.open:
            self.fail()
        self.stands_where_the_model_stands()
        for session, line in [(self.session, self.line), *self.forks]:
            for seq in range(line.dropped, line.seq + 1):
                assert moment(session.at(seq)) == line.moments[seq]
            for name, state in line.snapshots.items():
                assert moment(session.at(name))[0] == state
            if not line.dropped:
                again = make_session("again")
                again.replay(session.records)
                assert [moment(again.at(seq)) for seq in range(line.seq + 1)] == line.moments


def test_a_session_equals_the_model_after_any_steps() -> None:
    run_machine(
        SessionMachine,
        settings=settings(
            max_examples=share(150), stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
