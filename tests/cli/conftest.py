"""Shared by the tests of the command: a way to run it, and a small saved session to inspect."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from weakfs import InMemoryFilesystem, Session
from weakfs.cli import main

from .places import WORKSPACE as WORKSPACE
from .places import Place, make_place

# The command in a process of its own.
COMMAND = (sys.executable, "-W", "error", "-m", "weakfs")

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRANSCRIPTS = FIXTURES / "transcripts"

# 2026-04-30T09:29:33Z, in nanoseconds.
BEGINNING = 1_777_541_373_000_000_000


@frozen
class Outcome:
    """The result of a run of the command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The output of --json."""
        return [json.loads(line) for line in self.lines]


Run = Callable[..., Outcome]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process; arguments may be paths."""

    def run_command(*arguments: str | Path) -> Outcome:
        status = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run_command


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save a session of nine records, each a second after the one before, with a snapshot after the fourth."""
    ticks = iter(range(BEGINNING, BEGINNING + 10**15, 500_000_000))
    session = Session(session_id="story", clock=ticks.__next__)
    files = InMemoryFilesystem(session)
    files.write("/src/app.py", "port = 80\nhost = 'a'\n")
    files.write("/src/old.py", "# old\n")
    files.write_bytes("/logo.png", b"\x89PNG\0\xff")
    files.mkdir("/empty")
    session.snapshot("before")
    with session.transaction(cause="call_1"):
        files.write("/src/app.py", "port = 8080\nhost = 'a'\n")
    with session.transaction(cause="call_2"):
        files.move("/src/old.py", "/attic/old.py")
    files.symlink("src/app.py", "/current")
    files.chmod("/src/app.py", 0o755)
    files.write("/line\nbreak \x1b[31mred.txt", "evil \x1b[32m\n")
    file = tmp_path / "story.json"
    session.save(file)
    return file


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Copy the small project into a new directory, with its store next to it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return make_place(tmp_path)
