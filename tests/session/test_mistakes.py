"""Mistakes in calls of a session: each is refused at once, with what to do instead, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

from weakfs import InMemoryFilesystem, Registry, Session, event, reducer
from weakfs.history import Retention, export_git, forget, import_git, prune, run_query, timeline
from weakfs.session import append_all, replace_latest_by, upsert_by


@event("mistakes/added")
@frozen
class Added:
    text: str


@event("mistakes/plan")
@frozen
class Plan:
    texts: tuple[str, ...] = ()

    @reducer(on=Added)
    def add(self, event: Added) -> Plan:
        return Plan((*self.texts, event.text))


def untyped(given: Any) -> Any:
    """Return what is given, hidden from type checkers, which would see the mistakes."""
    return given


MISTAKES: dict[str, tuple[Callable[[Any], object], type[Exception], str]] = {
    "a number as the clock": (
        lambda s: untyped(Session)(clock=5),
        TypeError,
        "clock is 5; pass a function that returns integer nanoseconds, such as time.time_ns",
    ),
    "text as the source of ids": (
        lambda s: untyped(Session)(new_id="main"),
        TypeError,
        "new_id is 'main'; pass a function that returns a new id as text",
    ),
    "a class as an event": (
        lambda s: s.dispatch(Added),
        TypeError,
        "cannot dispatch the class Added: an event is an object; dispatch Added(...)",
    ),
    "a dictionary as an event": (
        lambda s: s.dispatch({"type": "added"}),
        TypeError,
        "cannot dispatch {'type': 'added'}: it is a dict; pass an object of a class that is decorated with ",
    ),
    "the id of a call as the number of operations": (
        lambda s: s.undo("c1"),
        TypeError,
        "n is 'c1'; pass a number of operations, or use revert to undo one call",
    ),
    "nothing to revert": (
        lambda s: s.revert(None),
        TypeError,
        "cannot revert None; pass the id of a call, a record, its number, or a range of numbers",
    ),
    "text as the number of records to keep": (
        lambda s: s.compact(keep="all"),
        ValueError,
        "cannot keep 'all' records; pass a number of at least 0",
    ),
    "a number as the name of a fork": (lambda s: s.fork(5), TypeError, "name is 5; pass text"),
    "the name of a fork to merge": (
        lambda s: s.merge("f1"),
        TypeError,
        "cannot merge 'f1': it is a str; pass a fork of this session",
    ),
    "a tag to subscribe to": (
        lambda s: s.subscribe("mistakes/added", print),
        TypeError,
        "cannot subscribe to 'mistakes/added': it is a str; pass the class of the events",
    ),
    "no handler": (
        lambda s: s.subscribe(Added, None),
        TypeError,
        "handler is None; pass a function that takes a record",
    ),
    "a number to attach": (lambda s: s.attach(5), TypeError, "cannot attach 5: it is not an external filesystem"),
    "files in the session to attach": (
        lambda s: s.attach(InMemoryFilesystem(s)),
        TypeError,
        "it is not an external filesystem, such as a HostFilesystem; files in a session need not be attached",
    ),
    "text as a saved session": (
        lambda s: untyped(Session).from_bytes("{}"),
        TypeError,
        "data is a str; pass the bytes that to_bytes returned, or load a file with load",
    ),
    "an initial value of another type": (
        lambda s: s.install(Plan, initial={}),
        TypeError,
        "cannot install 'mistakes/plan': its initial value is {}, a dict; pass a Plan, or a function that returns one",
    ),
    "a function that returns another type": (
        lambda s: s.install(Plan, initial=dict),
        TypeError,
        "cannot install 'mistakes/plan': its initial value is {}, a dict; pass a Plan",
    ),
    "text as a merge function": (
        lambda s: s.install(Plan, merge="ours"),
        TypeError,
        "cannot install 'mistakes/plan': merge is 'ours'; pass a function (base, ours, theirs)",
    ),
    "a reducer before its event": (
        lambda s: s[Added].register(append_all, Added),
        TypeError,
        "cannot register a reducer of a WholeSlice; pass the class of the event, then the reducer",
    ),
    "text as a reducer": (
        lambda s: s[Added].register(Added, "append"),
        TypeError,
        "cannot register 'append' as a reducer; pass a function (value, event)",
    ),
    "a list of types": (
        lambda s: untyped(Registry).with_types([Added]),
        TypeError,
        "it is a list; pass classes, with_types(*types)",
    ),
    "a field as a key": (
        lambda s: untyped(upsert_by)("text"),
        TypeError,
        "key is 'text'; pass a function of the value, such as lambda value: value.name",
    ),
    "a field as a key of the latest": (
        lambda s: untyped(replace_latest_by)("text"),
        TypeError,
        "key is 'text'; pass a function of the value",
    ),
    "a decorator without a tag": (
        lambda s: untyped(event)(Added),
        TypeError,
        "as a tag; pass text, as in @event('shop/task_added')",
    ),
    "an empty tag": (lambda s: untyped(event)(""), TypeError, "cannot use '' as a tag; pass text"),
    "a tag as the event of a reducer": (
        lambda s: untyped(reducer)(on="mistakes/added"),
        TypeError,
        "cannot reduce 'mistakes/added': it is a str; pass the class of the event",
    ),
    "a file to export": (
        lambda s: untyped(export_git)("session.json", "repository"),
        TypeError,
        "session is a str; pass a Session, such as Session.load(path)",
    ),
    "a session to import": (
        lambda s: untyped(import_git)(s, "repository"),
        TypeError,
        "session is a str; pass a Session",
    ),
    "the timeline of a file": (
        lambda s: untyped(timeline)("session.json"),
        TypeError,
        "session is a str; pass a Session",
    ),
    "a query of a file": (
        lambda s: untyped(run_query)("session.json", "SELECT 1"),
        TypeError,
        "session is a str; pass a Session",
    ),
    "a number of records in place of the limits": (
        lambda s: untyped(prune)(s, 100),
        TypeError,
        "retention is an int; pass a Retention, such as Retention(max_records=1000)",
    ),
    "a file to prune": (
        lambda s: untyped(prune)("session.json", Retention(max_records=1)),
        TypeError,
        "cannot prune a str; pass a Session, a HostFilesystem or a Store",
    ),
    "a number as the age": (
        lambda s: untyped(Retention)(max_age=30),
        TypeError,
        "max_age is 30; pass a datetime.timedelta, such as timedelta(days=30)",
    ),
    "a size as text": (
        lambda s: untyped(Retention)(max_bytes="10G"),
        TypeError,
        "max_bytes is '10G'; pass a whole number, or None for no limit",
    ),
    "a file to forget in": (
        lambda s: untyped(forget)("session.json", text="secret"),
        TypeError,
        "session is a str; pass a Session",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_says_what_to_do_and_changes_nothing(mistake: str) -> None:
    make, kind, message = MISTAKES[mistake]
    session = Session(session_id="s")
    with pytest.raises(kind) as caught:
        make(session)
    assert message in str(caught.value)
    assert type(caught.value) is kind
    assert session.seq == 0
    # It still works.
    session.install(Plan, initial=Plan)
    session.dispatch(Added("one"))
    assert session[Plan].latest() == Plan(("one",))


@event("mistakes/note")
@frozen
class Note:
    held: Any = None


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


def dispatched_to_a_reducer_of(session: Session, value: Any) -> None:
    session[Note].register(Added, untyped(lambda held, event: value))
    session.dispatch(Added("one"))


MANY = 100_000
UNSHOWABLE: dict[str, tuple[Callable[[Session, Any], object], Any]] = {
    "another type seeded": (lambda s, value: s[Note].seed(value), nested(MANY)),
    "another type appended": (lambda s, value: s[Note].append(value), Unprintable()),
    "a nested value seeded": (lambda s, value: s[Note].seed(Note(value)), nested(MANY)),
    "a value without a repr appended": (lambda s, value: s[Note].append(Note(value)), Unprintable()),
    "a value without a repr as a key": (lambda s, value: s.dispatch(Note({value: object()})), Unprintable()),
    "a nested event": (lambda s, value: s.dispatch(value), nested(MANY)),
    "an event with a value without a repr": (lambda s, value: s.dispatch(Note(value)), Unprintable()),
    "another type from a reducer": (dispatched_to_a_reducer_of, (Note(nested(MANY)),)),
    "a value without a repr from a reducer": (dispatched_to_a_reducer_of, Note(Unprintable())),
    "an initial value of another type": (lambda s, value: s.install(Plan, initial=value), nested(MANY)),
    "text of another type": (lambda s, value: s.dispatch(untyped(Added)(value)), nested(MANY)),
}


@pytest.mark.parametrize("way", UNSHOWABLE)
def test_a_value_that_cannot_be_shown_is_refused_like_any_other(way: str) -> None:
    enter, value = UNSHOWABLE[way]
    session = Session(session_id="s", registry=Registry.standard().with_types(Note, Added, Plan))
    session.install(Note)

    with pytest.raises(TypeError):
        enter(session, value)
    assert session.seq == 0
    session[Note].append(Note("kept"))
    assert session[Note].latest() == Note("kept")
