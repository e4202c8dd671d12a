"""Reading from before the start, and through a link."""

from __future__ import annotations

import pytest

from weakfs.backends import InMemoryFilesystem


def test_a_read_from_before_the_start_is_refused() -> None:
    fs = InMemoryFilesystem()
    fs.write("/a.txt", "1\n")
    with pytest.raises(ValueError, match=r"cannot read '/a.txt' from line -1; use an offset of 0 or more"):
        fs.read("/a.txt", offset=-1)


def test_a_file_read_through_a_link_has_its_own_path() -> None:
    fs = InMemoryFilesystem(follow_symlinks="within_root_only")
    fs.write("/d/a.txt", "x")
    fs.symlink("d/a.txt", "/link")
    assert fs.read("/link").path == "/d/a.txt"
    assert fs.read_bytes("/link").path == "/d/a.txt"


@pytest.mark.parametrize("path", ["/", "", ".", "//", "/src/.."])
def test_the_root_exists_under_all_its_names(path: str) -> None:
    assert InMemoryFilesystem().exists(path)
