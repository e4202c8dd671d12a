"""What reducers do to a slice: the built-in ones, and any function `(value, event) -> value`."""

from __future__ import annotations

import pytest
from attrs import frozen

from tests.session.ledger import Added, Clock, Put, Total, make_session
from weakfs import Registry, Session, SessionError
from weakfs.session import append_all, replace_latest, replace_latest_by, upsert_by
from weakfs.session.slices.slice import WholeSlice


@frozen
class Priced:
    """An event that is a value of its own slice."""

    name: str
    price: int


def priced_session(reducer: WholeSlice) -> Session:
    session = Session(session_id="s", registry=Registry.empty(), clock=Clock())
    session.install(Priced).register(Priced, reducer)
    return session


def test_append_all_keeps_every_event() -> None:
    session = priced_session(append_all)

    for price in (1, 2, 2):
        session.dispatch(Priced("tea", price))

    assert [value.price for value in session[Priced].all()] == [1, 2, 2]


def test_replace_latest_keeps_the_newest_event_only() -> None:
    session = priced_session(replace_latest)

    for price in (1, 2, 3):
        session.dispatch(Priced("tea", price))

    assert session[Priced].all() == (Priced("tea", 3),)


def test_replace_latest_replaces_all_existing_values() -> None:
    session = priced_session(replace_latest)
    session[Priced].append(Priced("tea", 1))
    session[Priced].append(Priced("milk", 1))

    session.dispatch(Priced("sugar", 1))

    assert session[Priced].all() == (Priced("sugar", 1),)


def test_upsert_by_replaces_the_value_with_the_same_key_in_place() -> None:
    session = priced_session(upsert_by(lambda value: value.name))

    for name, price in (("tea", 1), ("milk", 2), ("tea", 3), ("sugar", 4)):
        session.dispatch(Priced(name, price))

    assert session[Priced].all() == (Priced("tea", 3), Priced("milk", 2), Priced("sugar", 4))


def test_replace_latest_by_moves_the_newest_value_of_a_key_to_the_end() -> None:
    session = priced_session(replace_latest_by(lambda value: value.name))

    for name, price in (("tea", 1), ("milk", 2), ("tea", 3), ("sugar", 4)):
        session.dispatch(Priced(name, price))

    assert session[Priced].all() == (Priced("milk", 2), Priced("tea", 3), Priced("sugar", 4))


def test_keyed_reducers_work_on_slices_of_many_values() -> None:
    for make in (upsert_by, replace_latest_by):
        session = priced_session(make(lambda value: value.name))
        for number in range(600):
            session.dispatch(Priced(str(number), 0))

        session.dispatch(Priced("17", 1))

        values = session[Priced].all()
        assert len(values) == 600
        assert [value for value in values if value.name == "17"] == [Priced("17", 1)]


def test_a_reducer_gets_the_latest_value_and_its_result_replaces_it() -> None:
    session = make_session()
    session[Total].seed(Total(1))
    session[Total].append(Total(10))

    session.dispatch(Added(5))

    assert session[Total].all() == (Total(1), Total(15))


def test_a_reducer_gets_none_where_the_slice_has_no_value() -> None:
    session = make_session()
    got: list[object] = []

    def first(value: Priced | None, event: Added) -> Priced:
        got.append(value)
        return Priced("new", event.by)

    session.install(Priced).register(Added, first)

    session.dispatch(Added(2))

    assert got == [None]
    assert session[Priced].all() == (Priced("new", 2),)


def test_a_reducer_that_changes_nothing_keeps_the_same_value_but_adds_a_record() -> None:
    session = make_session()
    before = session[Total].latest()

    record = session.dispatch(Added(0))

    assert session[Total].latest() is before
    assert session.records[-1] == record


def test_a_reducer_works_on_a_log_slice_too() -> None:
    session = make_session()
    session.install(Priced, kind="log").register(Added, lambda value, event: Priced("sum", event.by))

    session.dispatch(Added(1))
    session.dispatch(Added(2))
    session.rollback(0)

    assert session[Priced].all() == (Priced("sum", 2),)


def test_replacing_the_latest_of_a_thousand_values_keeps_the_others() -> None:
    session = make_session()
    for number in range(1000):
        session[Total].append(Total(number))

    session.dispatch(Added(1))
    session.dispatch(Added(1))

    assert [total.value for total in session[Total].all()] == [0, *range(999), 1001]


def test_an_event_without_a_reducer_is_recorded_and_changes_no_slice() -> None:
    session = make_session()

    session.dispatch(Priced("unheard", 1))

    assert [record.event for record in session.records] == [Priced("unheard", 1)]
    assert session[Total].latest() == Total(0)


def test_reducers_are_chosen_by_the_exact_type_of_the_event() -> None:
    @frozen
    class AddedTwice(Added):
        pass

    session = make_session()

    session.dispatch(AddedTwice(4))

    assert session[Total].latest() == Total(0)


def test_reducers_of_a_slice_registered_later_apply_to_later_events() -> None:
    session = make_session()
    session.dispatch(Put("a", 1))

    session[Total].register(Put, lambda total, event: Total(total.value + event.value))
    session.dispatch(Put("a", 10))

    assert session[Total].latest() == Total(10)


def test_a_reducer_that_forgets_to_return_a_value_is_named_and_nothing_changes() -> None:
    session = make_session()
    session.dispatch(Added(1))

    def forgetful(value: object, event: Put) -> None:
        pass

    session[Total].register(Put, forgetful)

    with pytest.raises(SessionError, match="forgetful of Put returned None; return the new value"):
        session.dispatch(Put("a", 1))
    assert session[Total].latest() == Total(1)
    assert len(session.records) == 1
