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


@pytest.mark.slow
def test_a_session_file_that_another_program_saved_meanwhile_is_not_overwritten(
    tmp_path: Path, place: Path, run: Run
) -> None:
    where = tmp_path / "s.json"
    Session(session_id="first").save(where)
    with mounted(where, place) as process:
        run("echo 1 > a")
        Session(session_id="other").save(where)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "another program saved it meanwhile" in message
    assert Session.load(where).session_id == "other"
    (kept,) = (path for path in tmp_path.iterdir() if path.name.startswith("s.json."))
    assert str(kept) in message
    assert InMemoryFilesystem(Session.load(kept)).read("/a").content == "1\n"


@pytest.mark.slow
def test_what_cannot_be_saved_is_saved_elsewhere(
    tmp_path: Path, place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    where = tmp_path / "gone" / "s.json"
    Session().save(where)
    with mounted(where, place) as process:
        run("echo 1 > a")
        where.unlink()
        where.parent.rmdir()
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=300)
    assert process.returncode == 1
    (kept,) = (tmp_path / "temporary").iterdir()
    assert str(kept) in message
    assert InMemoryFilesystem(Session.load(kept)).read("/a").content == "1\n"


def test_a_session_file_is_saved_even_if_the_mount_ends_with_an_error(tmp_path: Path) -> None:
    from weakfs.cli.commands.integrations.mount import _session

    where = tmp_path / "s.json"
    Session().save(where)
    with (
        pytest.raises(RuntimeError, match="unmounted in a strange way"),
        _session(str(where), None, None, read_only=False) as session,
    ):
        InMemoryFilesystem(session).write("/a", "1\n")
        raise RuntimeError("unmounted in a strange way")
    assert InMemoryFilesystem(Session.load(where)).read("/a").content == "1\n"


def test_a_recording_of_another_program_is_mounted_read_only_or_not_at_all(tmp_path: Path, place: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    recording.write_bytes(Path("fixtures/transcripts/shop.jsonl").read_bytes())
    before = recording.read_bytes()
    done = weakfs("mount", recording, place)
    assert done.returncode == 1
    assert "recorded session of another program" in done.stderr
    assert recording.read_bytes() == before


@pytest.mark.slow
def test_a_mount_shows_what_other_processes_do(tmp_path: Path, place: Path, run: Run) -> None:
    where = f"folder:{tmp_path}/stored"
    with mounted(where, place):
        run("echo 1 > a")
        with Session.open(where, on_conflict="merge") as session:
            InMemoryFilesystem(session).write("/b", "2\n")
        run("until test -e b; do sleep 0.1; done; cat b")


def test_an_error_says_what_cannot_be_mounted(tmp_path: Path, place: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    Session().save(tmp_path / "s.json")
    for arguments, message in [
        (("none.json", place, "--read-only"), "cannot read the session 'none.json'"),
        ((tmp_path / "s.json", tmp_path / "none"), "no such"),
        ((tmp_path / "s.json", tmp_path / "full"), "is not empty"),
        ((tmp_path / "s.json", place, "--at", "tag"), "cannot go to 'tag'"),
    ]:
        done = weakfs("mount", *arguments)
        assert done.returncode == 1
        assert message in done.stderr.lower()
        assert "Traceback" not in done.stderr
