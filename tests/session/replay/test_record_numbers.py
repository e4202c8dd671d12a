"""Record numbers inside events, slices and snapshots after a merge: they still refer to the same records."""

from __future__ import annotations

from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from fixtures.sessions import story
from tests.session.ledger import Added, Clock, Noted, Put, Shelf, Taken, Total, install_ledger
from weakfs import InMemoryFilesystem, Registry, Session, Toolset, event
from weakfs.session import Merged, RolledBack, append_all
from weakfs.session.replay.verification import Rebuilding
from weakfs.session.slices.slice import Declaration
from weakfs.tools import ToolCall
from weakfs.tools.slices import FilesSeen

BY_FIRST_VERSION = Path(story.__file__).parent / "v1-merges.json"


@event("numbers/step", numbers=("first", "others"))
@frozen
class Step:
    """Something that was done, and the records in which it was done."""

    first: int | None
    others: tuple[int, ...] = ()
    count: int = 0


@event("numbers/newest", numbers=("seq",))
@frozen
class Newest:
    """A STATE slice that names a record."""

    seq: int


REGISTRY = Registry.empty().with_slices(
    Declaration(Step, kind="log", reducers={Step: append_all}),
    Declaration(Newest, merge=lambda base, ours, theirs: ours),
)


def make_session() -> Session:
    return install_ledger(Session(session_id="s", registry=REGISTRY, clock=Clock()))


def note(session: Session, text: str) -> int:
    return session.dispatch(Noted(text)).seq


def number_of(session: Session, text: str) -> int:
    """Find the record that noted something."""
    return next(record.seq for record in session.records if record.event == Noted(text))


def test_numbers_in_merged_events_name_the_records_that_they_named_in_the_fork() -> None:
    session = make_session()
    before = note(session, "before")
    fork = session.fork()
    note(session, "ours")
    meant = note(fork, "theirs")
    fork.dispatch(Step(meant, (before, meant), count=meant))

    session.merge(fork)

    now = number_of(session, "theirs")
    assert (meant, now) == (2, 4)
    assert session.records[-1].event == Step(now, (before, now), count=meant)
    assert session[Step].all() == (Step(now, (before, now), count=meant),)


def test_a_missing_number_stays_missing() -> None:
    session = make_session()
    fork = session.fork()
    fork.dispatch(Step(None))

    session.merge(fork)

    assert session[Step].all() == (Step(None),)


def test_a_fork_may_name_records_from_before_its_last_merge() -> None:
    session = make_session()
    fork = session.fork()
    note(session, "first of ours")
    first = note(fork, "first of theirs")
    session.merge(fork)
    note(session, "second of ours")
    second = note(fork, "second of theirs")
    fork.dispatch(Step(first, (second, 0)))

    again = session.merge(fork)

    numbers = number_of(session, "first of theirs"), number_of(session, "second of theirs")
    assert session[Step].all() == (Step(numbers[0], (numbers[1], 0)),)
    assert isinstance(again.event, Merged)
    assert again.event.base == numbers[0]


def test_numbers_of_a_fork_of_a_fork_are_mapped_twice() -> None:
    session = make_session()
    fork = session.fork()
    note(fork, "of the fork")
    inner = fork.fork()
    note(fork, "of the fork later")
    inner.dispatch(Step(note(inner, "of the inner fork"), (1,)))
    note(session, "ours")
    fork.merge(inner)
    session.merge(fork)

    of_fork, of_inner = number_of(session, "of the fork"), number_of(session, "of the inner fork")
    assert session[Step].all() == (Step(of_inner, (of_fork,)),)
    merges = [record.event for record in session.records if isinstance(record.event, Merged)]
    assert [event.base for event in merges] == [0, of_fork]


def test_the_target_of_a_rollback_in_a_fork_is_mapped() -> None:
    session = make_session()
    fork = session.fork()
    note(session, "ours")
    fork.rollback(note(fork, "target"))

    session.merge(fork)

    event = session.records[-1].event
    assert isinstance(event, RolledBack)
    assert event.target == number_of(session, "target")


