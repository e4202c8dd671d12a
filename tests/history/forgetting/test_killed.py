"""Forgetting in a process that is killed: once the history is replaced, opening it leaves no trace of the old one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.dying import Death, dying
from tests.sampling import is_exhaustive
from weakfs import InMemoryFilesystem, Session
from weakfs.history import forget
from weakfs.session.durable.replacement_workplaces import workplace

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SECRET = "sk-live-0123456789"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["folder", "sqlite"])
def test_opening_a_session_removes_what_a_killed_forget_left(engine: str, tmp_path: Path) -> None:
    moment, was_killed = 0, True
    outcomes: set[bool] = set()
    while was_killed:
        place = tmp_path / str(moment)
        place.mkdir()
        url = f"{engine}:{place}/store"
        with Session.open(url, "s") as session:
            # Too long for a frame, so that it is a content of its own.
            InMemoryFilesystem(session).write("/a", f"{SECRET}\n" + "line\n" * 1000)

        def work(_: Callable[[str], None], url: str = url, moment: int = moment) -> None:
            session = Session.open(url, "s")
            Death(moment).install()
            forget(session, text=SECRET)

        _, was_killed = dying(work)
        with Session.open(url, "s") as session:
            is_forgotten = SECRET not in InMemoryFilesystem(session).read("/a").content

        left = [path for path in place.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
        assert (left == []) == is_forgotten, (moment, left)
        assert [path.name for path in place.rglob(".forgetting*")] == []
        outcomes.add(is_forgotten)
        moment += 1 if is_exhaustive() else 3
    assert outcomes == {True, False}


def test_opening_a_session_leaves_a_replacement_in_progress_alone(tmp_path: Path) -> None:
    with workplace(str(tmp_path)) as work:
        Session.open(tmp_path, "s").close()
        assert os.path.isdir(work)
    assert not (tmp_path / ".forgetting").exists()
