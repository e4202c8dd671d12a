"""The conformance suite in a container: each filesystem is a directory of one running container."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.conformance.places import Open, Places, ticking
from tests.sampling import is_exhaustive
from weakfs import Session
from weakfs.backends.container import Container, ContainerFilesystem
from weakfs.testing import FilesystemConformance
from weakfs.testing.conformance.entries.link_cases import LinkCases
from weakfs.testing.conformance.harness import FilesystemCases
from weakfs.testing.conformance.states.snapshot_cases import SnapshotCases


class SomeCases(LinkCases, SnapshotCases):
    """The cases most likely to differ from a host directory, whose code is used for everything else."""


Cases: type[FilesystemCases] = FilesystemConformance if is_exhaustive() else SomeCases


@pytest.mark.thinned
@pytest.mark.sampled(by_rule=True)
class TestContainer(Places, Cases):  # type: ignore[misc, valid-type]  # all cases, or some
    numbers = count()

    @pytest.fixture(autouse=True)
    def _places(self, place: Path, shared_container: Container) -> None:
        self.place = place
        self.container = shared_container

    def new_place(self) -> Open:
        number = next(self.numbers)
        root = f"/places/conformance{number}"
        (Path(self.container.path_of_files()) / root[1:]).mkdir(mode=0o755)
        session, store = Session(clock=ticking()), self.place / f"store{number}"
        return lambda options: ContainerFilesystem(session, container=self.container, root=root, store=store, **options)
