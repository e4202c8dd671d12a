"""Reading and changing one slice by hand: every change is an event."""

from __future__ import annotations

import pytest
from attrs import frozen

from tests.session.ledger import Added, Noted, Shelf, Total, make_session, total_of
from weakfs import Registry, Session
from weakfs.session import SliceAppended, SliceCleared, SliceSeeded, UnknownType


def three_notes() -> Session:
    session = make_session()
    for text in ("one", "two", "three"):
        session[Noted].append(Noted(text))
    return session


def test_latest_is_the_newest_value() -> None:
    assert three_notes()[Noted].latest() == Noted("three")


def test_latest_of_a_slice_without_values_is_none() -> None:
    assert make_session()[Noted].latest() is None


def test_all_returns_every_value_oldest_first() -> None:
    assert three_notes()[Noted].all() == (Noted("one"), Noted("two"), Noted("three"))


def test_where_returns_the_values_for_which_the_predicate_is_true() -> None:
    session = three_notes()

    assert session[Noted].where(lambda note: note.text.startswith("t")) == (Noted("two"), Noted("three"))
    assert session[Noted].where(lambda note: False) == ()


def test_seed_makes_a_value_the_only_one() -> None:
    session = three_notes()

    session[Noted].seed(Noted("new"))

    assert session[Noted].all() == (Noted("new"),)


def test_append_adds_a_value_at_the_end() -> None:
    session = three_notes()

    session[Noted].append(Noted("four"))

    assert session[Noted].all()[-2:] == (Noted("three"), Noted("four"))


def test_clear_removes_every_value() -> None:
    session = three_notes()

    session[Noted].clear()

    assert session[Noted].all() == ()
    assert session[Noted].latest() is None


def test_clear_removes_the_initial_value_too() -> None:
    session = make_session()

    session[Total].clear()

    assert session[Total].all() == ()


def test_seeding_after_clearing_starts_over() -> None:
    session = three_notes()
    session[Noted].clear()

    session[Noted].seed(Noted("again"))

    assert session[Noted].all() == (Noted("again"),)


def test_changes_by_hand_are_recorded_like_all_others() -> None:
    session = make_session()

    session[Noted].seed(Noted("a"))
    session[Noted].append(Noted("b"))
    session[Noted].clear()

    assert [record.event for record in session.records] == [
        SliceSeeded("ledger/noted", (Noted("a"),)),
        SliceAppended("ledger/noted", Noted("b")),
        SliceCleared("ledger/noted"),
    ]


def test_changes_by_hand_are_undone_by_a_rollback() -> None:
    session = make_session()
    session[Total].seed(Total(7))
    session[Total].append(Total(8))
    session[Total].clear()

    for target, expected in ((2, (Total(7), Total(8))), (1, (Total(7),)), (0, (Total(0),))):
        session.rollback(target)
        assert session[Total].all() == expected


def test_query_and_mutate_return_the_same_accessor_as_brackets() -> None:
    session = make_session()

    session.mutate(Total).seed(Total(3))

    assert session.query(Total).latest() == session[Total].latest() == session.mutate(Total).latest() == Total(3)
    assert type(session.query(Total)) is type(session.mutate(Total)) is type(session[Total])


def test_an_accessor_always_shows_the_current_values() -> None:
    session = make_session()
    totals = session[Total]
    assert totals.latest() == Total(0)

    session.dispatch(Added(1))
    assert totals.latest() == Total(1)

    session.rollback(0)
    assert totals.latest() == Total(0)

    with session.transaction():
        session.dispatch(Added(5))
        assert totals.latest() == Total(5)


def test_an_accessor_made_before_the_initial_value_was_given_shows_it_too() -> None:
    session = Session(registry=Registry.empty())
    totals = session[Total]

    session.install(Total, initial=Total)

    assert totals.latest() == session[Total].latest() == Total(0)
    totals.append(Total(1))
    session.rollback(0)
    assert totals.latest() == session[Total].latest() == Total(0)


def test_register_lets_an_event_change_the_slice() -> None:
    session = make_session()

    session[Total].register(Noted, lambda total, note: Total(len(note.text)))
    session.dispatch(Noted("four"))

    assert total_of(session) == 4


def test_a_type_that_was_never_installed_is_installed_as_state_when_first_used() -> None:
    session = Session(registry=Registry.empty())
    session[Shelf].seed(Shelf({"a": 1}))

    session.rollback(0)

    assert session[Shelf].all() == ()


def test_a_value_that_was_read_does_not_change_with_the_session() -> None:
    session = three_notes()
    before = session[Noted].all()

    session[Noted].append(Noted("four"))

    assert len(before) == 3


@pytest.mark.parametrize("value", [5, None, Noted("n")])
def test_a_value_of_another_type_is_refused_and_nothing_changes(value: object) -> None:
    session = make_session()

    for step in (session[Total].seed, session[Total].append):
        with pytest.raises(TypeError, match="values of type Total"):
            step(value)  # type: ignore[arg-type]  # the point of this test

    assert session[Total].all() == (Total(0),)
    assert len(session.records) == 0


def test_exceptions_of_a_predicate_reach_the_caller() -> None:
    def fail(note: Noted) -> bool:
        raise LookupError(note.text)

    with pytest.raises(LookupError, match="one"):
        three_notes()[Noted].where(fail)


def test_a_view_of_the_past_is_read_only() -> None:
    session = three_notes()

    past = session.at(2)[Noted]

    assert past.all() == (Noted("one"), Noted("two"))
    assert past.where(lambda note: note.text == "two") == (Noted("two"),)
    assert [name for name in ("seed", "append", "clear", "register") if hasattr(past, name)] == []


def test_a_view_refuses_a_type_that_is_not_a_slice_and_says_what_to_do() -> None:
    @frozen
    class Stranger:
        pass

    with pytest.raises(UnknownType, match=r"session\.install\(Stranger\)"):
        make_session().at(0)[Stranger]
