"""Streams written by earlier versions can always be read."""

from __future__ import annotations

import json
from base64 import b64decode
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session
from weakfs.storage import Checkpoint, Frame

FIXTURES = Path(__file__).parents[3] / "fixtures/streams"


pytestmark = pytest.mark.parametrize(
    ("version", "name"),
    [
        *product(["v1", "v1-compressed", "v1-lists"], ["whole", "compacted"]),
        *product(["v1-compressed", "v1-lists"], ["copied"]),
    ],
)


@pytest.fixture
def store(version: str, name: str) -> MemoryStreams:
    written = json.loads((FIXTURES / f"{version}.json").read_text())[name]
    store = MemoryStreams()
    number, document = written["checkpoint"]
    store.fill(
        name,
        [Frame(number, orjson.dumps(frame)) for number, frame in written["frames"]],
        {digest: _data(row) for digest, row in written["contents"].items()},
        Checkpoint(number, orjson.dumps(document)),
    )
    return store


def _data(row: Any) -> bytes:
    return row.encode() if isinstance(row, str) else b64decode(row["base64"])


def test_a_stream_of_an_earlier_version_is_read_completely(store: MemoryStreams, version: str, name: str) -> None:
    saved = Session.load(FIXTURES / f"{version}-{name}.session.json")
    session = Session.open(store)
    assert session.session_id == name
    assert list(session.records) == list(saved.records)
    assert session.to_bytes() == saved.to_bytes()
    for record in session.records:
        mine, theirs = InMemoryFilesystem(session.at(record.seq)), InMemoryFilesystem(saved.at(record.seq))
        assert mine.tree().digest == theirs.tree().digest
    session.rollback("first")
    assert "line seven" in InMemoryFilesystem(session).read("/lines.txt").content


def test_a_stream_of_an_earlier_version_can_be_continued(store: MemoryStreams) -> None:
    session = Session.open(store)
    InMemoryFilesystem(session).write("/new", "new")
    session.checkpoint()
    session.compact(keep=1)
    assert Session.open(store).to_bytes() == session.to_bytes()
