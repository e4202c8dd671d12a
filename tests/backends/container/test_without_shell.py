"""Containers whose commands removed what containers need to start: their files stay accessible and can be restored."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import containers
from tests.containers import IMAGE
from tests.sampling import sample
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman, PodmanError
from weakfs.backends.container.layers import kept_layer
from weakfs.backends.container.layers.attributes import AttributeRestore
from weakfs.backends.container.lifecycle.conmon import monitors_of

# What an overlay mount stores in a special way.
pytestmark = pytest.mark.slow

CHANGED = (
    "echo x > x; ln x y; mkfifo fifo; ln -s x l; rm -r /usr/lib; mkdir -p /usr/lib/pkg; rm /etc/motd; mkdir /etc/motd; "
    "chmod 2751 /var; mv /places /var/places; touch -t 200001010000 /etc/passwd; chown -h 5:6 l x"
)

REMOVED = {
    "the shell": "rm /bin/sh",
    "all programs": "busybox rm -r /bin",
    # Except for the working directory, and /etc/mtab, which Podman puts back when it starts a container.
    "everything": "busybox rm -rf /[!ew]* /etc/[!m]* /etc/motd /workspace/* 2> /dev/null",
    "the program's contents": "busybox cp -p /etc/passwd /bin/busybox.new; busybox mv /bin/busybox.new /bin/busybox",
    "the right to run it": "chmod 644 /bin/busybox",
    "what it should do": "rm /bin/sh; ln -s true /bin/sh",
}


def state(files: ContainerFilesystem) -> list[tuple[object, ...]]:
    """Return what a program sees of the files, without mount points, which Podman creates anew."""
    hidden = {f"/{'/'.join(segments)}" for segments in files._root.hidden}
    return [entry for entry in containers.state(files) if entry[0] not in hidden]


@pytest.fixture
def files(podman: Podman, tmp_path: Path) -> Iterator[ContainerFilesystem]:
    capabilities = ("chown", "dac_override", "fowner")
    files = ContainerFilesystem(
        Session(), image=IMAGE, store=tmp_path / "store", runtime=podman, capabilities=capabilities
    )
    yield files
    files.container.remove()


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("removed", sample(list(REMOVED)))
def test_a_container_that_does_not_start_with_its_files_has_them(files: ContainerFilesystem, removed: str) -> None:
    files.exec(CHANGED)
    whole, snapshot = state(files), files.snapshot()
    files.exec(REMOVED[removed])
    before = state(files)
    assert before != whole
    for _ in range(2):
        files.container.stop()
        assert state(files) == before
        assert files.exec("true").changed == ()
    files.container.stop()
    files.restore(snapshot)
    assert state(files) == whole
    files.container.stop()
    assert files.exec("busybox cat x").stdout == "x\n"
    assert not kept_layer.is_kept(files.container._inspect().upper or "")


def test_another_process_undoes_the_command_that_removed_the_shell(
    podman: Podman, files: ContainerFilesystem, tmp_path: Path
) -> None:
    before = files.session.snapshot()
    files.exec("echo x > x; rm /bin/sh")
    files.session.save(tmp_path / "session.json")
    files.close()
    for is_there in (True, False):
        session = Session.load(tmp_path / "session.json")
        again = ContainerFilesystem(session, image=IMAGE, store=tmp_path / "store", runtime=podman)
        assert again.read("x").content == "x\n"
        assert again.exec("true").exit_code == 127
        if is_there:
            again.container.remove()
        else:
            session.rollback(before.snapshot_id)
            assert again.exec("ls; echo on").stdout == "on\n"
            again.container.remove()


@pytest.mark.usefixtures("never_hung")
def test_a_sparse_file_that_takes_hours_to_hash_is_restored(files: ContainerFilesystem) -> None:
    files.exec("echo x > x; rm /bin/sh")
    big = f"{files.container.path_of_files()}/workspace/big"
    os.truncate(os.open(big, os.O_CREAT | os.O_WRONLY), 40 << 30)
    files.container.stop()
    with pytest.raises(OSError, match="cannot scan '/workspace/big': it is a sparse file"):
        files.exec("busybox true")
    assert files.read("x").content == "x\n"
    os.remove(f"{files.container.path_of_files()}/workspace/big")
    assert files.exec("busybox true").changed == ()


@pytest.mark.parametrize("is_killed", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_an_interrupted_restore_of_files_is_repeated(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    files.exec(f"{CHANGED}; rm /bin/sh")
    before = state(files)
    files.container.stop()

    def fail(*_: object) -> None:
        raise KeyboardInterrupt if is_killed else OSError("the disk is full")

    monkeypatch.setattr(AttributeRestore, "run", fail)
    if is_killed:
        monkeypatch.setattr(type(files.container), "stop", fail)
    with pytest.raises((OSError, KeyboardInterrupt)):
        files.read("x")
    monkeypatch.undo()
    if is_killed:
        files.container._let_go()
    assert files.read("x").content == "x\n"
    assert state(files) == before


def test_a_restored_layer_that_is_half_removed_is_not_put_back(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.exec(f"{CHANGED}; rm /bin/sh")
    before = state(files)
    files.container.stop()

    def remove_halfway(path: str, **_: object) -> None:
        if os.path.isdir(path):
            os.remove(f"{path}/workspace/x")
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", remove_halfway)
    monkeypatch.setattr(type(files.container), "stop", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        files.read("x")
    monkeypatch.undo()
    files.container._let_go()
    assert files.read("x").content == "x\n"
    assert state(files) == before


@pytest.mark.parametrize("has_monitor", [True, False])
@pytest.mark.parametrize("killed", [1, 2, 3])
def test_a_start_whose_call_was_killed_does_not_continue_with_a_layer_that_was_set_aside(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch, has_monitor: bool, killed: int
) -> None:
    files.exec(CHANGED)
    before = state(files)
    files.container.stop()
    run = Podman.run
    starts: list[tuple[str, ...]] = []

    def start_and_fail(podman: Podman, *words: str, input: bytes | None = None) -> bytes:
        said = run(podman, *words, input=input)
        if words[0] == "start" and len(starts) < killed:
            starts.append(words)
            if not has_monitor:
                for pid in monitors_of(files.container.container_id):
                    os.kill(pid, signal.SIGKILL)
            raise PodmanError("cannot start with podman: it ended with the exit code -9")
        return said

    monkeypatch.setattr(Podman, "run", start_and_fail)
    for _ in range(3):
        try:
            files.read("x")
            break
        except PodmanError:
            assert starts
    assert files.exec("echo on").stdout == "on\n"
    assert state(files) == before
    assert len(starts) == killed


def test_a_container_that_cannot_be_started_can_be_used_once_it_can(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.exec(CHANGED)
    before, snapshot = state(files), files.snapshot()
    files.container.stop()
    run = Podman.run

    def fail(podman: Podman, *words: str, input: bytes | None = None) -> bytes:
        if words[0] == "start":
            raise PodmanError("cannot start with podman: it is broken")
        return run(podman, *words, input=input)

    monkeypatch.setattr(Podman, "run", fail)
    for _ in range(2):
        with pytest.raises(PodmanError, match="is broken"):
            files.read("x")
        with pytest.raises(PodmanError, match="is broken"):
            files.restore(snapshot)
        with pytest.raises(PodmanError, match="is broken"):
            files.exec("true")
    monkeypatch.undo()
    assert files.read("x").content == "x\n"
    assert state(files) == before


def test_an_image_without_a_shell_is_named(podman: Podman, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("file"))
    podman.run("import", "--quiet", "-", "localhost/weakfs-empty:latest", input=out.getvalue())
    try:
        with caplog.at_level(logging.WARNING), pytest.raises(PodmanError, match="/bin/sh"):
            ContainerFilesystem(image="localhost/weakfs-empty:latest", store=tmp_path, runtime=podman)
        assert "over its image alone" not in caplog.text
    finally:
        podman.run("rmi", "localhost/weakfs-empty:latest")
