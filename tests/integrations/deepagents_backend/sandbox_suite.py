"""The sandbox suite of langchain-tests over sessions in memory and on the host."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_tests.integration_tests import SandboxIntegrationTests

from weakfs import HostFilesystem, InMemoryFilesystem, Session
from weakfs.filesystem import Limits
from weakfs.integrations.deepagents import WeakfsSandbox
from weakfs.processes import Bubblewrap
from weakfs.tools.handlers import ShellOptions

pytestmark = [
    pytest.mark.usefixtures("never_hung"),
    pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox"),
]

# The suite runs `python`, which may not be among the system's programs.
SHELL = ShellOptions(
    max_output=1 << 20,
    readable=(sys.base_prefix,),
    environment={"PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin"},
)


class _Suite(SandboxIntegrationTests):
    @property
    def sandbox_root_dir(self) -> str:
        return "/workspace/suite"


class TestInMemory(_Suite):
    @pytest.fixture(scope="class")
    def sandbox(self) -> SandboxBackendProtocol:
        session = Session()
        return WeakfsSandbox(session, InMemoryFilesystem(session, limits=Limits()), shell=SHELL, dialect="sandbox")


class TestOnHost(_Suite):
    @pytest.fixture(scope="class")
    def sandbox(self, tmp_path_factory: pytest.TempPathFactory) -> SandboxBackendProtocol:
        place: Path = tmp_path_factory.mktemp("sandbox")
        (place / "root").mkdir()
        session = Session()
        files = HostFilesystem(place / "root", session=session, store=place / "store")
        return WeakfsSandbox(session, files, shell=SHELL, dialect="sandbox")
