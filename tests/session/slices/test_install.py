"""Installing a slice type in a session: its tag, kind, initial value and marked reducers."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from tests.session.ledger import Added, Clock, Noted, Put, Shelf, Taken, Total, make_session, shelf_of, total_of
from weakfs import InMemoryFilesystem, Registry, Session, SessionError, event, reducer
from weakfs.reducers import FileTree
from weakfs.session import Session as GenericSession
from weakfs.session import UnknownType, append_all, replace_latest


def bare_session() -> Session:
    return Session(session_id="s", registry=Registry.empty(), clock=Clock())


def test_installing_registers_every_marked_method() -> None:
    session = bare_session()
    session.install(Shelf, initial=Shelf)

    session.dispatch(Put("a", 1))
    session.dispatch(Put("b", 2))
    session.dispatch(Taken("a"))

    assert shelf_of(session) == {"b": 2}


def test_installing_returns_the_accessor() -> None:
    totals = bare_session().install(Total, initial=Total(3))

    totals.append(Total(4))

    assert totals.all() == (Total(3), Total(4))


def test_initial_may_be_a_value_or_a_function_that_returns_one() -> None:
    assert bare_session().install(Total, initial=Total(9)).latest() == Total(9)
    assert bare_session().install(Total, initial=lambda: Total(8)).latest() == Total(8)
    assert bare_session().install(Total, initial=Total).latest() == Total(0)


def test_without_an_initial_value_a_slice_starts_empty() -> None:
    assert bare_session().install(Total).all() == ()


def test_one_method_may_be_marked_for_several_events() -> None:
    @frozen
    class Seen:
        count: int = 0

        @reducer(on=Added)
        @reducer(on=Noted)
        def see(self, event: object) -> Seen:
            return Seen(self.count + 1)

    session = bare_session()
    session.install(Seen, initial=Seen)

    session.dispatch(Added(1))
    session.dispatch(Noted("x"))

    assert session[Seen].latest() == Seen(2)


def test_one_event_may_change_several_slices() -> None:
    session = make_session()
    session[Shelf].register(Added, lambda shelf, event: Shelf({**shelf.items, "last": event.by}))

    session.dispatch(Added(4))

    assert total_of(session) == 4
    assert shelf_of(session) == {"last": 4}


def test_two_marked_methods_for_one_event_are_refused_and_nothing_is_installed() -> None:
    @frozen
    class Torn:
        @reducer(on=Added)
        def one(self, event: Added) -> Torn:
            return self

        @reducer(on=Added)
        def other(self, event: Added) -> Torn:
            return self

    session = bare_session()

    with pytest.raises(ValueError, match="second reducer of Added"):
        session.install(Torn)

    with pytest.raises(UnknownType):
        session.at(0)[Torn]


def test_a_second_reducer_for_an_event_and_a_slice_is_refused() -> None:
    session = make_session()

    with pytest.raises(ValueError, match="cannot register a second reducer of Added for 'ledger/total'"):
        session[Total].register(Added, lambda total, event: total)

    session.dispatch(Added(2))
    assert total_of(session) == 2


def test_a_second_built_in_reducer_is_refused_as_well() -> None:
    session = make_session()

    with pytest.raises(ValueError, match="second reducer of Noted"):
        session[Noted].register(Noted, replace_latest)


def test_installing_again_changes_nothing() -> None:
    session = make_session()
    session.dispatch(Added(5))

    session.install(Total, initial=Total)
    session.dispatch(Added(5))

    assert total_of(session) == 10
    assert len(session.records) == 2


def test_installing_again_without_an_initial_value_keeps_the_first_one() -> None:
    session = bare_session()
    session.install(Total, initial=Total(1))

    session.install(Total)

    assert session[Total].latest() == Total(1)


def test_installing_again_without_a_merge_function_keeps_the_first_one() -> None:
    session = make_session()
    session.install(Shelf, initial=Shelf)
    fork = session.fork()
    fork.dispatch(Put("theirs", 1))
    session.dispatch(Put("ours", 2))

    session.merge(fork)

    assert shelf_of(session) == {"ours": 2, "theirs": 1}


def test_installing_under_another_tag_or_kind_is_refused() -> None:
    session = make_session()

    with pytest.raises(ValueError, match=r"'log'.*it is installed as 'ledger/total' of kind 'state'"):
        session.install(Total, kind="log")
    with pytest.raises(ValueError, match=r"'other'.*it is installed as 'ledger/total'"):
        session.install(Total, tag="other")


def test_a_tag_belongs_to_one_class() -> None:
    @event("ledger/total")
    @frozen
    class Impostor:
        pass

    with pytest.raises(ValueError, match=r"'ledger/total'.*another tag with @event"):
        make_session().install(Impostor)


def test_a_slice_type_may_be_given_a_tag_when_it_is_installed() -> None:
    @frozen
    class Plain:
        text: str

    session = bare_session()
    session.install(Plain, tag="my/plain").seed(Plain("x"))

    assert session.registry.shape("my/plain").cls is Plain


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="a slice is of kind 'state' or 'log'"):
        bare_session().install(Total, kind="audit")  # type: ignore[arg-type]  # the point of this test


def test_a_class_that_is_not_an_attrs_class_is_refused_with_a_remedy() -> None:
    class Naked:
        pass

    with pytest.raises(TypeError, match=r"cannot register Naked: .*@attrs\.frozen"):
        bare_session().install(Naked)


def test_a_rollback_restores_state_slices_and_keeps_log_slices() -> None:
    session = bare_session()
    session.install(Total, initial=Total, kind="state")
    session.install(Noted, kind="log").register(Noted, append_all)
    session.dispatch(Added(1))
    session.dispatch(Noted("kept"))

    session.rollback(0)

    assert total_of(session) == 0
    assert session[Noted].all() == (Noted("kept"),)


def test_a_marked_reducer_starts_from_a_default_value_if_there_is_none() -> None:
    session = bare_session()
    session.install(Total)

    session.dispatch(Added(3))

    assert session[Total].all() == (Total(3),)


def test_a_marked_reducer_without_a_value_to_start_from_asks_for_an_initial_one() -> None:
    @frozen
    class Named:
        name: str

        @reducer(on=Added)
        def add(self, event: Added) -> Named:
            return Named(self.name + "x" * event.by)

    session = bare_session()
    session.install(Named)

    with pytest.raises(SessionError, match=r"holds no value yet.*initial=Named"):
        session.dispatch(Added(1))

    assert len(session.records) == 0
    session[Named].seed(Named("a"))
    session.dispatch(Added(1))
    assert session[Named].latest() == Named("ax")


def test_sessions_do_not_share_what_they_install() -> None:
    one, other = bare_session(), bare_session()
    one.install(Total, initial=Total)

    other.dispatch(Added(1))
    one.dispatch(Added(1))

    assert one[Total].latest() == Total(1)
    assert other[Total].all() == ()


def test_a_registry_with_types_can_be_shared_by_sessions() -> None:
    registry = Registry.empty().with_types(Added, Total)

    first, second = Session(registry=registry), Session(registry=registry)
    first.install(Shelf, initial=Shelf)

    assert second.registry is registry


def test_the_tables_of_a_registry_cannot_be_changed_from_outside() -> None:
    registry = Registry.empty().with_types(Put)

    with pytest.raises(TypeError):
        registry.by_tag["mine"] = registry.by_tag["session/rolled_back"]  # type: ignore[index]  # the test
    with pytest.raises(TypeError):
        del registry.by_type[Put]  # type: ignore[attr-defined]  # the test


def test_a_filesystem_installs_its_types_in_a_session_without_files(tmp_path: Path) -> None:
    session = GenericSession(session_id="s")
    session[FileTree].all()
    fs = InMemoryFilesystem(session)
    fs.write("/a", "text")
    session.save(tmp_path / "s.json")

    assert fs.read("/a").content == "text"
    assert InMemoryFilesystem(Session.load(tmp_path / "s.json")).read("/a").content == "text"


def test_sessions_without_a_registry_share_their_schema_until_one_installs_a_slice() -> None:
    one, other = Session(), Session()
    assert one._parts()[0] is other._parts()[0]

    one.install(Total, initial=Total(3))

    for session in (other, Session()):
        with pytest.raises(UnknownType):
            session._spec_of(Total)


def test_sessions_with_the_same_registry_prepare_it_once() -> None:
    registry = Registry.with_types(Added)
    one, other = Session(registry=registry), Session(registry=registry)
    assert one._rules is other._rules
    one.install(Shelf)
    assert Shelf not in other._rules.by_type
    assert Session(registry=registry)._rules is other._rules
