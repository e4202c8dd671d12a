"""The command `weakfs mount`: what programs do there is in the session afterwards, even if it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.forked_command import run_command
from tests.integrations.mount.conftest import Run
from weakfs import InMemoryFilesystem, Session

WEAKFS = (sys.executable, "-m", "weakfs")


@contextmanager
def mounted(where: Path | str, place: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([*WEAKFS, "mount", str(where), str(place), *options], stdout=-1, stderr=-1, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("mounted at "), process.communicate()[1]
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=300)


def weakfs(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_command(*map(str, arguments))


def wait_until_left(place: Path) -> None:
    """Wait until no process is left that unmounts the directory after the mount's process has died."""
    while list(unmounting(place)):
        time.sleep(0.02)


def unmounting(place: Path) -> Iterator[int]:
    """The process that waits until the mount's process has died, and then unmounts."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            program, *arguments = path.read_bytes().split(b"\0")
            if program.endswith(b"fusermount3") and os.fsencode(place) in arguments:
                yield int(path.parent.name)


@pytest.mark.slow
def test_a_session_file_is_saved_when_the_mount_ends(tmp_path: Path, place: Path, run: Run) -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a", "1\n")
    session.save(tmp_path / "s.json")
    with mounted(tmp_path / "s.json", place) as process:
        assert run("cat a; echo 2 > b; rm a") == "1\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
    assert weakfs("ls", tmp_path / "s.json").stdout.endswith(" b\n")
    with mounted(tmp_path / "s.json", place, "--at", "1"):
        assert run("cat a") == "1\n"
        assert subprocess.run(["touch", str(place / "c")], capture_output=True, timeout=300).returncode


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("engine", ["folder", "sqlite"])
def test_a_killed_mount_loses_nothing_that_was_closed(tmp_path: Path, place: Path, run: Run, engine: str) -> None:
    where = f"{engine}:{tmp_path}/stored"
    with mounted(where, place) as process:
        run("mkdir d; for n in 1 2 3 4 5; do echo $n > d/$n; done; mv d/5 e")
        unfinished = os.open(place / "open", os.O_CREAT | os.O_WRONLY)
        os.write(unfinished, b"never stored")
        process.kill()
        process.wait(300)
        with suppress(OSError):
            os.close(unfinished)
        wait_until_left(place)
    with mounted(where, place):
        assert run("cat d/* e; wc -c < open") == "1\n2\n3\n4\n5\n0\n"
        run("rm -r d")
    assert "/d/5" in weakfs("timeline", where).stdout


@pytest.mark.slow
def test_a_dead_mount_is_replaced(tmp_path: Path, run: Run, place: Path) -> None:
    where = f"folder:{tmp_path}/stored"
    with mounted(where, place) as process:
        run("echo 1 > a")
        # The process that unmounts does not always notice the death; here it is killed too.
        for number in unmounting(place):
            os.kill(number, signal.SIGKILL)
        wait_until_left(place)
        process.kill()
        process.wait(300)
    with pytest.raises(OSError, match="not connected"):
        os.stat(place)
    with mounted(where, place):
        assert run("cat a") == "1\n"


def test_an_error_says_what_cannot_be_mounted(tmp_path: Path, place: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    Session().save(tmp_path / "s.json")
    for arguments, message in [
        (("none.json", place, "--read-only"), "cannot read the session 'none.json'"),
        ((tmp_path / "s.json", tmp_path / "none"), "no such"),
        ((tmp_path / "s.json", tmp_path / "full"), "is not empty"),
        ((tmp_path / "s.json", place, "--at", "tag"), "cannot look at 'tag'"),
    ]:
        done = weakfs("mount", *arguments)
        assert done.returncode == 1
        assert message in done.stderr.lower()
        assert "Traceback" not in done.stderr
