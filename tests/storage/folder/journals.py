"""Streams for the tests of the folder engine: a model of what was appended, compared with the store."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from attrs import define, field

from weakfs.storage import Checkpoint, EventStore

STREAM = "s"


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


@define
class Model:
    """What a stream must contain: the oracle of the folder engine."""

    frames: list[bytes] = field(factory=list[bytes])
    before: int = 1
    contents: dict[str, bytes] = field(factory=dict[str, bytes])
    checkpoint: Checkpoint | None = None
    # The numbers at which the stream ended, after each append.
    ends: list[int] = field(factory=lambda: [0])

    def append(self, frames: list[bytes], contents: list[bytes]) -> None:
        self.frames += frames
        self.contents |= {digest_of(data): data for data in contents}
        self.ends.append(len(self.frames))

    def trim(self, before: int, digests: list[str]) -> None:
        self.before = min(max(self.before, before), len(self.frames) + 1)
        for digest in digests:
            self.contents.pop(digest, None)

    def copy(self) -> Model:
        return Model(list(self.frames), self.before, dict(self.contents), self.checkpoint, list(self.ends))

    def kept(self) -> list[tuple[int, bytes]]:
        return [(number, data) for number, data in enumerate(self.frames, 1) if number >= self.before]


def is_as(store: EventStore, model: Model, digests: set[str], stream: str = STREAM) -> bool:
    """Return whether a store has what a model says, and none of the other digests."""
    return (
        store.head(stream) == len(model.frames)
        and list(store.read(stream)) == model.kept()
        and store.get_contents(stream, sorted(digests)) == model.contents
        and store.get_checkpoint(stream) == model.checkpoint
    )


def apply(store: EventStore, model: Model, frames: list[bytes], contents: list[bytes], stream: str = STREAM) -> None:
    """Append to a store and to its model."""
    expected = len(model.frames)
    number = store.append(stream, expected, frames, contents={digest_of(data): data for data in contents})
    model.append(frames, contents)
    assert number == len(model.frames)


def files_of(folder: Path, stream: str = STREAM) -> list[Path]:
    """Return the files of a stream with a simple name."""
    return sorted(path for path in (folder / f"{stream}.stream").iterdir() if path.is_file())


def newest_segment(folder: Path, stream: str = STREAM) -> Path:
    return [path for path in files_of(folder, stream) if path.suffix == ".journal"][-1]
