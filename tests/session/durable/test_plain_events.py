"""Frames hold plain events as lists of values, with the names of their fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Registry, Session, Toolset
from weakfs.class_decorators import frozen
from weakfs.session import SessionFileError, event
from weakfs.tools.slices import ToolCalls


@event("story/noted")
@frozen
class Noted:
    text: str
    tags: tuple[str, ...] = ()
    data: bytes = b""


REGISTRY = Registry.with_types(Noted)


def stored(*frames: dict[str, Any]) -> MemoryStreams:
    """Return a stream of these frames."""
    store, after = MemoryStreams(), 0
    for number, frame in enumerate(frames):
        whole = {"id": f"a-{number}", "after": after, "counter": 0, **frame}
        store.append("s", number, [orjson.dumps(whole)])
        after += len(frame["rows"])
    return store


def events_of(store: MemoryStreams) -> list[object]:
    return [record.event for record in Session.open(store, registry=REGISTRY).records]


def frame(fields: str, *values: object) -> dict[str, Any]:
    return {"fields": {"story/noted": fields}, "rows": [[1, None, "story/noted", list(values)]]}


def test_fields_are_read_by_their_names() -> None:
    store = stored(
        frame("text,tags,data", "first", ["a"], {"text": "one"}),
        frame("data,text", {"base64": "/w=="}, "second"),
        frame("text", "third"),
        frame("text", "fourth"),
    )
    assert events_of(store) == [
        Noted("first", ("a",), b"one"),
        Noted("second", (), b"\xff"),
        Noted("third"),
        Noted("fourth"),
    ]


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        ("text", [5]),
        ("text", []),
        ("text,unknown", ["a", "b"]),
        ("tags", [["a"]]),
        ("text,data", ["a", {"content": "0" * 64}]),
        ("text,data", ["a", {"text": "b", "base64": "Yg=="}]),
        ("text,data", ["a", "b"]),
        ("text,tags", ["a", [{"text": "b"}]]),
    ],
)
def test_a_malformed_event_is_reported_with_its_place(fields: str, values: list[object]) -> None:
    with pytest.raises(SessionFileError, match="frame"):
        events_of(stored(frame("text", "whole"), frame(fields, *values)))


@pytest.mark.parametrize(
    "row", [[1, None, "story/noted"], ["1", None, "story/noted", ["a"]], [1, 2, "story/noted", ["a"]]]
)
def test_a_malformed_row_is_reported_with_its_place(row: list[object]) -> None:
    with pytest.raises(SessionFileError, match="frame"):
        events_of(stored({"fields": {"story/noted": "text"}, "rows": [row]}))


def test_plain_events_and_others_are_read_from_one_frame() -> None:
    store = MemoryStreams()
    with Session.open(store, "s", registry=REGISTRY) as session:
        with pytest.raises(RuntimeError), session.transaction():
            session.dispatch(Noted("kept", ("a", "b"), b"\xff" * 600))
            raise RuntimeError
        expected = list(session.records)
    frames = [orjson.loads(one.data) for one in store.read("s")]
    assert {type(row[3]) for row in frames[0]["rows"]} == {list, dict}
    assert list(Session.open(store, registry=REGISTRY).records) == expected


def test_opening_reads_no_contents_of_files_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStreams()
    with Session.open(store, "s") as session:
        files, tools = InMemoryFilesystem(session), Toolset(session)
        for number in range(100):
            text = f"value {number}\n" * 200
            assert tools.call("write_file", {"path": f"{number}", "content": text}).success
            edit = {"path": f"{number}", "old_string": text, "new_string": f"{text}value\n"}
            assert tools.call("edit_file", edit).success
            files.write(f"/beside/{number}", text)
        expected, calls = session.to_bytes(), session[ToolCalls].all()
    read = store.get_contents
    reads: list[int] = []

    def counted(stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        found = read(stream, digests)
        reads.append(len(found))
        return found

    monkeypatch.setattr(store, "get_contents", counted)
    again = Session.open(store, "s")
    assert not sum(reads)
    assert again[ToolCalls].all() == calls
    # All of their contents together.
    assert len(reads) == 1
    assert InMemoryFilesystem(again).read("/7").content.endswith("value\n")
    assert again.to_bytes() == expected
