"""One file that a patch updates."""

from __future__ import annotations

import pytest

from weakfs.backends import InMemoryFilesystem
from weakfs.editing import HunkRejected, PatchError, PatchReport, apply_patch

# The same lines in two blocks.
TWICE = "class A:\n    def run(self):\n        x = 1\n\nclass B:\n    def run(self):\n        x = 1\n"


def filesystem(content: str | bytes, path: str = "/a") -> InMemoryFilesystem:
    fs = InMemoryFilesystem()
    fs.write_bytes(path, content if isinstance(content, bytes) else content.encode())
    return fs


def update(fs: InMemoryFilesystem, *lines: str) -> PatchReport:
    return apply_patch(fs, "\n".join(("*** Begin Patch", "*** Update File: a", *lines, "*** End Patch")))


def updated(content: str, *lines: str) -> str:
    fs = filesystem(content)
    update(fs, *lines)
    return fs.read_bytes("/a").content.decode()


def refused(content: str, *lines: str) -> PatchError:
    fs = filesystem(content)
    with pytest.raises(HunkRejected) as caught:
        update(fs, *lines)
    assert fs.read_bytes("/a").content.decode() == content
    return caught.value
