"""Random histories: a durable session reopened at any moment equals the same history in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from random import Random

import pytest

from tests.sampling import sample
from tests.session.durable.streams import MemoryStreams, failing_once
from weakfs import InMemoryFilesystem, Session, SessionError, Toolset
from weakfs.reducers import FileTree
from weakfs.session.durable.checkpoints import checkpoint_document, checkpoints
from weakfs.storage import StorageError
from weakfs.tools import ToolCalls

NAMES = ["a", "b", "c/d", "c/e", "f/g/h"]


class World:
    """One session, and what can happen to it."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def files(self) -> InMemoryFilesystem:
        return InMemoryFilesystem(self.session)

    def write(self, dice: Random) -> None:
        self.files.write(f"/{dice.choice(NAMES)}", dice.choice("xyz") * dice.choice([1, 20, 700, 3000]))

    def append(self, dice: Random) -> None:
        self.files.append(f"/{dice.choice(NAMES)}", dice.choice("xyz\n") * dice.choice([1, 600]))

    def delete(self, dice: Random) -> None:
        self.files.delete(f"/{dice.choice(NAMES)}")

    def move(self, dice: Random) -> None:
        self.files.move(f"/{dice.choice(NAMES)}", f"/{dice.choice(NAMES)}")

    def chmod(self, dice: Random) -> None:
        self.files.chmod(f"/{dice.choice(NAMES)}", dice.choice([0o600, 0o755]))

    def call(self, dice: Random) -> None:
        tools = Toolset(self.session)
        path = dice.choice(NAMES)
        tools.call("write_file", {"path": path, "content": f"one {dice.random()}\ntwo\n" * dice.choice([1, 200])})
        tools.call("edit_file", {"path": path, "old_string": dice.choice(["one", "two", "three"]), "new_string": "new"})

    def snapshot(self, dice: Random) -> None:
        self.session.snapshot(dice.choice([None, "tag", "other"]))

    def drop(self, dice: Random) -> None:
        self.session.drop_snapshot(dice.choice(["tag", "other"]))

    def rollback(self, dice: Random) -> None:
        targets: list[object] = [snapshot.snapshot_id for snapshot in self.session.snapshots]
        first = self.session.seq - len(self.session.records)
        targets += [dice.randint(first, self.session.seq)]
        self.session.rollback(dice.choice(targets))  # type: ignore[call-overload]  # ids and numbers

    def transaction(self, dice: Random) -> None:
        with suppress(ZeroDivisionError), self.session.transaction(cause="t"):
            self.several(dice, 2)
            with suppress(ZeroDivisionError), self.session.transaction():
                self.several(dice, 2)
                if dice.random() < 0.3:
                    raise ZeroDivisionError
            if dice.random() < 0.3:
                raise ZeroDivisionError

    def fork(self, dice: Random) -> None:
        other = self.session.fork(dice.choice([None, "fork"]))
        World(other).several(dice, 3)
        self.several(dice, 1)
        with suppress(SessionError):
            self.session.merge(other)

    def compact(self, dice: Random) -> None:
        self.session.compact(keep=dice.choice([0, 3, 100]), keep_calls=dice.choice([None, 2]))

    def several(self, dice: Random, most: int) -> None:
        for _ in range(dice.randint(0, most)):
            step = dice.choice([World.write, World.append, World.delete, World.snapshot, World.rollback, World.chmod])
            self.do(step, dice)

    def do(self, step: Callable[[World, Random], None], dice: Random) -> None:
        with suppress(OSError, ValueError, SessionError):
            step(self, dice)


STEPS = [
    *(World.write, World.write, World.append, World.delete, World.move, World.chmod, World.call, World.snapshot),
    *(World.drop, World.rollback, World.transaction, World.transaction, World.fork, World.compact),
]


def portrait(session: Session) -> object:
    """Return what a session file holds, apart from how appended blobs are stored."""
    document = json.loads(session.to_bytes())
    del document["sha256"], document["counter"]
    if document["base"] is not None:
        # Whether a merged fork ended with the last dropped record makes no difference.
        document["base"]["block_end"] = max(document["base"]["block_end"], document["dropped"])
    blobs: list[str] = []
    for blob in document["blobs"]:
        blobs.append(blobs[blob["parent"]] + blob["tail"] if isinstance(blob, dict) else blob)
    document["blobs"] = blobs
    return document


def past(session: Session, seq: int) -> object:
    """Return the files and the calls at a record."""
    view = session.at(seq)
    files = view[FileTree].latest()
    return (None if files is None else files.fingerprint), view[ToolCalls].all()


def ticking() -> Callable[[], int]:
    numbers = count(1)
    return lambda: next(numbers)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("seed", sample(range(200)))
def test_a_reopened_session_equals_one_in_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = Random(seed)
    monkeypatch.setattr(checkpoints, "LEAST", dice.choice([0, 3000, 1 << 20]))
    for name in ("GAP", "MARK_FACTOR"):
        monkeypatch.setattr(checkpoint_document, name, 0)
    store = MemoryStreams()
    clock = ticking()
    in_memory = World(Session(session_id="s", clock=ticking()))
    durable = World(Session.open(store, "s", clock=clock))
    for world in (in_memory, durable):
        Toolset(world.session)
    for number in range(25):
        step = dice.choice(STEPS)
        own = dice.random()
        in_memory.do(step, Random(own))
        durable.do(step, Random(own))
        expected = portrait(in_memory.session)
        assert portrait(durable.session) == expected, (number, step)
        if dice.random() < 0.4:
            durable.session.flush()
            durable = World(Session.open(store, "s", clock=clock))
            assert portrait(durable.session) == expected, (number, step)
            # Ids that only a failed transaction used may be used again.
            durable.session._count_like(in_memory.session)
        else:
            assert portrait(Session.open(store, "s")) == expected, (number, step)
        for one in sorted({dice.randint(durable.session.seq - len(durable.session.records), durable.session.seq)}):
            assert past(durable.session, one) == past(in_memory.session, one), (number, step, one)


@pytest.mark.parametrize("seed", sample(range(100)))
def test_an_append_that_fails_changes_neither_memory_nor_storage(seed: int) -> None:
    dice = Random(seed)
    store = MemoryStreams()
    durable = World(Session.open(store, "s", clock=ticking()))
    for _ in range(15):
        step = dice.choice(STEPS)
        if dice.random() < 0.3:
            store.fault = failing_once("before")
            with suppress(StorageError):
                durable.do(step, dice)
        else:
            durable.do(step, dice)
        store.fault = lambda moment: None
        assert portrait(Session.open(store, "s")) == portrait(durable.session)
