"""A record number in an event, a slice or a snapshot refers to the same record, whatever is merged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Context
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sampling import share
from tests.session.ledger import Clock
from weakfs import MergeConflict, Record, Registry, Session, event
from weakfs.session import Merged, RolledBack, append_all
from weakfs.session.replay.verification import Rebuilding
from weakfs.session.slices.slice import Declaration


@event("numbers/marked", numbers=("number", "more"))
@frozen
class Marked:
    """Refers to a record by its number, and by its time, which no merge changes."""

    number: int
    at: int
    more: tuple[int, ...] = ()


@event("numbers/pinned", numbers=("number",))
@frozen
class Pinned:
    """The same as the value of a STATE slice."""

    number: int
    at: int


REGISTRY = Registry.empty().with_slices(
    Declaration(Marked, kind="log", reducers={Marked: append_all}),
    Declaration(Pinned, merge=lambda base, ours, theirs: ours if theirs == base else theirs),
)


class _Failed(Exception):
    """Ends a transaction that is to be undone."""


@define
class Writer:
    """A writer with a context of its own, and the transactions that are open in it."""

    context: Context = field(factory=Context)
    open: list[tuple[Session, AbstractContextManager[Session]]] = field(factory=list[Any])

    def run(self, call: Callable[[], Any]) -> Any:
        return self.context.run(call)

    def end(self, *, failing: bool) -> None:
        _, transaction = self.open.pop()
        error = _Failed() if failing else None
        try:
            self.run(lambda: transaction.__exit__(type(error) if error else None, error, None))
        except (_Failed, MergeConflict):
            return


@define
class World:
    """A session with forks, forks of forks, and several writers; it records what each number was meant to refer to."""

    sessions: list[Session] = field(factory=list[Session])
    parents: dict[int, Session] = field(factory=dict[int, Session])
    writers: list[Writer] = field(factory=lambda: [Writer(), Writer()])
    # Maps the time of a record that has a number to the time of the record that the number was meant to refer to.
    meant: dict[int, int] = field(factory=dict[int, int])
    snapshots: dict[str, int] = field(factory=dict[str, int])

    def step(self, action: str, writer: Writer, session: Session, pick: int) -> None:
        if action == "fail" or action == "end":
            if writer.open:
                writer.end(failing=action == "fail")
        elif action == "begin":
            if len(writer.open) < 3:
                transaction = session.transaction()
                writer.run(transaction.__enter__)
                writer.open.append((session, transaction))
        else:
            writer.run(lambda: getattr(self, action)(session, pick))

    def mark(self, session: Session, pick: int) -> None:
        number, at = chosen(session, pick)
        session.dispatch(Marked(number, at, (number, number)))

    def append(self, session: Session, pick: int) -> None:
        session[Marked].append(Marked(*chosen(session, pick)))

    def pin(self, session: Session, pick: int) -> None:
        session[Pinned].seed(Pinned(*chosen(session, pick)))

    def roll_back(self, session: Session, pick: int) -> None:
        number, at = chosen(session, pick)
        self.meant[session.rollback(number).at] = at

    def snapshot(self, session: Session, pick: int) -> None:
        self.snapshots[session.snapshot().snapshot_id] = chosen(session, 0)[1]

    def roll_back_to_snapshot(self, session: Session, pick: int) -> None:
        kept = [one for one in session.snapshots if one.snapshot_id in self.snapshots]
        if kept:
            one = kept[pick % len(kept)]
            self.meant[session.rollback(one).at] = self.snapshots[one.snapshot_id]

    def fork(self, session: Session, pick: int) -> None:
        if len(self.sessions) < 5:
            self.sessions.append(session.fork())
            self.parents[id(self.sessions[-1])] = session

    def merge(self, session: Session, pick: int) -> None:
        forks = [one for one in self.sessions if self.parents.get(id(one)) is session]
        if not forks:
            return
        fork = forks[pick % len(forks)]
        base = 0 if fork._base is None else fork._base.seq
        at = at_of(fork, base)
        # A fork of a transaction that this writer does not see refers to records that do not exist here.
        if at == 0 or any(record.at == at for record in session.records):
            try:
                self.meant[session.merge(fork).at] = at
            except MergeConflict:
                return

    def compact(self, session: Session, pick: int) -> None:
        if not session.in_transaction:
            session.compact(keep=10)


def at_of(session: Session, number: int) -> int:
    """Return the time of a record; 0 for none, or one that was compacted away."""
    dropped = session.seq - len(session.records)
    return session.records[number - dropped - 1].at if number > dropped else 0


def chosen(session: Session, pick: int) -> tuple[int, int]:
    """Choose an existing record, the newest one for 0."""
    count = len(session.records)
    number = session.seq - pick % (count + 1) if pick else session.seq
    return number, at_of(session, number)


def numbers_of(event: object) -> list[tuple[int, int]]:
    if isinstance(event, Marked):
        return [(number, event.at) for number in (event.number, *event.more)]
    return [(event.number, event.at)] if isinstance(event, Pinned) else []


def held(session: Session, world: World) -> list[tuple[int, int]]:
    """List every number that a session holds, with the time of the record that it should refer to."""
    found: list[tuple[int, int]] = []
    for record in session.records:
        event = record.event
        found += numbers_of(event)
        found += numbers_of(getattr(event, "item", None))
        for item in getattr(event, "items", ()):
            found += numbers_of(item)
        if record.at in world.meant:
            assert isinstance(event, RolledBack | Merged)
            found.append((event.target if isinstance(event, RolledBack) else event.base, world.meant[record.at]))
        for pinned in in_state(event):
            found += numbers_of(pinned)
    for value in (*session[Marked].all(), *session[Pinned].all()):
        found += numbers_of(value)
    for one in session.snapshots:
        found.append((one.seq, world.snapshots[one.snapshot_id]))
        for value in session.at(one)[Pinned].all():
            found += numbers_of(value)
    return found


def in_state(event: object) -> list[Pinned]:
    return list(event.state.get("numbers/pinned", ())) if isinstance(event, RolledBack | Merged) else []


def check(session: Session, world: World) -> None:
    records: list[Record] = list(session.records)
    dropped = session.seq - len(records)
    for number, at in held(session, world):
        # A record that had been compacted away by then, or has been since, cannot be looked up.
        if at and number > dropped:
            assert records[number - dropped - 1].at == at
        elif at:
            assert all(record.at != at for record in records)
    rules, line, own = session._parts()
    moments = Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments()
    assert [moment for moment in moments if not moment.is_same] == []


ACTIONS = (
    *("mark", "append", "pin", "roll_back", "snapshot", "roll_back_to_snapshot", "fork", "merge", "merge", "compact"),
    *("begin", "end", "fail"),
)
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1), st.integers(0, 4), st.integers(0, 9)))


@settings(max_examples=share(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_every_number_still_refers_to_its_record(steps: list[tuple[str, int, int, int]]) -> None:
    world = World([Session(session_id="s", registry=REGISTRY, clock=Clock())])
    for action, who, where, pick in steps:
        world.step(action, world.writers[who], world.sessions[where % len(world.sessions)], pick)
    for writer in world.writers:
        while writer.open:
            writer.end(failing=False)
    with tempfile.TemporaryDirectory(prefix="weakfs-numbers-") as folder:
        path = Path(folder) / "session.json"
        for session in world.sessions:
            check(session, world)
            session.save(path)
            check(Session.load(path, registry=REGISTRY), world)
