"""Values of LOG slices that are the events of records: a session file holds each once."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from weakfs import Registry, Session, SessionFileError
from weakfs.session import append_all
from weakfs.session.slices.slice import Declaration


@frozen
class Made:
    """Something was made: the event is the slice's value."""

    name: str
    amount: float = 0.0
    parts: tuple[object, ...] = ()
    content: bytes = b""


@frozen
class Other:
    """An event of another type."""

    name: str


REGISTRY = Registry().with_types(Made, Other).with_slices(Declaration(Made, kind="log", reducers={Made: append_all}))


def new_session() -> Session:
    return Session(session_id="s", registry=REGISTRY, clock=lambda: 1)


def document(data: bytes) -> dict[str, Any]:
    parsed: dict[str, Any] = orjson.loads(data)
    return parsed


def rows(session: Session) -> list[dict[str, Any]]:
    return [row for row in document(session.to_bytes())["slices"] if row["tag"] == "Made"]


def load(data: bytes) -> Session:
    return Session.from_bytes(data, registry=REGISTRY)


def assert_comes_back(session: Session) -> None:
    data = session.to_bytes()
    loaded = load(data)
    assert list(map(repr, loaded[Made].all())) == list(map(repr, session[Made].all()))
    assert list(map(repr, loaded.records)) == list(map(repr, session.records))
    assert loaded.to_bytes() == data


def changed(data: bytes, change: Callable[[list[dict[str, Any]]], None]) -> bytes:
    """Change the rows of the slice, and make the checksum fit."""
    parsed = document(data)
    change([row for row in parsed["slices"] if row["tag"] == "Made"])
    head = {key: parsed.pop(key) for key in ("format", "version", "sha256")}
    head["sha256"] = sha256(orjson.dumps(parsed)[1:]).hexdigest()
    return orjson.dumps({**head, **parsed})


def test_a_value_that_is_the_event_of_a_record_is_written_as_its_number() -> None:
    session = new_session()
    for number in range(40):
        session.dispatch(Other("between"))
        session.dispatch(Made(f"m {number}", -0.0, (1, ("x", b"y")), b"z" * number))

    [row] = rows(session)
    assert row["items"] == []
    assert row["records"] == list(range(2, 82, 2))
    assert_comes_back(session)


def test_values_without_a_record_are_written_out() -> None:
    session = new_session()
    for number in range(6):
        session.dispatch(Made(f"m {number}"))
    session.compact(keep=2)

    [row] = rows(session)[-1:]
    values = {**row, "items": [item["name"] for item in row["items"]]}
    before = [item["name"] for one in rows(session)[:-1] for item in one["items"]]
    assert before + values["items"] == [f"m {number}" for number in range(4)]
    assert row["records"] == [5, 6]
    assert_comes_back(session)


def test_a_value_after_recorded_ones_begins_a_row() -> None:
    session = new_session()
    session.dispatch(Made("first"))
    session[Made].append(Made("by hand"))
    session.dispatch(Made("second"))
    assert_comes_back(session)


def test_values_that_are_equal_but_not_the_same_are_written_out() -> None:
    session = new_session()
    session.dispatch(Made("m", 0.0, (True,)))
    session[Made].seed(Made("m", -0.0, (1,)))

    [row] = rows(session)
    assert len(row["items"]) == 1
    assert_comes_back(session)


@pytest.mark.parametrize("number", [0, 2, 4, -1, True, "1", None, [1], 1.0])
def test_a_number_of_an_unsuitable_record_is_refused(number: object) -> None:
    session = new_session()
    session.dispatch(Made("m"))
    session.dispatch(Other("o"))
    session.dispatch(Made("n"))

    def lie(found: list[dict[str, Any]]) -> None:
        found[0]["records"][1] = number

    with pytest.raises(SessionFileError, match=r"^\$\.slices\[0\]\.records\[1\]: "):
        load(changed(session.to_bytes(), lie))


def test_many_references_to_one_record_count_against_the_limit_of_expansion() -> None:
    session = new_session()
    session.dispatch(Made("m"))

    def repeat(found: list[dict[str, Any]]) -> None:
        found[0]["records"] = [1] * 2_000_000

    with pytest.raises(SessionFileError, match="max_expansion"):
        load(changed(session.to_bytes(), repeat))


STEPS = st.lists(
    st.one_of(
        st.builds(Made, st.sampled_from("ab"), st.sampled_from([0.0, -0.0]), st.sampled_from([(), (1,), (True,)])),
        st.builds(Other, st.sampled_from("ab")),
        st.sampled_from(["append", "seed", "clear", "compact", "fork", "merge", "rollback", "fail", "snapshot"]),
    ),
    max_size=25,
)


@given(STEPS)
def test_any_history_is_loaded_unchanged(steps: list[Made | Other | str]) -> None:
    session = new_session()
    fork: Session | None = None
    for step in steps:
        if isinstance(step, Made | Other):
            (fork or session).dispatch(step)
        elif step == "append":
            session[Made].append(Made("appended"))
        elif step == "seed":
            session[Made].seed(Made("a"))
        elif step == "clear":
            session[Made].clear()
        elif step == "compact" and fork is None:
            session.compact(keep=2)
        elif step == "fork" and fork is None:
            fork = session.fork()
        elif step == "merge" and fork is not None:
            session.merge(fork)
            fork = None
        elif step == "rollback" and fork is None and session.seq:
            session.rollback(session.seq)
        elif step == "snapshot":
            session.snapshot()
        elif step == "fail":
            with pytest.raises(KeyError), session.transaction():
                session.dispatch(Made("failed"))
                raise KeyError
    assert_comes_back(session)


def test_a_file_of_the_second_version_holds_them_as_values(tmp_path: Path) -> None:
    session = new_session()
    session.dispatch(Made("m"))
    session.dispatch(Made("n"))

    def write_out(found: list[dict[str, Any]]) -> None:
        [row] = found
        del row["records"]
        row["items"] = [{"name": name, "amount": 0.0, "parts": [], "content": {"blob": 0}} for name in "mn"]

    old = changed(session.to_bytes(), write_out).replace(b'"version":3', b'"version":2')
    assert load(old)[Made].all() == session[Made].all()
    assert load(old).to_bytes() == session.to_bytes()
