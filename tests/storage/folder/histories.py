"""A history of one stream in which the folder engine writes all that it can write, and the state after each step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.storage.folder.journals import STREAM, Model, digest_of
from weakfs.storage import Checkpoint, EventStore
from weakfs.storage.folder import Durability, FolderEventStore

Step = Callable[[EventStore, Model], None]
SEGMENT = 700


def open_store(folder: Path, durability: Durability) -> FolderEventStore:
    return FolderEventStore(folder, durability, segment_size=SEGMENT)


def append(number: int, size: int) -> Step:
    def step(store: EventStore, model: Model) -> None:
        frames = [b"%d.%d " % (number, part) * size for part in range(1 + number % 3)]
        contents = [b"content %d " % number * size] * (number % 2)
        if not isinstance(store, _Nowhere):
            store.append(STREAM, len(model.frames), frames, contents={digest_of(data): data for data in contents})
        model.append(frames, contents)

    return step


def checkpoint(data: bytes) -> Step:
    def step(store: EventStore, model: Model) -> None:
        made = Checkpoint(len(model.frames), data)
        if not isinstance(store, _Nowhere):
            store.put_checkpoint(STREAM, made)
        model.checkpoint = made

    return step


def trim(back: int) -> Step:
    def step(store: EventStore, model: Model) -> None:
        before, digests = len(model.frames) - back, sorted(model.contents)[::2]
        if not isinstance(store, _Nowhere):
            store.trim(STREAM, before, contents=digests)
        model.trim(before, digests)

    return step


class _Nowhere(FolderEventStore):
    """Replaces the store if only the model is needed."""


STEPS: tuple[Step, ...] = (
    *(append(number, 4) for number in range(6)),
    checkpoint(b"first" * 30),
    *(append(number, 9) for number in range(6, 12)),
    trim(5),
    append(12, 3),
    checkpoint(b"second" * 40),
    append(13, 60),
    append(14, 1),
    trim(1),
    append(15, 2),
)


def models() -> list[Model]:
    """Return the state before the first step, and after each."""
    found, model = [Model()], Model()
    nowhere = _Nowhere("/nowhere")
    for step in STEPS:
        step(nowhere, model)
        found.append(model.copy())
    return found


ALL_DIGESTS = frozenset(digest for model in models() for digest in model.contents)


def position(store: EventStore, states: list[Model]) -> list[int]:
    """Return the steps after which the store has this state. Raises `StorageError` if it cannot be read."""
    head, frames = store.head(STREAM), list(store.read(STREAM))
    contents, kept = store.get_contents(STREAM, sorted(ALL_DIGESTS)), store.get_checkpoint(STREAM)
    return [
        at
        for at, model in enumerate(states)
        if head == len(model.frames)
        and frames == model.kept()
        and contents == model.contents
        and kept == model.checkpoint
    ]


def finish(store: EventStore, at: int, states: list[Model]) -> None:
    """Do the remaining steps, and check that everything is present."""
    model = states[at].copy()
    for step in STEPS[at:]:
        step(store, model)
    assert position(store, states)[-1:] == [len(STEPS)]
