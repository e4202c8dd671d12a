"""The conformance suite in a container: each filesystem is a directory of one running container."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.conformance.places import Open, Places, ticking
from tests.containers import IMAGE, podman
from weakfs import Session
from weakfs.backends.container import Container, ContainerFilesystem, Podman
from weakfs.testing import FilesystemConformance

__all__ = ["podman"]


@pytest.fixture(scope="module")
def container(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    files = ContainerFilesystem(image=IMAGE, store=tmp_path_factory.mktemp("store"), runtime=podman)
    yield files.container
    files.container.remove()


@pytest.mark.sampled(by_rule=True)
class TestContainer(Places, FilesystemConformance):
    numbers = count()

    @pytest.fixture(autouse=True)
    def _places(self, place: Path, container: Container) -> None:
        self.place = place
        self.container = container

    def new_place(self) -> Open:
        number = next(self.numbers)
        root = f"/places/{number}"
        (Path(self.container.path_of_files()) / root[1:]).mkdir(mode=0o755)
        session, store = Session(clock=ticking()), self.place / f"store{number}"
        return lambda options: ContainerFilesystem(session, container=self.container, root=root, store=store, **options)
