"""Mounted files of several kinds, and tools on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weakfs import (
    HostFilesystem,
    InMemoryFilesystem,
    MountedFilesystem,
    OverlayFilesystem,
    Session,
    Toolset,
)
from weakfs.filesystem import Filesystem

Mount = Callable[..., MountedFilesystem]


@pytest.fixture(params=["memory", "host", "overlay"])
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Mount:
    """Mount an empty filesystem: in memory, in a directory, or a layer over one."""
    (tmp_path / "root").mkdir()

    def make(mounted_at: str = "/workspace", **options: Any) -> MountedFilesystem:
        session = Session(session_id="s")
        files: Filesystem
        if request.param == "memory":
            files = InMemoryFilesystem(session, **options)
        elif request.param == "host":
            files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store", **options)
        else:
            files = OverlayFilesystem(HostFilesystem(tmp_path / "root", store=tmp_path / "store"), session, **options)
        return MountedFilesystem(files, mounted_at)

    return make


def toolset(files: MountedFilesystem, **options: Any) -> Toolset:
    assert files.session is not None
    return Toolset(files.session, files, **options)


def call(tools: Toolset, name: str, **arguments: object) -> Any:
    result = tools.call(name, arguments)
    assert result.success, result.message
    return result.value