def test_numbers_of_a_transaction_that_was_merged_are_mapped() -> None:
    session = make_session()
    with session.transaction():
        session.dispatch(Step(note(session, "inside")))
        session[Newest].seed(Newest(1))
        Context().run(note, session, "outside")

    meant = number_of(session, "inside")
    assert meant == 3
    assert session[Step].all() == (Step(meant),)
    assert session[Newest].all() == (Newest(meant),)


def test_a_fork_of_a_transaction_names_its_records_where_they_are_after_it() -> None:
    session = make_session()
    with session.transaction():
        inside = note(session, "inside")
        fork = session.fork()
        Context().run(note, session, "outside")
    fork.dispatch(Step(inside))

    merge = session.merge(fork)

    now = number_of(session, "inside")
    assert (inside, now) == (1, 3)
    assert session[Step].all() == (Step(now),)
    assert isinstance(merge.event, Merged)
    assert merge.event.base == now


def test_a_fork_that_was_merged_in_a_transaction_names_its_records_where_they_are_after_it() -> None:
    session = make_session()
    fork = session.fork()
    meant = note(fork, "theirs")
    with session.transaction():
        session.merge(fork)
        Context().run(note, session, "outside")
    fork.dispatch(Step(meant))

    session.merge(fork)

    assert session[Step].all() == (Step(number_of(session, "theirs")),)


def test_a_fork_merged_again_after_a_failed_transaction_names_its_newer_records() -> None:
    session = make_session()
    fork = session.fork()
    meant = note(fork, "theirs")
    with pytest.raises(ZeroDivisionError), session.transaction():
        session.merge(fork)
        raise ZeroDivisionError
    fork.dispatch(Step(meant))

    session.merge(fork)

    assert session.records[session[Step].all()[0].first - 1].event == Noted("theirs")  # type: ignore[operator]


def test_values_that_a_fork_put_into_slices_by_hand_are_mapped() -> None:
    session = make_session()
    fork = session.fork()
    note(session, "ours")
    meant = note(fork, "theirs")
    fork[Step].append(Step(meant))
    fork[Newest].seed(Newest(meant))

    session.merge(fork)

    now = number_of(session, "theirs")
    assert session[Step].all() == (Step(now),)
    assert session[Newest].all() == (Newest(now),)
    assert session.at(session.seq)[Newest].all() == (Newest(now),)


def test_snapshots_of_a_fork_refer_to_the_records_that_precede_them() -> None:
    session = make_session()
    base = note(session, "base")
    fork = session.fork()
    fork.snapshot("at the base")
    note(fork, "theirs")
    fork.snapshot("behind")
    fork[Newest].seed(Newest(2))
    fork.snapshot("with a number")
    note(session, "ours")

    session.merge(fork)

    now = number_of(session, "theirs")
    assert [(one.tag, one.seq) for one in session.snapshots] == [
        ("at the base", base),
        ("behind", now),
        ("with a number", now + 1),
    ]
    assert session.at("with a number")[Newest].all() == (Newest(now),)


def test_a_snapshot_taken_in_a_transaction_before_it_did_anything_stays_where_it_was_taken() -> None:
    session = make_session()
    with session.transaction():
        session.snapshot("inside")
        note(session, "inside")
        Context().run(note, session, "outside")

    assert session.snapshots[0].seq == 0


@event("numbers/report")
@frozen
class Report:
    """An event with a value in it that names a record."""

    step: Step


def test_a_number_inside_a_value_that_a_field_holds_stays_as_it_is() -> None:
    session = Session(session_id="s", registry=REGISTRY.with_types(Noted, Report), clock=Clock())
    fork = session.fork()
    note(session, "in the session")
    fork.dispatch(Report(Step(note(fork, "in the fork"))))
    session.merge(fork)

    assert session.records[-1].event == Report(Step(1))
    assert number_of(session, "in the fork") == 3


