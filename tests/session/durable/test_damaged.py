"""Malformed checkpoints are refused, whatever sizes they claim, before memory is allocated."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session import SessionFileError
from weakfs.session.errors import RecordsDropped
from weakfs.storage import Checkpoint
from weakfs.tools import ToolCall

Document = dict[str, Any]


@pytest.fixture
def store() -> MemoryStreams:
    """A stream whose checkpoint refers to calls from before a compaction."""
    store = MemoryStreams()
    with Session.open(store, "s") as session:
        tools = Toolset(session, InMemoryFilesystem(session))
        for number in range(30):
            tools.call("write_file", {"path": f"/{number}", "content": f"text {number}\n"})
        session.compact(keep=5)
    return store


def damage(store: MemoryStreams, change: Callable[[Document], object]) -> None:
    found = store.get_checkpoint("s")
    assert found is not None
    document = orjson.loads(found.data)
    change(document)
    store.put_checkpoint("s", Checkpoint(found.number, orjson.dumps(document)))


def claim(field: str, number: int) -> Callable[[Document], object]:
    def change(document: Document) -> None:
        if field == "seq":
            document["seq"] = number
        for tag in document["events"]:
            if field == "events":
                document["events"][tag][2] = number
            elif field == "heads":
                document["heads"][tag] = [[number, "00" * 32]]

    return change


@pytest.mark.parametrize("number", [10**9, 10**15])
@pytest.mark.parametrize("field", ["seq", "events"])
def test_a_claimed_history_that_does_not_exist_takes_no_memory(store: MemoryStreams, field: str, number: int) -> None:
    damage(store, claim(field, number))
    tracemalloc.start()
    try:
        with Session.open(store, "s") as session:
            assert session.seq == number or field == "events"
            assert InMemoryFilesystem(session).read("/3").content == "text 3\n"
            with pytest.raises(RecordsDropped):
                session.records[-1] if field == "seq" else session[ToolCall].latest()
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def replaced(**fields: object) -> Callable[[Document], object]:
    return lambda document: document.update(fields)


DAMAGE: dict[str, Callable[[Document], object]] = {
    "index": replaced(index={}),
    "counts": lambda document: document["index"].update(counts=5),
    "states": replaced(states=[[1]]),
    "marks": replaced(marks=[[1, 2]]),
    "externals": replaced(externals=[5]),
    "events": lambda document: document.update(events={tag: [1] for tag in document["events"]}),
    "lengths": lambda document: document["base"].update(lengths={"nothing": 5}),
    "heads": claim("heads", 10**15),
    "negative heads": claim("heads", -1),
}


@pytest.mark.parametrize("change", DAMAGE)
def test_a_malformed_checkpoint_is_named(store: MemoryStreams, change: str) -> None:
    damage(store, DAMAGE[change])
    with pytest.raises(SessionFileError) as caught:
        Session.open(store, "s")
    assert "checkpoint" in str(caught.value) or "$.heads" in str(caught.value)


FIELDS: list[dict[str, object]] = [
    {"counter": "1"},
    {"after": "1"},
    {"dropped": 10**15},
    {"externals": 5},
    {"slices": [1]},
    {"snapshots": 1},
    {"blobs": 1},
]


@pytest.mark.parametrize("fields", FIELDS)
def test_a_malformed_frame_is_named(store: MemoryStreams, fields: dict[str, object]) -> None:
    with Session.open(store, "s") as session:
        head, seq = store.head("s"), session.seq
    frame = {"id": "x", "after": seq, "counter": 1, "rows": [], **fields}
    store.append("s", head, [orjson.dumps(frame)])
    with pytest.raises(SessionFileError, match=f"frame {head + 1}"):
        Session.open(store, "s")
