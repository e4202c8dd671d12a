"""What the cases of event stores share: two objects for one store, and the frames of a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import pytest

from weakfs.storage import EventStore


class EventStoreCases(ABC):
    """A part of the suite; `EventStoreConformance` has all of them."""

    # The location of the running test's store, at which another process can open it.
    location: str | None = None

    @abstractmethod
    def open_event_store(self) -> EventStore:
        """Open the store of the running test, which is empty when the test begins.

        When called again in the same test, it must open the same store: what one object appends, the other one reads.
        """

    @pytest.fixture
    def store(self) -> Iterator[EventStore]:
        store = self.open_event_store()
        yield store
        store.close()

    @pytest.fixture
    def other(self, store: EventStore) -> Iterator[EventStore]:
        """A second object for the same store, as another process would open it."""
        other = self.open_event_store()
        yield other
        other.close()


def data_of(store: EventStore, stream: str = "s") -> list[bytes]:
    """Return the frames of a stream."""
    return [frame.data for frame in store.read(stream)]