def test_a_class_that_declares_a_field_that_it_lacks_is_refused() -> None:
    @event("numbers/odd", numbers=("seq", "nowhere"))
    @frozen
    class Odd:
        seq: int

    with pytest.raises(ValueError, match=r"Odd: it declares record numbers in 'nowhere'.*name fields"):
        Registry.empty().with_types(Odd)


def test_calls_in_forks_name_their_records() -> None:
    session = Session(session_id="s")
    fork = session.fork()
    InMemoryFilesystem(session).write("/outside", "1\n")
    files = InMemoryFilesystem(fork)
    tools = Toolset(fork, files)
    for path in ("/a", "/b"):
        assert tools.call("write_file", {"path": path, "content": "1\n"}, caller="one").success
        session.merge(fork)

    for call, path in zip(session[ToolCall].all(), ("/a", "/b"), strict=True):
        assert call.first_seq is not None
        assert call.first_seq == call.last_seq
        assert session.records[call.first_seq - 1].event.path == path
    # The first call began where the fork did, the second after the records that were merged before.
    seen = session[FilesSeen].latest()
    assert seen is not None
    sights = [seen.sight(files.filesystem_id, "one", path) for path in ("/a", "/b")]
    assert [sight[1] for sight in sights if sight is not None] == [0, 5]


def test_everything_is_unchanged_after_saving_and_loading(tmp_path: Path) -> None:
    session = make_session()
    fork = session.fork()
    note(session, "ours")
    fork.dispatch(Step(note(fork, "theirs")))
    session.merge(fork)
    session.save(tmp_path / "s.json")

    loaded = Session.load(tmp_path / "s.json", registry=REGISTRY.with_types(Added, Put, Taken, Noted, Total, Shelf))

    assert loaded[Step].all() == session[Step].all() == (Step(3),)
    assert list(loaded.records) == list(session.records)


def test_merges_saved_by_the_first_version_are_read_with_mapped_numbers() -> None:
    session = Session.load(BY_FIRST_VERSION)

    merges = [record.event for record in session.records if isinstance(record.event, Merged)]
    assert [event.renumbered for event in merges] == [False] * len(merges)
    rules, line, own = session._parts()
    moments = list(Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments())
    assert len(moments) > 5
    assert [moment for moment in moments if not moment.is_same or moment.rebuilt is None] == []


def test_a_session_of_the_first_version_continues_with_correct_numbers(tmp_path: Path) -> None:
    session = Session.load(BY_FIRST_VERSION)
    fork = session.fork()
    InMemoryFilesystem(session).write("/outside", "1\n")
    assert Toolset(fork).call("write_file", {"path": "/new", "content": "1\n"}).success
    session.merge(fork)
    session.save(tmp_path / "s.json")

    loaded = Session.load(tmp_path / "s.json")

    call: Any = loaded[ToolCall].latest()
    assert loaded.records[call.first_seq - 1].event.path == "/new"
    rules, line, own = loaded._parts()
    assert all(one.is_same for one in Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments())


def test_a_refusal_of_a_stale_write_names_the_call_of_a_merged_fork() -> None:
    session = Session(session_id="s")
    files = InMemoryFilesystem(session)
    fork = session.fork()
    files.write("/f", "1\n")
    for number in range(5):
        files.write("/other", f"{number}\n")
    assert Toolset(session).call("read_file", {"path": "/f"}, caller="reader").success
    assert Toolset(fork).call("write_file", {"path": "/g", "content": "2\n"}, caller="writer", call_id="w").success
    session.merge(fork)
    assert Toolset(session).call("read_file", {"path": "/g"}, caller="reader").success
    fork.close()
    again = session.fork()
    assert Toolset(again).call("write_file", {"path": "/g", "content": "3\n"}, caller="writer", call_id="w2").success
    files.write("/other", "last\n")
    session.merge(again)

    result = Toolset(session).call("write_file", {"path": "/g", "content": "4\n"}, caller="reader")

    assert result.error_code == "changed_by_another"
    assert "'writer' has changed it since you last read it (call w2)" in result.message
