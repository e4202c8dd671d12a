"""Lookup of paths far below the root: how many lookups a call takes does not grow with the depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem, Limits
from weakfs.reducers.tree.node import Node

DEEP = "/d" * 600


class Counting(InMemoryFilesystem):
    lookups = 0

    def lookup(self, segments: Sequence[str]) -> Node | None:
        self.lookups += 1
        return super().lookup(segments)


# The call, and the number of lookups that it may take: few if the directory exists. Otherwise the deepest existing
# directory is searched for twice, with at most 2 log2(600) lookups.
CALLS: dict[str, tuple[Callable[[Filesystem], object], int]] = {
    "exists": (lambda fs: fs.exists(f"{DEEP}/new"), 3),
    "write": (lambda fs: fs.write(f"{DEEP}/new", "text"), 4),
    "mkdir": (lambda fs: fs.mkdir(f"{DEEP}/new"), 4),
    "symlink": (lambda fs: fs.symlink("file", f"{DEEP}/new"), 4),
    "move": (lambda fs: fs.move(f"{DEEP}/file", f"{DEEP}/new"), 6),
    "copy": (lambda fs: fs.copy(f"{DEEP}/file", f"{DEEP}/new"), 6),
    "read": (lambda fs: fs.read(f"{DEEP}/new"), 5),
    "read below a file": (lambda fs: fs.read(f"{DEEP}/file/new"), 5),
    "write below a missing directory": (lambda fs: fs.write(f"{DEEP}/a/b/c", "text"), 44),
    "write below many missing directories": (lambda fs: fs.write(f"/d{'/a' * 600}", "text"), 44),
    "read below a missing directory": (lambda fs: fs.read(f"{DEEP}/a/b/c"), 44),
}


@pytest.mark.parametrize(("call", "most"), CALLS.values(), ids=CALLS)
def test_a_path_is_looked_up_from_its_end(call: Callable[[Filesystem], object], most: int) -> None:
    fs = Counting(limits=Limits(max_path_depth=None))
    fs.write(f"{DEEP}/file", "text")
    fs.lookups = 0
    with suppress(FileNotFoundError, NotADirectoryError):
        call(fs)
    assert fs.lookups <= most


@pytest.mark.parametrize("missing", ["/a", "/d/a", "/d/d/a", "/d/d/d/a"])
@pytest.mark.parametrize("below", ["", "/b", "/b/c", "/b/c/d/e/f"])
def test_an_error_names_the_first_directory_that_is_missing(missing: str, below: str) -> None:
    fs = InMemoryFilesystem()
    fs.mkdir("/d/d/d")
    with pytest.raises(FileNotFoundError) as caught:
        fs.read(f"{missing}{below}/file")
    assert f"there is no directory {missing!r} in {missing.rpartition('/')[0] or '/'!r}" in str(caught.value)


@pytest.mark.parametrize("link", ["/to", "/d/to", "/d/d/to"])
@pytest.mark.parametrize("below", ["", "/a", "/a/b", "/a/b/c/d"])
def test_files_written_below_a_link_are_created_at_its_target(link: str, below: str) -> None:
    fs = InMemoryFilesystem(follow_symlinks="within_root_only")
    fs.mkdir("/d/d")
    fs.mkdir("/there/deep")
    fs.symlink("/there/deep", link)
    assert fs.write(f"{link}{below}/new", "text").path == f"/there/deep{below}/new"
    assert fs.read(f"/there/deep{below}/new").content == "text"
