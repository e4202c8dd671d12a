"""Files and commands of a container: what commands change is recorded, and undone exactly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import IMAGE, podman
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.processes import CommandLimits, StopEvent
from weakfs.reducers.events import EntryDeleted, FileWritten
from weakfs.tools import DEFAULT_TOOLS, Toolset

__all__ = ["podman"]


@pytest.fixture(scope="module")
def opened(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerFilesystem]:
    store = tmp_path_factory.mktemp("store")
    files = ContainerFilesystem(
        image=IMAGE, store=store, runtime=podman, capabilities=("chown", "dac_override", "fowner", "mknod", "setfcap")
    )
    yield files
    files.container.remove()


@pytest.fixture
def files(opened: ContainerFilesystem) -> Iterator[ContainerFilesystem]:
    """The container as it was before the tests."""
    before = opened.snapshot()
    yield opened
    opened.restore(before)


def state(files: ContainerFilesystem) -> list[tuple[object, ...]]:
    """What a program in the container can see of its files, by walking all of them."""
    root = files.container.path_of_files()
    found: list[tuple[object, ...]] = []
    for folder, _, names in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            status = os.lstat(path)
            shown = path.removeprefix(root)
            if shown.startswith("/run") or status.st_mode & 0o170000 == 0o020000:
                continue
            content = Path(path).read_bytes() if os.path.isfile(path) and not os.path.islink(path) else b""
            target = os.readlink(path) if os.path.islink(path) else ""
            xattrs = {name: os.getxattr(path, name, follow_symlinks=False) for name in _names(path)}
            found.append(
                (shown, oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns, content, target, xattrs)
            )
    return sorted(found, key=lambda entry: str(entry[0]))


def _names(path: str) -> list[str]:
    return [name for name in os.listxattr(path, follow_symlinks=False) if not name.startswith("trusted.overlay")]


# Each changes the image's files in a way that an overlay mount keeps differently.
CHANGES = {
    "a new file": "echo new > /workspace/new",
    "a changed file": "echo more >> /etc/motd",
    "a deleted file": "rm /etc/motd",
    "a deleted directory": "rm -r /usr/lib/pkg",
    "a directory made again": "rm -r /usr/lib/pkg; mkdir /usr/lib/pkg; echo b > /usr/lib/pkg/b",
    "a file in place of a directory": "rm -r /usr/lib/pkg; echo f > /usr/lib/pkg",
    "a directory in place of a file": "rm /etc/motd; mkdir /etc/motd; echo f > /etc/motd/f",
    "a moved directory": "mv /usr/lib/pkg /var/pkg",
    "permission bits": "chmod 751 /usr/lib/pkg; chmod 4711 /usr/lib/pkg/a",
    "an owner": "chown 5:6 /etc/motd; chown -R 7:8 /usr/lib/pkg",
    "a link": "ln -s /etc/passwd /workspace/link; ln -sfn nowhere /usr/lib/pkg/a",
    "a hard link": "ln /etc/motd /workspace/motd; echo x > /workspace/x; ln /workspace/x /workspace/y",
    "a FIFO": "mkfifo /workspace/fifo",
    "the root": "chmod 711 /; echo top > /top",
    "odd names": "touch '/workspace/a b' \"/workspace/$(printf 'new\\nline')\"; mkdir '/workspace/\\back'",
    "times": "touch -t 200001010000 /etc/motd /usr/lib/pkg",
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_restore_is_exact(files: ContainerFilesystem, change: str) -> None:
    before, tree = state(files), files.tree()
    snapshot = files.snapshot()
    assert files.exec(f"set -e; {CHANGES[change]}").exit_code == 0
    changed = state(files)
    assert changed != before
    after = files.snapshot()
    files.restore(snapshot)
    assert state(files) == before
    assert files.tree().fingerprint == tree.fingerprint
    files.restore(after)
    assert state(files) == changed


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_command_that_times_out_is_undone(files: ContainerFilesystem, change: str) -> None:
    before = state(files)
    with pytest.raises(TimeoutError, match="was undone"):
        files.exec(f"{CHANGES[change]}; sleep 60", timeout=0.2)
    assert state(files) == before
