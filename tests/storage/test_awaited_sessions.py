"""Sessions on an event loop over each engine, whose own client is awaited."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.sampling import is_exhaustive
from tests.storage.servers import ENGINES, OBJECT_STORES, empty_location
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.tools import ToolCalls

pytestmark = pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")

COUNT = 200 if is_exhaustive() else 12


@pytest.fixture
def location(request: pytest.FixtureRequest, engine: str, tmp_path: Path) -> str:
    return empty_location(engine, request, tmp_path)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ENGINES)
def test_concurrent_calls_are_stored_once_and_read_back(engine: str, location: str) -> None:
    check_concurrent_calls(location)


@pytest.mark.slow
@pytest.mark.parametrize("engine", OBJECT_STORES)
def test_concurrent_calls_are_stored_once_in_other_object_stores(engine: str, location: str) -> None:
    check_concurrent_calls(location)


def check_concurrent_calls(location: str) -> None:
    async def main() -> bytes:
        async with await Session.aopen(location, "s") as session:
            tools = Toolset(session)
            calls = [
                tools.acall("write_file", {"path": f"/{n % 5}/{n}", "content": f"{n}\n" * 300}, call_id=str(n))
                for n in range(COUNT)
            ]
            gathered = asyncio.gather(*calls)
            cancelled = asyncio.create_task(
                tools.acall("write_file", {"path": "/cancelled", "content": ""}, call_id="cancelled")
            )
            await asyncio.sleep(0)
            cancelled.cancel()
            assert all(result.success for result in await gathered)
            finished = [call.call_id for call in session[ToolCalls].all() if call.status == "ok"]
            assert finished[:COUNT] == [str(n) for n in range(COUNT)]
            assert InMemoryFilesystem(session).exists("/cancelled") == ("cancelled" in finished)
            await session.acheckpoint()
            await tools.acall("read_file", {"path": "/0/0"}, caller="one")
            await session.aflush()
        async with await Session.aopen(location, "s") as again:
            assert again.to_bytes() == session.to_bytes()
            # Its contents are in storage only.
            read = await Toolset(again).acall("read_file", {"path": "/1/1"})
            assert read.message.count("1") >= 300
            return session.to_bytes()

    saved = asyncio.run(main())
    with Session.open(location, "s") as session:
        assert [call.call_id for call in session[ToolCalls].all()][:COUNT] == [str(n) for n in range(COUNT)]
        assert InMemoryFilesystem(session).read("/1/11").content == "11\n" * 300
    assert saved


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ["postgresql"])
async def test_eight_workers_that_merge_lose_no_update(engine: str, location: str) -> None:
    rounds = 40 if is_exhaustive() else 2

    async def work(place: int) -> None:
        async with await Session.aopen(location, "s", on_conflict="merge") as session:
            tools = Toolset(session, refuse_stale_writes=False)
            for number in range(rounds):
                calls = [
                    tools.acall("write_file", {"path": f"/{place}/{number}-{n}", "content": f"{number}"})
                    for n in range(3)
                ]
                # Each has a line of its own in a shared file; the line endings keep these changes apart.
                edit = {"path": "/shared", "old_string": f"worker {place}: {number}\n"}
                edit["new_string"] = f"worker {place}: {number + 1}\n"
                results = await asyncio.gather(*calls, tools.acall("edit_file", edit))
                assert all(result.success for result in results), results

    async with await Session.aopen(location, "s", on_conflict="merge") as session, session.transaction():
        InMemoryFilesystem(session).write("/shared", "".join(f"worker {n}: 0\n--\n--\n" for n in range(8)))
    await asyncio.gather(*(work(place) for place in range(8)))
    async with await Session.aopen(location, "s") as session:
        fs = InMemoryFilesystem(session)
        assert fs.read("/shared").content == "".join(f"worker {n}: {rounds}\n--\n--\n" for n in range(8))
        for place in range(8):
            expected = sorted(f"{number}-{n}" for number in range(rounds) for n in range(3))
            assert sorted(entry.name for entry in fs.list(f"/{place}")) == expected
