"""A process that is killed while its event loop awaits commits: a call changes the files and the session, or neither.

The session is also reopened with `aopen`, whose clients find out whether the commit was stored.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from tests.faults.desk import Desk, prepare, standard_desk
from tests.faults.dying import Death, dying
from tests.sampling import is_exhaustive
from tests.storage.servers import ENGINES, empty_location
from weakfs import Session

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning"),
]


async def call(desk: Desk, name: str, call_id: str, **arguments: object) -> None:
    result = await desk.tools.acall(name, arguments, call_id=call_id)
    assert result.success, result.message


async def several(desk: Desk, name: str) -> None:
    async with desk.session.transaction():
        await call(desk, "write_file", f"{name}a", path="new/first", content="first")
        await call(desk, "rm", f"{name}b", path="dir", recursive=True)


WORKS: dict[str, Callable[[Desk, str], Awaitable[None]]] = {
    "write": lambda desk, name: call(desk, "write_file", name, path="new/file", content="new\n" * 2000),
    "edit": lambda desk, name: call(desk, "edit_file", name, path="file", old_string="two", new_string="three"),
    "rm": lambda desk, name: call(desk, "rm", name, path="dir", recursive=True),
    "shell": lambda desk, name: call(desk, "shell", name, command="rm -r dir; mkdir made; echo >> file"),
    "several": several,
}


async def opened(place: Path, location: str) -> Desk:
    # For a folder, the loop awaits commits only if they wait for the disk.
    location = f"{location}?durability=power" if location.startswith("folder:") else location
    return Desk(place, session=await Session.aopen(location, "s"))


async def work(place: Path, location: str, what: str, name: str, moment: int) -> None:
    desk = await opened(place, location)
    assert desk.session._awaits_commits
    Death(moment).install()
    await WORKS[what](desk, name)


async def settle(place: Path, location: str, moment: int) -> None:
    Death(moment).install()
    await opened(place, location)


async def outcome(place: Path, location: str, name: str) -> tuple[int, str, bool]:
    """Open the session again, and return its last record, the fingerprint of the files, and whether it has the call."""
    desk = await opened(place, location)
    desk.check()
    found = desk.session.seq, desk.files.tree().fingerprint, any(call.startswith(name) for call in desk.calls())
    await desk.session.aclose()
    return found


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
# The client of S3 cannot be used in a forked process.
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "s3"])
@pytest.mark.parametrize("what", WORKS)
def test_an_awaited_call_changes_both_the_files_and_the_session_or_neither(
    what: str, engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = empty_location(engine, request, tmp_path)
    standard_desk(tmp_path, session=Session.open(location, "s"))
    dice, moment, was_killed = Random(f"{what} {engine}"), Random(what).randrange(4), True
    outcomes: set[bool] = set()
    while was_killed:
        desk = Desk(tmp_path, session=Session.open(location, "s"))
        prepare(desk)
        before, seq = desk.files.tree().fingerprint, desk.session.seq
        desk.session.close()
        name = f"{what}-{moment}-"

        def make_call(acknowledge: Callable[[str], None], name: str = name, moment: int = moment) -> None:
            asyncio.run(work(tmp_path, location, what, name, moment))
            acknowledge(name)

        def open_again(_: Callable[[str], None], moment: int = dice.randrange(12)) -> None:
            asyncio.run(settle(tmp_path, location, moment))

        acknowledged, was_killed = dying(make_call)
        if dice.random() < 0.5:
            # The process that settles it may be killed as well.
            dying(open_again)

        last, files, is_recorded = asyncio.run(outcome(tmp_path, location, name))
        assert (last > seq) == (files != before) == is_recorded
        assert is_recorded or not acknowledged
        outcomes.add(is_recorded)
        moment += 1 if is_exhaustive() else 5
    assert outcomes == {True, False}
