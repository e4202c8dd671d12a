"""A process that is killed while it saves, at every call it makes: the file is the old one or the new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.crashing import AT_ONCE, told
from tests.faults.syscalls import System

TOP = Path(__file__).parents[2]
SCENARIOS = ["over an old file", "where no file was"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("crashes")
    command = [sys.executable, "-m", "tests.faults.crashing", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_process_was_killed_at_every_call(results: dict[str, Any], scenario: str) -> None:
    deaths = results[scenario]["deaths"]
    for when in ("before", "after"):
        calls = [death["call"] for death in deaths if death["when"] == when]
        assert calls.count("write") > 3
        assert calls.count("fsync") == 2
        assert {"open", "rename", "close"} <= set(calls)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_file_is_the_old_one_or_the_new_one(results: dict[str, Any], scenario: str) -> None:
    wrong = [death for death in results[scenario]["deaths"] if death["file"] not in ("old", "new")]
    assert not wrong


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_file_is_the_old_one_before_the_rename_and_the_new_one_after_it(
    results: dict[str, Any], scenario: str
) -> None:
    for when in ("before", "after"):
        deaths = [death for death in results[scenario]["deaths"] if death["when"] == when]
        at = next(number for number, death in enumerate(deaths) if death["call"] == "rename")
        turn = at + 1 if when == "before" else at
        assert {death["file"] for death in deaths[:turn]} == {"old"}
        assert {death["file"] for death in deaths[turn:]} == {"new"}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_processes_leave_at_most_one_temporary_file(results: dict[str, Any], scenario: str) -> None:
    # Nothing was cleaned up between the deaths in a scenario.
    assert max(len(death["others"]) for death in results[scenario]["deaths"]) <= 2
    assert results[scenario]["end"] == {"file": "new", "others": ["session.json"]}


def trace(folder: Path) -> list[tuple[str, tuple[Any, ...]]]:
    session = told("traced")
    with System(at_once=AT_ONCE).in_force() as system:
        session.save(folder / "session.json")
    return [(call.name, call.arguments) for call in system.calls]


def test_data_is_synced_before_the_rename_and_the_rename_before_the_end(tmp_path: Path) -> None:
    """What a power failure needs: the order of the two fsyncs and the rename."""
    calls = trace(tmp_path)
    names = [name for name, _ in calls]
    renamed = names.index("rename")
    written = max(number for number, name in enumerate(names) if name in ("write", "ftruncate", "fchmod"))
    synced = [number for number, name in enumerate(names) if name == "fsync"]
    assert written < synced[0] < renamed < synced[1]
    assert calls[written][1][0] == calls[synced[0]][1][0], "another file was synced than was written"
    opened = [arguments for name, arguments in calls[renamed:] if name == "open"]
    assert [arguments[0] for arguments in opened] == [str(tmp_path)]
    assert opened[0][1] & os.O_DIRECTORY


def test_the_temporary_file_is_in_the_same_folder(tmp_path: Path) -> None:
    source, target = next(arguments for name, arguments in trace(tmp_path) if name == "rename")
    assert Path(target) == tmp_path / "session.json"
    assert Path(source).parent == tmp_path
    assert Path(source) != Path(target)


def test_the_old_file_is_never_written_to(tmp_path: Path) -> None:
    told("old").save(tmp_path / "session.json")
    paths = [arguments[0] for name, arguments in trace(tmp_path) if name == "open"]
    assert str(tmp_path / "session.json") not in paths


def test_the_mode_is_set_before_anything_is_written(tmp_path: Path) -> None:
    told("old").save(tmp_path / "session.json")
    (tmp_path / "session.json").chmod(0o600)
    names = [name for name, _ in trace(tmp_path)]
    assert names.index("fchmod") < names.index("write")
