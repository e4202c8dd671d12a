"""The session of a filesystem that was given none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, MountedFilesystem, OverlayFilesystem, Session
from weakfs.filesystem import Filesystem


@pytest.mark.parametrize("backend", ["memory", "host"])
def test_a_filesystem_without_a_session_makes_a_complete_one(tmp_path: Path, backend: str) -> None:
    (tmp_path / "files").mkdir()
    host = HostFilesystem(tmp_path / "files", store=tmp_path / "store")
    files: Filesystem = InMemoryFilesystem() if backend == "memory" else host
    files.write("/a.txt", "one\n")

    session = files.session if isinstance(files, InMemoryFilesystem) else host.session

    assert isinstance(session, Session)
    assert [line.text for line in session.blame("a.txt")] == ["one"]
    assert session.sql("select path from files").rows == (("/a.txt",),)


def test_its_merges_take_globs() -> None:
    files = InMemoryFilesystem()
    session = files.session
    assert session is not None
    fork = session.fork()
    files.bind(fork).write("/a.txt", "theirs\n")
    files.write("/a.txt", "ours\n")

    session.merge(fork, on_conflict={"*.txt": "theirs"})

    assert files.read("/a.txt").content == "theirs\n"


def test_it_is_complete_if_only_the_backend_was_imported() -> None:
    code = "from weakfs.backends import InMemoryFilesystem; print(type(InMemoryFilesystem().session).blame.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "blame\n"


def test_a_filesystem_is_not_bound_to_a_new_session_by_mistake(tmp_path: Path) -> None:
    files = InMemoryFilesystem()
    (tmp_path / "files").mkdir()
    host = HostFilesystem(tmp_path / "files", store=tmp_path / "store")
    for filesystem in (files, host, OverlayFilesystem(files, Session()), MountedFilesystem(files, "/workspace")):
        with pytest.raises(TypeError, match="cannot bind a filesystem to None; pass a session, such as a fork"):
            filesystem.bind(None)  # type: ignore[arg-type]
