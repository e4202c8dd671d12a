"""Processes of an attached container may put links in place of files while these are changed; none is followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from weakfs.backends.container.layers.attributes import AttributeRestore
from weakfs.backends.container.layers.layer import Attributes, Layer
from weakfs.backends.container.rootfs import ContainerDirectory
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.snapshots.directory.directory import HostDirectory

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives the entries of a container to its users"
)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o600)
    return secret


@pytest.fixture
def place(tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a set-id file that becomes a link to a file of the host when its owner changes."""
    place = tmp_path / "container"
    place.mkdir()
    (place / "a").write_text("a")
    (place / "a").chmod(0o4755)
    chown = os.chown

    def swap(name: str | bytes, uid: int, gid: int, *, dir_fd: int, follow_symlinks: bool) -> None:
        chown(name, uid, gid, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        (place / "a").unlink()
        (place / "a").symlink_to(secret)

    monkeypatch.setattr(os, "chown", swap)
    return place


def test_the_bits_of_a_new_file_are_not_set_through_a_link(place: Path, secret: Path) -> None:
    directory = os.open(place, os.O_RDONLY)
    ContainerDirectory("a container", directory, (1000, 1000)).on_created(directory, b"a")
    assert (place / "a").is_symlink()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_the_bits_of_a_restored_file_are_not_set_through_a_link(place: Path, secret: Path) -> None:
    layer = Layer(EMPTY_TREE, Attributes(), "")
    restore = AttributeRestore(HostDirectory(str(place)), None, (), None, layer, EMPTY_TREE)
    restore._set(("a",), (1000, 1000), {})
    assert (place / "a").is_symlink()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
