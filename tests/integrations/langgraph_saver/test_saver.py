"""Checkpoints of LangGraph in a storage: its own suite, graphs that stop, and writers side by side."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import weakfs.storage
from tests.storage.servers import Server
from weakfs.storage import MemoryStorage, Storage, StorageDamaged

pytestmark = [
    pytest.mark.usefixtures("never_hung"),
    # Warnings of LangGraph about its own parts, and about servers that do not sync.
    pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning"),
    pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning"),
]

# The engines themselves are tested elsewhere: those on servers run here only if all cases are run.
SERVERS = [pytest.param(name, marks=pytest.mark.exhaustive) for name in ("postgresql", "redis")]

CONFIG: Any = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}


def url_of(request: pytest.FixtureRequest, engine: str, directory: Path) -> str:
    """Return a new location. If it is on a server, all tests of this process share that server."""
    if engine in ("memory", "folder", "sqlite"):
        return "memory:" if engine == "memory" else f"{engine}:{directory}/s"
    server: Server = request.getfixturevalue(f"{engine}_server")
    name = f"saver{uuid4().hex}"
    return f"{server.url}&schema={name}" if engine == "postgresql" else f"{server.url}?namespace={name}"


@pytest.fixture(params=["memory", "folder", "sqlite", *SERVERS])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    made = weakfs.storage.open(url_of(request, request.param, tmp_path))
    yield made
    made.close()


def saver_of(storage: Storage) -> Any:
    from weakfs.integrations.langgraph import StorageSaver

    return StorageSaver(storage)


def checkpoint(**values: object) -> Any:
    from langgraph.checkpoint.base import empty_checkpoint

    made = empty_checkpoint()
    made["channel_values"] = dict(values)
    return made


def put(saver: Any, config: Any = CONFIG, *, run_id: str = "run", **values: object) -> Any:
    """Store a checkpoint with these values after the one that the config names."""
    made = checkpoint(**values)
    versions = {name: saver.get_next_version(None, None) for name in values}
    made["channel_versions"] = versions
    return saver.put(config, made, {"source": "loop", "step": 1, "run_id": run_id}, versions)


def test_the_suite_of_langgraph_passes_with_all_capabilities(storage: Storage) -> None:
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    @checkpointer_test(name="StorageSaver")
    async def fresh() -> AsyncGenerator[Any, None]:
        storage.clear()
        yield saver_of(storage)

    report = asyncio.run(validate(fresh))
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert all(result.detected for result in report.results.values())
    assert sum(result.tests_passed for result in report.results.values()) >= 81


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["folder", "sqlite", *SERVERS])
def test_a_graph_whose_process_was_killed_continues_after_its_last_step(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    from tests.integrations.langgraph_saver.killed_run import graph

    url = url_of(request, engine, tmp_path)
    done = subprocess.run([sys.executable, "-m", "tests.integrations.langgraph_saver.killed_run", url], check=False)
    assert done.returncode == -9
    storage = weakfs.storage.open(url)
    resumed = graph(saver_of(storage), kills=False)
    config: Any = {"configurable": {"thread_id": "chat"}}
    assert resumed.get_state(config).values == {"steps": ["first"]}
    assert resumed.invoke(None, config) == {"steps": ["first", "second", "third"]}
    # The graph can also be run again from an earlier checkpoint.
    earlier = next(one for one in resumed.get_state_history(config) if one.next == ("second",))
    assert resumed.invoke(None, earlier.config) == {"steps": ["first", "second", "third"]}
    storage.close()


def test_concurrent_workers_lose_no_checkpoint_and_no_write(storage: Storage) -> None:
    parent = put(saver_of(storage), start=0)

    def work(worker: int) -> None:
        saver = saver_of(storage)
        for number in range(5):
            saver.put_writes(parent, [("messages", (worker, number))], f"task-{worker}-{number}")
            put(saver, parent, value=(worker, number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    saver = saver_of(storage)
    expected = {(worker, number) for worker in range(4) for number in range(5)}
    values = [one.checkpoint["channel_values"].get("value") for one in saver.list(CONFIG)]
    assert sorted(tuple(value) for value in values if value is not None) == sorted(expected)
    pending = saver.get_tuple(parent).pending_writes
    assert {tuple(value) for _, _, value in pending} == expected


def test_a_repeated_write_is_stored_once_and_an_interrupt_replaces_the_last(storage: Storage) -> None:
    from langgraph.checkpoint.base import WRITES_IDX_MAP

    saver = saver_of(storage)
    stored = put(saver)
    interrupt = next(name for name, index in WRITES_IDX_MAP.items() if index == -3)
    for value in ("first", "second"):
        saver.put_writes(stored, [("messages", value), (interrupt, value)], "task")
    assert saver.get_tuple(stored).pending_writes == [("task", interrupt, "second"), ("task", "messages", "first")]


def test_the_latest_is_found_whatever_the_ids_and_names_are(storage: Storage) -> None:
    saver = saver_of(storage)
    for thread in ("", ".", "a/b", "é" * 90, "x~", "%", "-"):
        for namespace in ("", "child:1|sub:2", "n" * 300, "..", "-"):
            config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
            stored = [put(saver, config, value=(thread, namespace, value)) for value in range(3)][-1]
            assert saver.get_tuple(config).checkpoint["channel_values"]["value"][2] == 2
            assert saver.get_tuple(stored).config == stored
    assert len(list(saver.list(None))) == 7 * 5 * 3
    assert len({str(one.config) for one in saver.list(None)}) == 7 * 5 * 3
    config = {"configurable": {"thread_id": "%"}}
    saver.copy_thread("a/b", "copy")
    saver.delete_thread("a/b")
    assert {one.config["configurable"]["thread_id"] for one in saver.list(None)} == {
        *("", ".", "é" * 90, "x~", "%", "-", "copy")
    }


def test_pruning_keeps_the_ancestors_that_delta_channels_need(storage: Storage) -> None:
    saver = saver_of(storage)
    config = put(saver, log=["old"])
    keys = len(storage.keys())
    config = put(saver, config, log=["snapshot"])
    for number in range(3):
        saver.put_writes(config, [("log", number)], str(uuid4()))
        made = checkpoint()
        made["channel_versions"] = {"log": saver.get_next_version(None, None)}
        metadata = {"source": "loop", "step": 2, "counters_since_delta_snapshot": {"log": [number + 1, number + 1]}}
        config = saver.put(config, made, metadata, made["channel_versions"])
    before = saver.get_delta_channel_history(config=config, channels=["log"])["log"]
    saver.prune(["chat"])
    assert saver.get_delta_channel_history(config=config, channels=["log"])["log"] == before
    assert before["seed"] == ["snapshot"]
    assert [value for _, _, value in before["writes"]] == [0, 1, 2]
    assert len(list(saver.list(CONFIG))) == 4
    saver.prune(["chat"], strategy="delete")
    assert storage.keys() == []
    assert keys > 0


def test_values_used_only_by_a_run_are_deleted_with_it(storage: Storage) -> None:
    saver = saver_of(storage)
    first = put(saver, run_id="one", a=1)
    saver.put_writes(first, [("a", 2)], "task")
    size = len(storage.keys())
    second = put(saver, first, run_id="two", b=1)
    saver.put_writes(second, [("b", 2)], "task")
    saver.delete_for_runs(["two"])
    assert saver.get_tuple(CONFIG).config == first
    assert saver.get_tuple(first).pending_writes == [("task", "a", 2)]
    assert len(storage.keys()) == size
    saver.delete_for_runs(["one"])
    assert storage.keys() == []


@pytest.mark.parametrize("work", ["delete_for_runs", "prune"])
def test_a_checkpoint_that_is_being_stored_keeps_its_channels(work: str) -> None:
    storage = weakfs.storage.open("memory:")
    saver = saver_of(storage)
    put(saver, run_id="one", a=1)
    put(saver, run_id="one", a=2)
    set_key = storage.set

    def delete_first(key: str, value: bytes) -> None:
        # Another process acts after the channels of a checkpoint were stored, and before the checkpoint itself.
        if "/checkpoint/" in key:
            other = saver_of(storage)
            other.delete_for_runs(["one"]) if work == "delete_for_runs" else other.prune(["chat"])
        set_key(key, value)

    storage.set = delete_first  # type: ignore[method-assign]
    stored = put(saver, run_id="two", a=3)
    assert saver.get_tuple(stored).checkpoint["channel_values"] == {"a": 3}


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    storage = weakfs.storage.open("memory:")
    saver = saver_of(storage)
    put(saver, a=1)
    (key,) = storage.keys("langgraph/chat/checkpoint/")
    value = storage.get(key)
    assert value is not None
    for damaged in (b"", b"{}", b"[]\n", value[:-1], value + b"x"):
        storage.set(key, damaged)
        with pytest.raises(StorageDamaged, match="langgraph/chat/checkpoint/"):
            saver.get_tuple(CONFIG)


@pytest.mark.parametrize("part", ["checkpoint", "channel", "writes"])
@pytest.mark.parametrize(
    "damage",
    [
        b"null\n",
        b'{"parts":5}\n',
        b'{"parts":{}}\n',
        b'{"parts":{"value":[5,0]}}\n',
        b'{"parts":{"value":["msgpack",-5]}}\n',
        b'{"parts":{"value":["unknown",1],"checkpoint":["unknown",0],"metadata":["unknown",0]}}\nx',
        b"[" * 100_000,
    ],
)
def test_any_damage_is_named(part: str, damage: bytes) -> None:
    storage = MemoryStorage()
    saver = saver_of(storage)
    config = put(saver, a=1)
    saver.put_writes(config, [("a", 2)], "task")
    (key,) = [key for key in storage.keys(f"langgraph/chat/{part}/") if "/a/" in key or part != "channel"][:1]
    storage.set(key, damage)
    with pytest.raises(StorageDamaged, match=f"langgraph/chat/{part}/"):
        list(saver.list(CONFIG))


def test_an_unknown_strategy_is_refused_with_nothing_deleted(storage: Storage) -> None:
    saver = saver_of(storage)
    put(saver, a=1)
    before = storage.keys()
    with pytest.raises(ValueError, match="keep_latest"):
        saver.prune(["chat"], strategy="all")
    assert storage.keys() == before


def test_forks_of_programs_that_seed_their_random_numbers_keep_their_own_values(storage: Storage) -> None:
    saver = saver_of(storage)
    base = put(saver, text="base")
    forks: dict[str, Any] = {}
    for text in ("one", "other"):
        random.seed(0)
        forks[text] = put(saver, base, text=text)
    for text, config in forks.items():
        assert saver.get_tuple(config).checkpoint["channel_values"] == {"text": text}


class FailingStorage(MemoryStorage):
    """A storage that fails after some changes, as if its process was killed."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 1000

    def _spend(self) -> None:
        if not self.left:
            raise OSError("told to fail")
        self.left -= 1

    def create(self, key: str, value: bytes) -> str | None:
        self._spend()
        return super().create(key, value)

    def set_many(self, values: Mapping[str, bytes]) -> None:
        self._spend()
        super().set_many(values)


@pytest.mark.parametrize("left", [0, 1])
def test_the_writes_of_a_task_are_stored_all_or_none(left: int) -> None:
    storage = FailingStorage()
    saver = saver_of(storage)
    config = put(saver, text="base")
    storage.left = left
    # LangGraph does not repeat a task that has any writes.
    with suppress(OSError):
        saver.put_writes(config, [("a", 1), ("b", 2), ("c", 3)], "task")
    stored = {channel: value for _, channel, value in saver.get_tuple(config).pending_writes}
    assert stored == ({"a": 1, "b": 2, "c": 3} if left else {})
    storage.left = 1000
    saver.put_writes(config, [("a", 10), ("b", 2), ("c", 3), ("d", 4)], "task")
    stored = {channel: value for _, channel, value in saver.get_tuple(config).pending_writes}
    # What is stored is not replaced.
    assert stored == {"a": 1 if left else 10, "b": 2, "c": 3, "d": 4}
