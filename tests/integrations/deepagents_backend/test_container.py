"""The backend of a deep agent over a container: files and commands of the container, each of which can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("deepagents")

from tests.containers import IMAGE
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.integrations.deepagents import WeakfsSandbox

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.slow]


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def backend(session: Session, podman: Podman, tmp_path: Path) -> Iterator[WeakfsSandbox]:
    files = ContainerFilesystem(session, image=IMAGE, runtime=podman, store=tmp_path / "store")
    yield WeakfsSandbox(session, files)
    files.container.remove()


def paths(backend: WeakfsSandbox) -> list[str]:
    return [entry["path"] for entry in backend.ls("/workspace").entries or ()]


def test_commands_and_files_are_those_of_the_container_and_are_undone(session: Session, backend: WeakfsSandbox) -> None:
    assert backend.write("/workspace/a.py", "port = 80\n").error is None
    answer = backend.execute("cat a.py /etc/motd; echo changed > /etc/motd; rm a.py; touch b; exit 3")
    assert (answer.output, answer.exit_code) == ("port = 80\nfrom the image\n", 3)
    assert paths(backend) == ["/workspace/b"]
    assert session.undo().paths == ("/etc/motd", "/workspace/a.py", "/workspace/b")
    assert backend.execute("cat a.py /etc/motd").output == "port = 80\nfrom the image\n"
    assert backend.edit("/workspace/a.py", "80", "81").error is None
    assert backend.execute("cat a.py").output == "port = 81\n"


def test_a_command_that_runs_too_long_leaves_nothing_in_the_container(backend: WeakfsSandbox) -> None:
    answer = backend.execute("touch c; sleep 60", timeout=1)
    assert answer.exit_code == 124
    assert paths(backend) == []
    assert backend.execute("ps").output.count("sleep") == 0
