"""Scratch directories: leftovers of a killed process are removed by the next one, and nothing else is."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.backends.temporary_directories import Scratch, remove_leftovers, scratch
from weakfs.tools.sections import WorkspaceSection

TOP = Path(__file__).parents[2]

CHECKOUT = """
from weakfs import InMemoryFilesystem
fs = InMemoryFilesystem()
fs.write("/src/app.py", "")
with fs.checkout() as work:
    print(work.directory, flush=True)
    input()
"""

COMMAND = """
from weakfs import Session, Toolset
from weakfs.tools.handlers import ShellOptions, shell_tool
import sys
tools = Toolset(Session(), tools=[shell_tool(ShellOptions(sandbox="off"))])
told = f"{sys.argv[1]}/begun"
tools.call("shell", {"command": f"pwd > {told}.new; mv {told}.new {told}; sleep 1000"})
"""

UNPACKING = """
import sys
from weakfs import HostMount, Session
from weakfs.tools.sections import WorkspaceSection
with WorkspaceSection(session=Session(), mounts=[HostMount(sys.argv[1])], store=sys.argv[1] + "-store") as section:
    print(section.root, flush=True)
    input()
"""


pytestmark = pytest.mark.usefixtures("never_hung")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files, of this process and of those that it starts."""
    found = tmp_path / "tmp"
    found.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(found))
    monkeypatch.setenv("TMPDIR", str(found))
    return found


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def some_name() -> str:
    return f"weakfs-scratch-{secrets.token_hex(8)}"


@pytest.mark.parametrize("program", [CHECKOUT, UNPACKING])
def test_leftovers_of_a_killed_process_are_removed_by_the_next_one(folder: Path, tmp_path: Path, program: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "file").write_text("x")
    command = [sys.executable, "-c", program, str(tmp_path / "project")]
    with subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        assert left.is_dir()

        with scratch():
            # Its owner is alive.
            assert left.is_dir()
        process.kill()
        assert process.wait() == -signal.SIGKILL

    assert left.is_dir()
    with scratch() as own:
        assert not left.exists()
        assert left_in(folder) == [Path(own).parent.name]
    assert left_in(folder) == []


@pytest.mark.slow
def test_the_workspace_of_a_command_whose_runtime_was_killed_is_removed(folder: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", COMMAND, str(tmp_path)], cwd=TOP) as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
        left = Path((tmp_path / "begun").read_text().strip())
        process.kill()
    assert left.is_relative_to(folder)

    with InMemoryFilesystem().checkout():
        assert not left.exists()
    assert left_in(folder) == []


def test_a_link_with_the_name_of_a_scratch_directory_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    link, leftover = folder / some_name(), folder / some_name()
    link.symlink_to(tmp_path / "precious")
    leftover.mkdir()
    (leftover / "link").symlink_to(tmp_path / "precious")

    remove_leftovers(str(folder))

    assert left_in(folder) == [link.name]
    assert (tmp_path / "precious" / "file").read_text() == "x"


@pytest.mark.parametrize(
    "name", ["weakfs-scratch-", "weakfs-scratch-0123456789ABCDEF", "other", "weakfs-scratch-" + "0" * 17]
)
def test_a_directory_with_another_name_stays(folder: Path, name: str) -> None:
    (folder / name).mkdir()

    remove_leftovers(str(folder))

    assert left_in(folder) == [name]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a directory of another user")
def test_a_directory_of_another_user_stays(folder: Path) -> None:
    name = some_name()
    (folder / name).mkdir()
    os.chown(folder / name, 12345, 12345)

    remove_leftovers(str(folder))

    assert left_in(folder) == [name]


def test_the_removal_of_leftovers_stops_at_its_time_limit_and_continues_later(folder: Path) -> None:
    leftover = folder / some_name()
    for number in range(100):
        (leftover / str(number)).mkdir(parents=True)
    ticks = iter(range(1000))

    remove_leftovers(str(folder), seconds=50, clock=lambda: next(ticks))
    assert 0 < len(list(leftover.iterdir())) < 100

    remove_leftovers(str(folder))
    assert left_in(folder) == []


def test_a_missing_directory_for_temporary_files_has_no_leftovers(tmp_path: Path) -> None:
    remove_leftovers(str(tmp_path / "none"))


def test_closing_a_scratch_directory_twice_is_harmless(folder: Path) -> None:
    made = Scratch()
    made.close()
    made.close()

    assert left_in(folder) == []


def test_the_temporary_directory_of_a_section_stays_while_others_come_and_go(folder: Path, tmp_path: Path) -> None:
    with WorkspaceSection(session=Session(), store=tmp_path / "store") as section:
        section.filesystem.write("/file", "x")
        with scratch():
            assert section.filesystem.read("/file").content == "x"
    assert left_in(folder) == []
