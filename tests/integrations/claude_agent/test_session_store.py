"""The SDK's own contracts for a session store on several engines, and cases that they do not cover."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from claude_agent_sdk import SessionKey
from claude_agent_sdk.testing import run_session_store_conformance
from claude_agent_sdk.types import SessionStoreEntry

from weakfs.integrations.claude_agent import StorageSessionStore
from weakfs.storage import AsyncStorage, StorageDamaged, aopen

KEY: SessionKey = {"project_key": "project", "session_id": "one"}


def entry(uuid: str, text: str = "") -> SessionStoreEntry:
    return {"type": "user", "uuid": uuid, "timestamp": text}


@pytest.mark.parametrize("engine", ["memory", "folder", "sqlite"])
async def test_all_contracts_of_the_sdk_hold(engine: str, tmp_path: Path) -> None:
    opened: list[AsyncStorage] = []

    async def fresh() -> StorageSessionStore:
        where = "memory:" if engine == "memory" else f"{engine}:{tmp_path / uuid4().hex}"
        opened.append(await aopen(where))
        return StorageSessionStore(opened[-1])

    await run_session_store_conformance(fresh)
    for storage in opened:
        await storage.close()


async def test_an_entry_that_arrives_twice_is_loaded_once() -> None:
    store = StorageSessionStore(await aopen("memory:"))
    await store.append(KEY, [entry("a"), entry("b")])
    await store.append(KEY, [entry("b"), entry("c")])
    assert await store.load(KEY) == [entry("a"), entry("b"), entry("c")]


async def test_two_stores_append_to_one_session() -> None:
    storage = await aopen("memory:")
    first, second = StorageSessionStore(storage), StorageSessionStore(storage)
    for number in range(4):
        await (first, second)[number % 2].append(KEY, [entry(str(number))])
    assert await first.load(KEY) == [entry(str(number)) for number in range(4)]


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%2Fb", "-home-me-.x", "é\n\x00", "x?*"])
async def test_names_of_any_kind_are_distinguished_and_listed_unchanged(name: str, tmp_path: Path) -> None:
    storage = await aopen(f"folder:{tmp_path / 'store'}")
    store = StorageSessionStore(storage)
    await store.append({"project_key": name, "session_id": name}, [entry("a")])
    await store.append({"project_key": name, "session_id": name, "subpath": name}, [entry("b")])
    assert [one["session_id"] for one in await store.list_sessions(name)] == [name]
    assert await store.list_subkeys({"project_key": name, "session_id": name}) == [name]
    assert await store.load({"project_key": name, "session_id": name}) == [entry("a")]
    await storage.close()
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


async def test_an_empty_name_is_refused() -> None:
    store = StorageSessionStore(await aopen("memory:"))
    with pytest.raises(ValueError, match="its session_id is empty; give a name"):
        await store.append({"project_key": "p", "session_id": ""}, [entry("a")])


async def test_damage_is_named() -> None:
    storage = await aopen("memory:")
    await storage.set("claude/project/one/main/000000000000", b"{")
    with pytest.raises(StorageDamaged, match="main/000000000000"):
        await StorageSessionStore(storage).load(KEY)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"[]",
        b'{"at":1,"entries":5}',
        b'{"at":1,"entries":[5]}',
        b'{"at":"now","entries":[]}',
        b"[" * 100_000,
    ],
)
async def test_any_damage_is_named(damage: bytes) -> None:
    storage = await aopen("memory:")
    store = StorageSessionStore(storage)
    await store.append(KEY, [entry("a")])
    await storage.set("claude/project/one/main/000000000000", damage)
    for read in (lambda: store.load(KEY), lambda: store.list_sessions("project")):
        with pytest.raises(StorageDamaged, match="main/000000000000"):
            await read()
    await storage.set("claude/project/one/summary", damage)
    for use in (lambda: store.list_session_summaries("project"), lambda: store.append(KEY, [entry("b")])):
        with pytest.raises(StorageDamaged, match="one/summary"):
            await use()
    await storage.set("claude/project/two/main/odd", b"{}")
    with pytest.raises(StorageDamaged, match="two/main/odd"):
        await store.append({"project_key": "project", "session_id": "two"}, [entry("a")])


async def test_a_lone_surrogate_is_not_a_name() -> None:
    store = StorageSessionStore(await aopen("memory:"))
    with pytest.raises(ValueError, match=r"its session_id .* is not Unicode text"):
        await store.append({"project_key": "p", "session_id": "\ud800"}, [entry("a")])
