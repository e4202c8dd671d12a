"""A compaction whose storage fails at some operation: complete or absent, and the session continues either way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session
from weakfs.storage import StorageError

OPERATIONS = ("put_contents", "append", "put_checkpoint", "get_checkpoint", "get_contents", "read", "trim")


class FailingStreams(MemoryStreams):
    """Streams on which an operation fails from its `left`-th use on, until `left` is reset."""

    def __init__(self) -> None:
        super().__init__()
        self.operation, self.left = "", 0

    def __getattribute__(self, name: str) -> object:
        value = super().__getattribute__(name)
        if name not in OPERATIONS or name != super().__getattribute__("operation"):
            return value
        operation: Callable[..., object] = value

        def failing(*args: object, **options: object) -> object:
            self.left -= 1
            if self.left < 1:
                raise StorageError(f"told to fail at {name}")
            return operation(*args, **options)

        return failing


def fill(session: Session) -> None:
    files = InMemoryFilesystem(session)
    for number in range(4):
        files.write(f"/{number}", "x" * 600 + str(number))
        with pytest.raises(ZeroDivisionError), session.transaction():
            files.write(f"/{number}", "lost")
            raise ZeroDivisionError
        session.snapshot(f"kept {number}")


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_session_continues_after_a_failed_compaction(operation: str, turn: int) -> None:
    store = FailingStreams()
    session = Session.open(store, "s")
    fill(session)
    session.checkpoint()
    fill(session)
    before = list(session.records)
    store.operation, store.left = operation, turn
    try:
        session.compact(keep=5)
    except StorageError:
        assert list(session.records) == before
    else:
        assert len(list(session.records)) == 5
    store.operation = ""
    assert list(session.records) == before[-len(list(session.records)) :]

    for _ in range(2):
        InMemoryFilesystem(session).write("/more", "1")
        session.checkpoint()
        records = list(session.records)
        with Session.open(store, "s") as other:
            assert other.to_bytes() == session.to_bytes()
        session.compact(keep=4)
        assert [record.seq for record in session.records] == [record.seq for record in records[-4:]]
        with Session.open(store, "s") as other:
            assert other.to_bytes() == session.to_bytes()
        fill(session)


@pytest.mark.parametrize("damage", [lambda data: data.replace(b'"', b"'", 1), lambda data: b" " + data])
def test_a_compaction_deletes_nothing_because_of_a_damaged_document(damage: Callable[[bytes], bytes]) -> None:
    """The documents of old states say which contents are needed; one that is damaged may name others."""
    store = MemoryStreams()
    session = Session.open(store, "s")
    fill(session)
    session.checkpoint()
    fill(session)
    contents = store._streams["s"].contents
    documents = {digest: data for digest, data in contents.items() if data.startswith(b"{")}
    assert documents
    contents |= {digest: damage(data) for digest, data in documents.items()}
    kept = set(contents)

    session.compact(keep=5)

    assert contents.keys() >= kept
    contents |= documents
    InMemoryFilesystem(session).write("/more", "1")
    again = Session.open(store, "s")
    assert again.to_bytes() == session.to_bytes()
    for snapshot in again.snapshots:
        again.rollback(snapshot)
        InMemoryFilesystem(again).export_bytes()
