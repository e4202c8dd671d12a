"""The backend in the guide passes the conformance suite."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.docs.page import blocks
from tests.docs.test_pages import DOCS
from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy
from weakfs.testing import FilesystemConformance, Prepare

GUIDE = DOCS / "howto" / "own-backend.md"


def backend() -> Any:
    """Return the class that the guide defines."""
    names: dict[str, Any] = {}
    found = {block.title: block.text for block in blocks(GUIDE.read_text(encoding="utf-8"))}
    exec(compile(found["archive_filesystem.py"], str(GUIDE), "exec"), names)
    return names["ArchiveFilesystem"]


# Thousands of archives are written: a sample of the same cases runs over every backend of the library.
@pytest.mark.exhaustive
class TestArchiveFilesystem(FilesystemConformance):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        path = Path(mkdtemp(dir=self.folder)) / "files.tar"
        make = backend()
        if prepare is not None:
            prepare(make(path))
        made: Filesystem = make(path, limits=limits or Limits(), read_only=read_only, follow_symlinks=follow_symlinks)
        return made
