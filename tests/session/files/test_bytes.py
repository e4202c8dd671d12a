"""Sessions as bytes, pickled and copied: independent of the original, and equal to it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from attrs import frozen

from weakfs import HostFilesystem, InMemoryFilesystem, Registry, Session, SessionFileError, event, reducer
from weakfs.session.files import session_file


@event("test_bytes/counted")
@frozen
class Counted:
    by: int


@event("test_bytes/total")
@frozen
class Total:
    value: int = 0

    @reducer(on=Counted)
    def add(self, event: Counted) -> Total:
        return Total(self.value + event.by)


def a_session() -> Session:
    session = Session(session_id="s", registry=Registry.with_types(Counted, Total))
    session.install(Total, initial=Total)
    InMemoryFilesystem(session).write("/a", "text")
    session.dispatch(Counted(2))
    session.snapshot("two")
    return session


def test_bytes_are_those_of_a_file(tmp_path: Path) -> None:
    session = a_session()
    session.save(tmp_path / "s.json", embed=True)

    assert session.to_bytes() == (tmp_path / "s.json").read_bytes()


def test_a_session_is_restored_from_its_bytes() -> None:
    session = a_session()
    back = Session.from_bytes(session.to_bytes(), registry=session.registry)

    assert back.to_bytes() == session.to_bytes()
    assert back[Total].latest() == Total(2)
    back.rollback("two")


@pytest.mark.parametrize("make", [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy])
def test_a_copy_is_equal_and_independent(make: object) -> None:
    session = a_session()
    before = session.to_bytes()
    again = make(session)  # type: ignore[operator]  # one of the three

    assert again.to_bytes() == before
    again.dispatch(Counted(3))
    InMemoryFilesystem(again).write("/a", "other")
    assert (again[Total].latest(), again.snapshot().snapshot_id) == (Total(5), session.snapshot().snapshot_id)
    assert session[Total].latest() == Total(2)
    assert InMemoryFilesystem(session).read("/a").content == "text"


def test_contents_of_host_snapshots_are_in_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_text("text")
    session = Session(session_id="s")
    fs = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    snapshot = fs.snapshot()
    back = Session.from_bytes(session.to_bytes())

    memory = InMemoryFilesystem(back)
    memory.restore(snapshot, foreign=True)
    assert memory.read("/a").content == "text"


def test_damaged_bytes_are_refused() -> None:
    data = a_session().to_bytes()
    with pytest.raises(SessionFileError, match=r"checksum|JSON"):
        Session.from_bytes(data.replace(b"text", b"tex7"), registry=Registry.with_types(Counted, Total))


def no_memory(data: bytes) -> object:
    raise orjson.JSONDecodeError("Not enough memory to allocate buffer for parsing", "", 0)


def test_a_document_too_large_for_the_parsers_memory_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    session = a_session()
    data = session.to_bytes()
    parser = SimpleNamespace(loads=no_memory, JSONDecodeError=orjson.JSONDecodeError, dumps=orjson.dumps)
    monkeypatch.setattr(session_file, "orjson", parser)

    assert Session.from_bytes(data, registry=session.registry).to_bytes() == data
    for damaged in (data[:-1], data.replace(b'"counter":', b'"counter":NaN,"x":'), data[:-2] + b"\xff}"):
        with pytest.raises(SessionFileError, match="this is not JSON"):
            Session.from_bytes(damaged, registry=session.registry)
