"""A Podman that fails, hangs, prints something else or is killed, at each of its calls: errors are clear, nothing is
left running, and files are as before a call or after it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.containers import IMAGE
from tests.sampling import is_exhaustive
from weakfs import Session
from weakfs.backends.container import (
    ContainerFilesystem,
    ContainerNotFound,
    ImageNotFound,
    Podman,
    PodmanError,
    PodmanUnavailable,
    containers,
    remove_unused,
)
from weakfs.backends.container.lifecycle import podman as calls
from weakfs.backends.container.lifecycle.conmon import monitors_of
from weakfs.backends.container.lifecycle.listing import of_sessions
from weakfs.backends.container.lifecycle.podman import find_image, inspect, labelled

# The processes of this test run are recognized by how long they sleep.
HANGING = 100_000 + os.getpid()

# What the program does at the call that fails.
WAYS = {
    "fails": "echo 'Error: it is broken' >&2; exit 125",
    "fails afterwards": '"$REAL" "$@" >/dev/null; echo "Error: it is broken" >&2; exit 125',
    "prints something else": r"printf 'gar\377bage {}\n'",
    "prints other JSON": "echo '[{\"Id\": 1}]'",
    "is killed": "kill -9 $$",
    "is killed afterwards": '"$REAL" "$@" >/dev/null; kill -9 $$',
    "hangs": f"sleep {HANGING} & sleep {HANGING}",
    "hangs afterwards": f'"$REAL" "$@" >/dev/null; sleep {HANGING} & sleep {HANGING}',
}

# The calls that create and start the container.
CREATED, STARTED = 3, 6


def program_in(folder: Path, way: str) -> Path:
    """Create a folder with a Podman that misbehaves at the call whose number is in the folder's file `wrong`."""
    real = shutil.which("podman") or ""
    folder.mkdir()
    program = folder / "podman"
    program.write_text(
        f"#!/bin/sh\nREAL={shlex.quote(real)}\ncd {shlex.quote(str(folder))}\n"
        "number=$(($(cat number 2>/dev/null) + 1)); echo $number > number\n"
        f'[ "$number" = "$(cat wrong 2>/dev/null)" ] || exec "$REAL" "$@"\n{way}\n'
    )
    program.chmod(0o755)
    return program


# The program, without a container


@pytest.mark.parametrize("said", ["gar", "[{}]", "[]", "{}", "[1]", "null", '[{"Id": 1, "State": 2}]'])
def test_unreadable_output_is_an_error_that_says_so(tmp_path: Path, said: str) -> None:
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\necho {shlex.quote(said)}\n")
    program.chmod(0o755)
    podman = Podman(str(program))
    with pytest.raises(PodmanError, match=r"cannot read what .* reports about containers"):
        inspect(podman, "one")
    with pytest.raises(PodmanError, match=r"cannot read what .* reports about the image 'one'"):
        find_image(podman, "one")


def test_a_failing_program_is_not_mistaken_for_a_missing_image_or_container(tmp_path: Path) -> None:
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\necho 'Error: open /storage: no such file or directory' >&2; exit 125\n")
    program.chmod(0o755)
    podman = Podman(str(program))
    with pytest.raises(PodmanError, match="open /storage"):
        inspect(podman, "one")
    with pytest.raises(PodmanError, match="open /storage"):
        find_image(podman, "one")
    with pytest.raises(PodmanError, match="open /storage"):
        labelled(podman, "weakfs.session")


def test_a_missing_image_or_container_is_named(tmp_path: Path) -> None:
    program = tmp_path / "podman"
    program.write_text('#!/bin/sh\necho "[]"; echo "Error: inspecting object: no such $1 one" >&2; exit 125\n')
    program.chmod(0o755)
    with pytest.raises(ImageNotFound, match="pull one'"):
        find_image(Podman(str(program)), "one")
    with pytest.raises(ContainerNotFound, match="cannot find the container 'one'"):
        inspect(Podman(str(program)), "one")


def test_a_program_is_asked_whether_it_can_be_used(tmp_path: Path) -> None:
    program = tmp_path / "podman"
    assert f"there is no program {str(program)!r}" in (Podman(str(program)).problem() or "")
    program.write_text("#!/bin/sh\necho 'Error: no user namespaces' >&2; exit 125\n")
    program.chmod(0o755)
    assert "no user namespaces" in (Podman(str(program)).problem() or "")
    program.write_text("#!/bin/sh\necho 5.0\n")
    assert Podman(str(program)).problem() is None


