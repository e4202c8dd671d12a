"""The recorder tests of the library eventsourcing pass with a recorder that stores its events in an event stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from weakfs.storage import EventStore, Frame, StreamConflict, open_event_store

pytest.importorskip("eventsourcing")

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    StoredEvent,
    Subscription,
)
from eventsourcing.tests.persistence import AggregateRecorderTestCase, ApplicationRecorderTestCase


def encode(event: StoredEvent) -> bytes:
    id_ = event.originator_id
    fields = [isinstance(id_, UUID), str(id_), event.originator_version, event.topic, event.state.hex()]
    return orjson.dumps(fields)


def decode(frame: Frame) -> Notification:
    is_uuid, id_, version, topic, state = orjson.loads(frame.data)
    return Notification(UUID(id_) if is_uuid else id_, version, topic, bytes.fromhex(state), id=frame.number)


class StreamRecorder(ApplicationRecorder):
    """All events in one stream, in which the number of a frame is the id of its notification."""

    def __init__(self, store: EventStore) -> None:
        super().__init__()
        self._store, self._lock = store, threading.Lock()
        # The positions of each originator's versions, as far as the stream has been read.
        self._numbers: dict[UUID | str, dict[int, int]] = {}
        self._read = 0

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        names = {(event.originator_id, event.originator_version) for event in stored_events}
        with self._lock:
            while stored_events:
                self._follow()
                is_there = any(version in self._numbers.get(id_, ()) for id_, version in names)
                if is_there or len(names) < len(stored_events):
                    raise IntegrityError
                try:
                    last = self._store.append("events", self._read, [encode(event) for event in stored_events])
                except StreamConflict:
                    continue
                return list(range(last - len(stored_events) + 1, last + 1))
        return []

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        with self._lock:
            self._follow()
            found = sorted(self._numbers.get(originator_id, {}).items(), reverse=desc)
        wanted = [at for version, at in found if (gt is None or version > gt) and (lte is None or version <= lte)]
        frames = (next(self._store.read("events", after=at - 1, limit=1)) for at in wanted[:limit])
        return [StoredEvent(e.originator_id, e.originator_version, e.topic, e.state) for e in map(decode, frames)]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        frames = self._store.read("events", after=(start or 0) - (start is not None and inclusive_of_start))
        events = (decode(frame) for frame in frames if stop is None or frame.number <= stop)
        return list(islice((event for event in events if not topics or event.topic in topics), limit))

    def max_notification_id(self) -> int | None:
        return self._store.head("events") or None

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[ApplicationRecorder]:
        return StreamSubscription(self, gt, topics)

    def _follow(self) -> None:
        for event in map(decode, self._store.read("events", after=self._read)):
            self._numbers.setdefault(event.originator_id, {})[event.originator_version] = event.id
            self._read = event.id


class StreamSubscription(Subscription[StreamRecorder]):
    """Waits for what is appended to the stream."""

    def __next__(self) -> Notification:
        while not self._has_been_stopped:
            last = self._last_notification_id or 0
            self._recorder._store.wait("events", last, 0.1)
            for event in self._recorder.select_notifications(last, 1, topics=self._topics, inclusive_of_start=False):
                self._last_notification_id = event.id
                return event
        raise StopIteration


class AggregateStreamRecorder(StreamRecorder):
    """The same without notifications."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        super().insert_events(stored_events)
        return None


@pytest.fixture(params=["memory:", pytest.param("sqlite:PATH/a.db", marks=pytest.mark.exhaustive)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    store = open_event_store(request.param.replace("PATH", str(tmp_path)))
    yield store
    store.close()


class TestAggregateRecorder:
    @pytest.mark.parametrize("name", ["test_insert_and_select", "test_performance"])
    def test_it_passes(self, store: EventStore, name: str) -> None:
        class Case(AggregateRecorderTestCase):
            def create_recorder(self) -> StreamRecorder:
                return AggregateStreamRecorder(store)

        getattr(Case(name), name)()


class TestApplicationRecorder:
    @pytest.mark.parametrize(
        "name",
        [
            "test_insert_select",
            "test_performance",
            "test_concurrent_no_conflicts",
            "test_concurrent_throughput",
            "optional_test_insert_subscribe",
        ],
    )
    def test_it_passes(self, store: EventStore, name: str) -> None:
        class Case(ApplicationRecorderTestCase[StreamRecorder]):
            def create_recorder(self) -> StreamRecorder:
                return StreamRecorder(store)

        getattr(Case(name), name)()
