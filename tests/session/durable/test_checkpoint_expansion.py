"""What a checkpoint stores by reference is counted before memory is allocated for it, as in a session file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from tests.faults.test_load_expansion import directories_of_a_wide_base, directories_of_one_base
from tests.faults.watchdog import watched
from tests.models.cost import peak_memory
from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session, SessionFileError
from weakfs.session.blobs.blob import digest_of
from weakfs.storage import Checkpoint

Document = dict[str, Any]
REFUSAL = r"^\$\.trees\[\d+\]: .*expand the checkpoint"


@pytest.fixture(autouse=True)
def no_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weakfs.session.codec.expansion_limit.LEAST", 0)


@pytest.fixture
def store() -> MemoryStreams:
    """A stream with a checkpoint, and a record from before it that holds a state."""
    store = MemoryStreams()
    with Session.open(store, "s") as session:
        fs = InMemoryFilesystem(session)
        fs.write("/f", "text")
        session.snapshot("start")
        fs.write("/f", "other")
        session.rollback("start")
        session.checkpoint()
    return store


def change(store: MemoryStreams, edit: Callable[[Document], object]) -> None:
    """Change the checkpoint of a stream."""
    found = store.get_checkpoint("s")
    assert found is not None
    document = orjson.loads(found.data)
    edit(document)
    store.put_checkpoint("s", Checkpoint(found.number, orjson.dumps(document)))


def with_trees(told: Document) -> Callable[[Document], None]:
    """Add directories that are stored as their difference from the first of them."""

    def edit(document: Document) -> None:
        first = len(document["trees"])
        document["trees"] += [row | {"base": first} if "base" in row else row for row in told["trees"]]

    return edit


HOSTILE = [(directories_of_one_base, 5_000), (directories_of_a_wide_base, 10_000)]


@pytest.mark.parametrize(("tell", "count"), HOSTILE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_checkpoint_that_expands_to_many_times_its_size_is_refused(
    tell: Callable[[int], Document], count: int, store: MemoryStreams
) -> None:
    change(store, with_trees(tell(count)))

    with watched(), pytest.raises(SessionFileError, match=REFUSAL) as refusal:
        Session.open(store, "s", max_expansion=10)
    with watched(), pytest.raises(SessionFileError, match=REFUSAL):
        asyncio.run(Session.aopen(store, "s", max_expansion=10))

    assert "max_expansion" in str(refusal.value)
    for factor in (1000, None):
        with Session.open(store, "s", max_expansion=factor) as session:
            assert InMemoryFilesystem(session).read("/f").content == "text"


def test_a_checkpoint_is_refused_by_default(store: MemoryStreams) -> None:
    change(store, with_trees(directories_of_a_wide_base(10_000)))

    with pytest.raises(SessionFileError, match=REFUSAL):
        Session.open(store, "s")


def test_a_checkpoint_that_is_refused_is_read_once(store: MemoryStreams, monkeypatch: pytest.MonkeyPatch) -> None:
    change(store, with_trees(directories_of_a_wide_base(10_000)))
    reads = Mock(wraps=store.get_checkpoint)
    monkeypatch.setattr(store, "get_checkpoint", reads)

    with pytest.raises(SessionFileError, match=REFUSAL):
        Session.open(store, "s")
    assert reads.call_count == 1
    with pytest.raises(SessionFileError, match=REFUSAL):
        asyncio.run(Session.aopen(store, "s"))
    assert reads.call_count == 2


def test_a_refused_checkpoint_of_another_process_is_read_once(
    store: MemoryStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.open(store, "s", max_expansion=10)
    found = store.get_checkpoint("s")
    assert found is not None
    document = orjson.loads(found.data)
    with_trees(directories_of_a_wide_base(10_000))(document)
    text = orjson.dumps(document)
    digest = digest_of(text).hex()
    frame = orjson.dumps({"id": "other-1", "after": session.seq, "counter": 0, "reset": digest})
    store.append("s", found.number, [frame], contents={digest: text})
    reads = Mock(wraps=store.read)
    monkeypatch.setattr(store, "read", reads)

    with pytest.raises(SessionFileError, match="expand the checkpoint"):
        session.refresh()
    assert reads.call_count == 1
    assert InMemoryFilesystem(session).read("/f").content == "text"


def test_a_checkpoint_is_refused_before_memory_is_allocated(store: MemoryStreams) -> None:
    change(store, with_trees(directories_of_a_wide_base(10_000)))
    found = store.get_checkpoint("s")
    assert found is not None
    data = found.data

    def open_with(max_expansion: float | None) -> None:
        with suppress(SessionFileError):
            Session.open(store, "s", max_expansion=max_expansion).close()

    parsed = peak_memory(lambda: orjson.loads(data))
    refused, loaded = peak_memory(lambda: open_with(1)), peak_memory(lambda: open_with(None))

    assert refused - parsed < (loaded - parsed) / 4


def test_the_states_that_a_checkpoint_refers_to_have_the_same_budget(store: MemoryStreams) -> None:
    def edit(document: Document) -> None:
        entry = document["states"][0]
        states = orjson.loads(store.get_contents("s", [entry[2]])[entry[2]])
        with_trees(directories_of_a_wide_base(10_000))(states)
        text = orjson.dumps(states)
        entry[2] = digest_of(text).hex()
        store.put_contents("s", {entry[2]: text})

    change(store, edit)

    with (
        Session.open(store, "s", max_expansion=10) as session,
        pytest.raises(SessionFileError, match="expand the checkpoint"),
    ):
        list(session.records)
    with Session.open(store, "s", max_expansion=None) as session:
        assert len(list(session.records)) == session.seq


@pytest.mark.parametrize("factor", [-1, "20", True, float("nan")])
def test_a_budget_that_is_not_a_number_is_refused(factor: Any, store: MemoryStreams) -> None:
    with pytest.raises(ValueError, match="max_expansion"):
        Session.open(store, "s", max_expansion=factor)


def test_many_snapshots_of_a_deep_tree_stay_within_the_budget() -> None:
    store = MemoryStreams()
    with Session.open(store, "s") as session:
        fs = InMemoryFilesystem(session)
        with session.transaction():
            for number in range(100):
                for level in ("", "/a", "/a/b", "/a/b/c"):
                    fs.write(f"{level}/file {number}", "x")
        for number in range(1000):
            fs.write(f"/a/b/c/file {number % 100}", str(number))
            session.snapshot()
        session.checkpoint()

    with Session.open(store, "s") as session:
        assert len(session.snapshots) == 1000
