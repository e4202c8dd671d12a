"""Reading parts of a text and finding names, at the edges of what is asked for."""

from __future__ import annotations

import pytest

from weakfs import Session
from weakfs.backends import InMemoryFilesystem


@pytest.fixture
def fs() -> InMemoryFilesystem:
    fs = InMemoryFilesystem()
    fs.write("/a.txt", "1\n2\n3\n")
    fs.write("/b.py", "")
    return fs


@pytest.mark.parametrize(("limit", "content"), [(0, ""), (2, "1\n2\n"), (3, "1\n2\n3\n"), (4, "1\n2\n3\n")])
def test_a_read_gives_as_many_lines_as_asked_for(fs: InMemoryFilesystem, limit: int, content: str) -> None:
    found = fs.read("/a.txt", limit=limit)
    assert (found.content, found.truncated) == (content, limit < 3)


@pytest.mark.parametrize("offset", [0, 1, 3, 9])
def test_a_read_starts_where_it_is_told_to(fs: InMemoryFilesystem, offset: int) -> None:
    assert fs.read("/a.txt", offset=offset).content == "1\n2\n3\n"[2 * offset :]


def test_a_read_from_before_the_start_is_refused(fs: InMemoryFilesystem) -> None:
    with pytest.raises(ValueError, match=r"cannot read '/a.txt' from line -1; use an offset of 0 or more"):
        fs.read("/a.txt", offset=-1)


def test_a_glob_finds_the_names_that_match_and_no_others(fs: InMemoryFilesystem) -> None:
    assert [match.path for match in fs.glob("*.txt")] == ["/a.txt"]
    assert [match.path for match in fs.glob("*", sort="path")] == ["/a.txt", "/b.py"]


def test_a_glob_gives_the_newest_first() -> None:
    ticks = iter(range(1, 100))
    fs = InMemoryFilesystem(Session(clock=ticks.__next__))
    for path in ("/b", "/c", "/a"):
        fs.write(path, "x")
    assert [match.path for match in fs.glob("*")] == ["/a", "/c", "/b"]


def test_what_was_read_through_a_link_has_the_path_of_the_file() -> None:
    fs = InMemoryFilesystem(follow_symlinks="within_root_only")
    fs.write("/d/a.txt", "x")
    fs.symlink("d/a.txt", "/link")
    assert fs.read("/link").path == "/d/a.txt"
    assert fs.read_bytes("/link").path == "/d/a.txt"
