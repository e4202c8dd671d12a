"""Commands with and without a sandbox."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.witness import Witness
from weakfs.processes import Bubblewrap, CompletedCommand, SandboxMode, command_watch, run_command

BUBBLEWRAP = Bubblewrap()
MODES: list[SandboxMode] = ["off", "required"]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> SandboxMode:
    chosen: SandboxMode = request.param
    if chosen == "required" and BUBBLEWRAP.problem():
        pytest.skip(f"no sandbox: {BUBBLEWRAP.problem()}")
    return chosen


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    found = Witness(tmp_path)
    yield found
    found.close()


@pytest.fixture
def until_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """A timeout that ends when something is printed after the file `begun` exists, however slow the machine is."""
    monotonic = time.monotonic

    def jumping() -> float:
        return monotonic() + (1000 if (tmp_path / "begun").exists() else 0)

    monkeypatch.setattr(command_watch, "monotonic", jumping)
    return 999


def run(command: str, directory: Path, mode: SandboxMode, **options: Any) -> CompletedCommand:
    options = {"timeout": 300, "grace": 0.2, **options}
    return run_command(command, str(directory), sandbox=mode, bubblewrap=BUBBLEWRAP, **options)
