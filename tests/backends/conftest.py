"""An empty directory of the host, a root with a secret outside it, and the files of a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import IMAGE
from tests.models.house import House
from weakfs.backends.container import ContainerFilesystem, Podman


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Create a directory with files outside of it, and check that these are unchanged at the end."""
    (tmp_path / "house").mkdir()
    house = House(tmp_path / "house")
    yield house
    assert house.outside() == house.before


@pytest.fixture(scope="module")
def container_files(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerFilesystem]:
    store = tmp_path_factory.mktemp("store")
    files = ContainerFilesystem(
        image=IMAGE, store=store, runtime=podman, capabilities=("chown", "dac_override", "fowner", "mknod", "setfcap")
    )
    yield files
    files.container.remove()


@pytest.fixture
def files(container_files: ContainerFilesystem) -> Iterator[ContainerFilesystem]:
    """The files of a container, which are restored after each test."""
    before = container_files.snapshot()
    yield container_files
    container_files.restore(before)
