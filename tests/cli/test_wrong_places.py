"""A file, a location or a module that is not what a command needs: the message says what to write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen

from weakfs import InMemoryFilesystem, Registry, Session, event

from .conftest import Run


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    with Session.open(f"sqlite:{path}", "main") as session:
        InMemoryFilesystem(session).write("/a", "1")
    return path


@pytest.mark.parametrize("command", ["log", "stats", "sessions", "fsck"])
def test_a_database_is_named_with_its_scheme(run: Run, database: Path, command: str) -> None:
    refused = run(command, database)
    assert refused.status == 1
    assert refused.err.endswith(f": it is a SQLite database; write sqlite:{database}\n")
    assert run(command, f"sqlite:{database}").status == 0


def test_a_session_that_is_not_there_is_named(run: Run, database: Path) -> None:
    refused = run("log", f"sqlite:{database}#other")
    assert refused.err.endswith(f"there is no session 'other'; see: weakfs sessions sqlite:{database}\n")
    assert run("sessions", f"sqlite:{database}").out == "main  1 frame\n"


def test_a_saved_session_is_not_run_again(run: Run, saved: Path) -> None:
    refused = run("run", saved)
    assert refused.status == 1
    assert refused.err == (
        f"weakfs: cannot run {str(saved)!r}: it is a saved session, whose calls were made already; see: "
        f"weakfs log {saved}, or weakfs replay {saved}\n"
    )


def test_a_folder_without_sessions_is_said_to_have_none(run: Run, tmp_path: Path) -> None:
    done = run("sessions", tmp_path)
    assert (done.status, done.out, done.err) == (0, "", f"weakfs: there are no sessions at {str(tmp_path)!r}\n")
    silent = run("sessions", tmp_path, "--json")
    assert (silent.status, silent.out, silent.err) == (0, "", "")


def test_a_misspelled_command_is_suggested(run: Run) -> None:
    assert run("lgo").err == "weakfs: no such command 'lgo' (did you mean 'log'?); see: weakfs --help\n"


@event("places/noted")
@frozen
class Noted:
    text: str


TYPES = """
from attrs import frozen
from weakfs import Registry, event

@event("places/noted")
@frozen
class Noted:
    text: str

REGISTRY = Registry.with_types(Noted)
"""


def test_the_module_of_a_registry_may_be_in_the_current_directory(tmp_path: Path) -> None:
    session = Session(registry=Registry.with_types(Noted))
    session.dispatch(Noted("one"))
    session.save(tmp_path / "session.json")
    (tmp_path / "types_of_places.py").write_text(TYPES)
    # `-P` leaves the current directory out of the path, as in an installed command.
    command = [sys.executable, "-P", "-m", "weakfs", "log", "--records", "session.json", "--registry"]

    def log(registry: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, registry], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True)

    done = log("types_of_places:REGISTRY")
    assert (done.returncode, done.stderr) == (0, "")
    assert "noted" in done.stdout

    refused = log("no_such_types:REGISTRY")
    assert refused.returncode == 2
    assert refused.stderr == (
        "weakfs: cannot use the registry 'no_such_types:REGISTRY': No module named 'no_such_types'; check the name, or "
        "add the module's directory to PYTHONPATH\n"
    )
