"""A call that is cancelled during its commit, in a process that is then killed: the files and the session agree."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.desk import Desk, prepare, standard_desk
from tests.faults.dying import Death, dying
from tests.faults.test_awaited_host_commits import WORKS, opened, outcome
from tests.sampling import is_exhaustive
from tests.storage.servers import empty_location
from weakfs import Session

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning"),
]


def hold_append(session: Session, held: str) -> asyncio.Event:
    """Let the next append of a session wait forever, before or after it takes effect; return when it is reached."""
    assert session._queue is not None
    store, reached, patch = session._queue.store, asyncio.Event(), pytest.MonkeyPatch()
    append = store.append

    async def held_append(*arguments: Any, **options: Any) -> int:
        patch.undo()
        number = await append(*arguments, **options) if held == "after" else 0
        reached.set()
        await asyncio.Event().wait()
        return number

    patch.setattr(store, "append", held_append)
    return reached


async def cancelled_work(place: Path, location: str, what: str, name: str, held: str, moment: int) -> None:
    desk = await opened(place, location)
    reached = hold_append(desk.session, held)
    call = asyncio.ensure_future(WORKS[what](desk, name))
    await reached.wait()
    Death(moment).install()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    await desk.session.aflush()


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("held", ["after", "before"])
@pytest.mark.parametrize("engine", ["folder", "sqlite", "postgresql", "redis"])
@pytest.mark.parametrize("what", WORKS)
def test_a_call_cancelled_during_its_commit_is_in_both_the_files_and_the_session_or_in_neither(
    what: str, engine: str, held: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = empty_location(engine, request, tmp_path)
    standard_desk(tmp_path, session=Session.open(location, "s"))
    moment, was_killed = 0, True
    while was_killed:
        desk = Desk(tmp_path, session=Session.open(location, "s"))
        prepare(desk)
        before = desk.files.tree().fingerprint
        desk.session.close()
        name = f"{what}-{moment}-"

        def work(_: Callable[[str], None], name: str = name, moment: int = moment) -> None:
            asyncio.run(cancelled_work(tmp_path, location, what, name, held, moment))

        _, was_killed = dying(work)

        _, files, is_recorded = asyncio.run(outcome(tmp_path, location, name))
        assert (files != before) == is_recorded == (held == "after"), moment
        moment += 1 if is_exhaustive() else 3