def test_a_program_that_hangs_is_killed_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "podman"
    told = tmp_path / "pid"
    program.write_text(f"#!/bin/sh\nsleep 1000 & echo $! > {told}.new; mv {told}.new {told}; sleep 1000\n")
    program.chmod(0o755)

    class Impatient(subprocess.Popen[bytes]):
        """Waits until the program has begun, so that the time limit ends right after that."""

        def communicate(self, input: bytes | None = None, timeout: float | None = None) -> tuple[bytes, bytes]:
            while not told.exists():
                time.sleep(0.001)
            return super().communicate(input, timeout)

    monkeypatch.setattr(subprocess, "Popen", Impatient)
    monkeypatch.setattr(calls, "PATIENCE", 0.01)
    with pytest.raises(PodmanUnavailable, match=r"cannot stop with .*: it was killed because it had not ended"):
        Podman(str(program)).run("stop", "one")
    pid = int(told.read_text())
    while _runs(pid):
        time.sleep(0.001)


def _runs(pid: int) -> bool:
    with suppress(OSError):
        return b" Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    return False


# The life of a container


def life(session: Session, podman: Podman, folder: Path) -> None:
    """Create a container, use it, stop it, start it, find it again, and remove it."""
    files = ContainerFilesystem(session, image=IMAGE, store=folder / "store", runtime=podman)
    try:
        files.exec("echo 1 > a; echo 1 > b")
        session.save(folder / "session.json")
        files.container.stop()
        files.exec("echo 2 > a; echo 2 > b")
        session.save(folder / "session.json")
    finally:
        files.close()
    loaded = Session.load(folder / "session.json")
    files = ContainerFilesystem(loaded, image=IMAGE, store=folder / "store", runtime=podman)
    try:
        assert files.exec("cat a b").stdout == "2\n2\n"
    finally:
        files.close()
    remove_unused(podman, session_id=session.session_id)


@pytest.mark.slow
@pytest.mark.usefixtures("never_hung")
@pytest.mark.parametrize("way", [*WAYS] if is_exhaustive() else ["is killed afterwards"])
def test_a_program_that_misbehaves_in_one_call(
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    program = program_in(tmp_path / "bin", WAYS[way])
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    faulty = Podman(options=podman.options)
    (tmp_path / "right").mkdir()
    life(Session(), faulty, tmp_path / "right")
    number = program.parent / "number"
    total = int(number.read_text())
    for wrong in range(1, total + 1) if is_exhaustive() else (CREATED, STARTED):
        session, folder = Session(), tmp_path / str(wrong)
        folder.mkdir()
        number.write_text("0")
        (program.parent / "wrong").write_text(str(wrong))
        if way.startswith("hangs"):
            monkeypatch.setattr(calls, "PATIENCE", 5.0)
        # Any other exception is a bug in this library.
        with suppress(OSError):
            life(session, faulty, folder)
        monkeypatch.setattr(calls, "PATIENCE", 300.0)
        (program.parent / "wrong").unlink()

        for one in of_sessions(podman, session_id=session.session_id):
            while monitors_of(one.container_id):
                time.sleep(0.005)
        if (folder / "session.json").exists():
            session = Session.load(folder / "session.json")
        files = ContainerFilesystem(session, image=IMAGE, store=folder / "store", runtime=podman)
        a, b = (files.read(name).content if files.exists(name) else None for name in ("a", "b"))
        assert a == b
        assert a in ("1\n", "2\n") or not (folder / "session.json").exists()
        assert files.exec("echo on").stdout == "on\n"
        files.close()
        remove_unused(podman, session_id=session.session_id)
        assert containers(podman, session_id=session.session_id) == ()
    # Those that were killed may die a moment later.
    while [pid for pid in os.listdir("/proc") if pid.isdigit() and _command(pid) == b"sleep\000%d\0" % HANGING]:
        time.sleep(0.01)


def _command(pid: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.mark.slow
def test_a_container_whose_stop_fails_is_released(
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, store=tmp_path, runtime=podman)
    files.exec("echo kept > kept")
    run = Podman.run

    def fail(podman: Podman, *words: str, input: bytes | None = None) -> bytes:
        if words[0] == "stop":
            raise PodmanError("cannot stop with podman: it is broken")
        return run(podman, *words, input=input)

    monkeypatch.setattr(Podman, "run", fail)
    with pytest.raises(PodmanError, match="is broken"):
        files.close()
    monkeypatch.undo()
    assert files.container.is_closed
    while monitors_of(files.container.container_id):
        time.sleep(0.005)
    again = ContainerFilesystem(session, image=IMAGE, store=tmp_path, runtime=podman)
    try:
        assert again.exec("cat kept").stdout == "kept\n"
    finally:
        again.container.remove()
