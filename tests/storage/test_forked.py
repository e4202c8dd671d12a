"""Sessions in a process that was forked while they were open: no connection is used by two processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.storage.servers import empty_location
from weakfs import InMemoryFilesystem, Session
from weakfs.storage import StorageError


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "redis", "s3"])
@pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")
def test_a_forked_process_does_not_share_a_connection(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = empty_location(engine, request, tmp_path)
    with Session.open(location, "s", on_conflict="merge") as session:
        fs = InMemoryFilesystem(session)
        fs.write("/before", "1")

        def use() -> str:
            with suppress(StorageError):
                fs.write("/shared", "2")
                return "used"
            try:
                with Session.open(location, "s", on_conflict="merge") as own:
                    InMemoryFilesystem(own).write("/child", "2")
            except StorageError as error:
                return str(error)
            return "opened"

        answer = in_fork(use)
        fs.write("/parent", "3")
        session.refresh()
        found = sorted(entry.name for entry in fs.list())
    if engine == "redis":
        assert (answer, found) == ("used", ["before", "parent", "shared"])
    elif engine == "s3":
        assert "in a process that was forked" in answer
        assert found == ["before", "parent"]
    else:
        assert (answer, found) == ("opened", ["before", "child", "parent"])


def in_fork(work: Callable[[], str]) -> str:
    """Return what a function returns in a forked process, which is killed if it waits for a minute."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)
        with suppress(BaseException):
            os.write(theirs, work().encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer
