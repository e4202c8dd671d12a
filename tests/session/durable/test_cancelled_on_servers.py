"""Sessions on object stores, cancelled at each suspension: all work is complete or undone, and nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.models.cancellation_points import Point, at_each_point
from tests.session.durable.awaited import ids, names, write
from tests.session.durable.test_cancelled_anywhere import is_free, opened
from tests.storage.servers import OBJECT_STORES, empty_location
from weakfs import Session, Toolset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.exhaustive,
    pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning"),
]

Scenario = Callable[[Point, str], Coroutine[Any, Any, None]]


async def opening(point: Point, url: str) -> None:
    async with await opened(url, "process") as session:
        await write(Toolset(session), "/kept")

    result = await point.cancels(opened(url, "process", exclusive=True))

    assert isinstance(result, asyncio.CancelledError) == point.was_reached
    if isinstance(result, Session):
        await result.aclose()
    assert await is_free(url, "process") == ["kept"]


async def closing(point: Point, url: str) -> None:
    session = await opened(url, "process", exclusive=True)
    await write(Toolset(session), "/kept")
    calls = [asyncio.create_task(write(Toolset(session), f"/{number}")) for number in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)

    result = await point.cancels(session.aclose())

    assert isinstance(result, asyncio.CancelledError) == point.was_reached
    results = await asyncio.gather(*calls)
    acknowledged = [str(number) for number, result in enumerate(results) if result.success]
    assert await is_free(url, "process") == [*acknowledged, "kept"] == names(session)


async def calling(point: Point, url: str) -> None:
    async with await opened(url, "process") as session:
        tools = Toolset(session)
        await write(tools, "/kept")

        result = await point.cancels(write(tools, "/own", "long " * 500))

        assert isinstance(result, asyncio.CancelledError) == point.was_reached
        assert point.was_reached or names(session) == ["kept", "own"]
        assert ("own" in names(session)) <= ("own" in ids(session))
        # A repetition with the same id is neither left out nor done twice.
        assert (await write(tools, "/own", "long " * 500)).success
        assert names(session) == ["kept", "own"]
        async with await opened(url, "process") as other:
            assert other.to_bytes() == session.to_bytes()


async def merging(point: Point, url: str) -> None:
    async with await opened(url, "process", merge=True) as session, await opened(url, "process", merge=True) as other:
        await write(Toolset(other), "/others")

        result = await point.cancels(write(Toolset(session), "/own"))

        assert isinstance(result, asyncio.CancelledError) == point.was_reached
        await session.aflush()
        await session.arefresh()
        assert point.was_reached or "own" in ids(session)
        assert (await write(Toolset(session), "/own")).success
        await other.arefresh()
        assert names(session) == names(other) == ["others", "own"]


@pytest.mark.parametrize("engine", ["s3", *OBJECT_STORES])
@pytest.mark.parametrize("scenario", [opening, calling, merging, closing])
def test_work_on_an_object_store_that_is_cancelled_anywhere_is_complete_or_undone(
    scenario: Scenario, engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location, numbers = empty_location(engine, request, tmp_path), count()

    async def run(point: Point, place: Path) -> None:
        url, query, options = location.partition("?")
        await scenario(point, f"{url}/{next(numbers)}{query}{options}")

    assert at_each_point(run, tmp_path) > 3
