"""Host trees that are very deep, and files that do not fit into memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem, HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.snapshots.directory import openat2

DEPTH = 1000

MOUNT = """
import resource, sys
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
fs = InMemoryFilesystem(mounts=[HostMount(sys.argv[1])], limits=Limits(max_file_size=None))
print([entry.path for entry in fs.list()], fs.mounts[0].skipped)
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "root"
    root.mkdir()
    yield root
    # `shutil.rmtree` recurses.
    subprocess.run(["rm", "-rf", root], check=True)


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    here = os.open(root, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=here))
    os.close(here)
    return HostFilesystem(root, session=Session(), store=tmp_path / "store")


@pytest.fixture(params=["one call", "a call a segment"])
def opened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "a call a segment":
        monkeypatch.setattr(openat2, "is_available", lambda: False)
    elif not openat2.is_available():
        pytest.skip("the kernel has no openat2, or a sandbox forbids it")
    return str(request.param)


@pytest.mark.slow
def test_a_very_deep_tree_can_be_snapshotted_changed_and_restored(fs: HostFilesystem) -> None:
    before = fs.tree().fingerprint
    snapshot = fs.session.snapshot()
    assert len(list(fs.walk())) == DEPTH + 1
    assert len(fs.glob("f")) == 1
    assert fs.statistics().directory_count == DEPTH
    fs.move("/d", "/e")
    assert fs.delete("/e", recursive=True) == DEPTH + 1
    fs.session.rollback(snapshot)
    assert fs.tree().fingerprint == before


@pytest.mark.parametrize("name", ["d", "n" * 200])
def test_a_deep_path_never_leads_through_a_link(opened: str, root: Path, tmp_path: Path, name: str) -> None:
    path = "/" + "/".join([name] * 30)
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store")
    fs.write(f"{path}/f", "inside")
    assert fs.read(f"{path}/f").content == "inside"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("outside")
    link = root / Path(*[name] * 15)
    link.rename(tmp_path / "moved")
    link.symlink_to(tmp_path / "outside")
    with pytest.raises(OSError):  # noqa: PT011  # the wording differs between systems
        fs._root.directory.open_file((*[name] * 15, "f"))
    with pytest.raises(PermissionError):
        fs.read(f"{path}/f")


def test_a_missing_deep_path_is_a_missing_path(opened: str, root: Path, tmp_path: Path) -> None:
    fs = HostFilesystem(root, session=Session(), store=tmp_path / "store")
    fs.mkdir("/" + "/".join("abcdefghijkl"))
    fs.write("/a/b/c/file", "text")
    assert not fs.exists("/" + "/".join("abcdefghijkx") + "/f")
    with pytest.raises(NotADirectoryError):
        fs.read("/a/b/c/file/" + "/".join("abcdefghijkl"))


def test_a_mount_opens_no_file_above_the_limit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.truncate(os.open(root / "big", os.O_CREAT | os.O_WRONLY), 1 << 40)
    (root / "small").write_text("text")
    opened: list[object] = []
    really = os.open

    def counted(name: Any, *given: Any, **named: Any) -> int:
        opened.append(name)
        return really(name, *given, **named)

    monkeypatch.setattr(os, "open", counted)
    fs = InMemoryFilesystem(mounts=[HostMount(str(root))], limits=Limits(max_file_size=1 << 20))
    assert "big" not in opened
    assert "small" in opened
    assert [(path, str(1 << 40) in reason) for path, reason in fs.mounts[0].skipped] == [("/big", True)]


@pytest.mark.slow
def test_a_mount_reports_a_file_that_does_not_fit_into_memory(root: Path) -> None:
    with open(root / "big", "wb") as stream:
        stream.truncate(1 << 40)
    (root / "small").write_text("text")
    ran = subprocess.run([sys.executable, "-c", MOUNT, root], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("['/small'] (('/big', 'has 1099511627776 bytes")
