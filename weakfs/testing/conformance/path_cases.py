"""Paths: one canonical form for every spelling, and no way above the root."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, cast

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused
from .operations import EVERY, READING

__all__ = ["PathCases"]

SPELLINGS_OF_A_FILE = (
    "/src/a.txt",
    "src/a.txt",
    "./src/a.txt",
    "/./src/./a.txt",
    "//src//a.txt",
    "/src///a.txt",
    "/src/a.txt/",
    "\\src\\a.txt",
    "src\\a.txt",
    "\\src/a.txt",
    "/src/./x/../a.txt",
    "/src/x/y/../../a.txt",
    "/nowhere/../src/a.txt",
    "src\\x\\..\\a.txt",
)
SPELLINGS_OF_THE_ROOT = ("/", "", ".", "./", "//", "\\", "/.", "a/..", "/a/b/../..")
CLIMBING = ("..", "/..", "../x", "/../x", "a/../../x", "/a/../../x", "..\\x", "\\..\\x", "/a/../../a.txt")
ORDINARY_NAMES = ("[...slug]", "a..b", "..a", "a..", "...", "....", ".hidden", "a.", ".a.")


class PathCases(FilesystemCases):
    @pytest.mark.parametrize("spelling", SPELLINGS_OF_A_FILE)
    def test_every_spelling_writes_the_same_file(self, fs: Filesystem, spelling: str) -> None:
        written = fs.write(spelling, "text")
        assert written.path == "/src/a.txt"
        assert [entry.path for entry in fs.list("/src")] == ["/src/a.txt"]
        assert fs.statistics().node_count == 2

    @pytest.mark.parametrize("spelling", SPELLINGS_OF_A_FILE)
    def test_every_spelling_reads_the_same_file(self, fs: Filesystem, spelling: str) -> None:
        fs.write("/src/a.txt", "text")
        assert fs.exists(spelling)
        assert fs.is_file(spelling)
        assert fs.stat(spelling).path == "/src/a.txt"
        read = fs.read(spelling)
        assert (read.path, read.content) == ("/src/a.txt", "text")
        read_bytes = fs.read_bytes(spelling)
        assert (read_bytes.path, read_bytes.content) == ("/src/a.txt", b"text")

    @pytest.mark.parametrize("spelling", SPELLINGS_OF_THE_ROOT)
    def test_every_spelling_of_the_root_is_the_root(self, fs: Filesystem, spelling: str) -> None:
        fs.write("/a.txt", "")
        assert fs.stat(spelling).path == "/"
        assert fs.is_directory(spelling)
        assert [entry.path for entry in fs.list(spelling)] == ["/a.txt"]

    def test_list_takes_the_root_when_no_path_is_given(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "")
        assert fs.list() == fs.list("/")

    @pytest.mark.parametrize("spelling", ["src", "src/", "\\src", "./src/../src", "/x/../src"])
    def test_search_answers_with_canonical_paths(self, fs: Filesystem, spelling: str) -> None:
        fs.write("/src/a.txt", "text")
        assert [entry.path for entry in fs.list(spelling)] == ["/src/a.txt"]
        assert [match.path for match in fs.glob("*.txt", path=spelling)] == ["/src/a.txt"]
        assert [match.path for match in fs.grep("text", path=spelling)] == ["/src/a.txt"]

    @pytest.mark.parametrize("spelling", ["made", "made/", "\\made", "./x/../made"])
    def test_every_spelling_makes_the_same_directory(self, fs: Filesystem, spelling: str) -> None:
        fs.mkdir(spelling)
        assert [entry.path for entry in fs.list("/")] == ["/made"]

    def test_both_ends_of_a_move_may_be_spelled_freely(self, fs: Filesystem) -> None:
        fs.write("/src/a.txt", "text")
        fs.move("src\\a.txt", "./x/../b.txt")
        assert fs.read("/b.txt").content == "text"
        assert not fs.exists("/src/a.txt")

    @pytest.mark.parametrize("name", ORDINARY_NAMES)
    def test_dots_inside_a_name_are_ordinary(self, fs: Filesystem, name: str) -> None:
        fs.write(f"/d/{name}", "text")
        assert [entry.name for entry in fs.list("/d")] == [name]
        assert fs.read(f"d/{name}").content == "text"

    def test_a_directory_named_with_dots_is_not_climbed(self, fs: Filesystem) -> None:
        fs.write("/.../a..b/c.txt", "text")
        assert fs.read("/.../a..b/c.txt").content == "text"

    def test_dots_are_resolved_by_segment_and_not_through_files(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        assert fs.read("/a.txt/../a.txt").content == "text"

    @pytest.mark.parametrize("climbing", CLIMBING)
    def test_climbing_above_the_root_is_refused(self, fs: Filesystem, climbing: str) -> None:
        fs.write("/a/x", "text")
        with refused(fs, PermissionError):
            fs.read(climbing)
        with refused(fs, PermissionError):
            fs.write(climbing, "text")

    @pytest.mark.parametrize("operation", READING)
    def test_a_path_object_is_a_path(self, fs: Filesystem, operation: str) -> None:
        fs.write(PurePosixPath("/d/a.txt"), "text")
        fs.symlink("d/a.txt", PurePosixPath("/link"))
        path = {"list": "/d", "walk": "/d", "glob": "/d", "readlink": "/link"}.get(operation, "/d/a.txt")
        plain = READING[operation](fs, path)
        if not operation.startswith("open"):
            assert READING[operation](fs, PurePosixPath(path)) == plain

    @pytest.mark.parametrize("operation", EVERY)
    @pytest.mark.parametrize("path", [None, 5, b"/here.txt"], ids=["none", "number", "bytes"])
    def test_what_is_no_path_is_refused(self, fs: Filesystem, operation: str, path: object) -> None:
        fs.write("/here.txt", "text")
        with refused(fs, TypeError):
            EVERY[operation](fs, cast(Any, path))

    @pytest.mark.parametrize("operation", EVERY)
    @pytest.mark.parametrize(
        ("path", "error"),
        [("/a/../../here.txt", PermissionError), ("/here\0.txt", ValueError), ("/here\ud800.txt", ValueError)],
        ids=["climbing", "nul", "lone_surrogate"],
    )
    def test_no_operation_takes_an_invalid_path(
        self, fs: Filesystem, operation: str, path: str, error: type[Exception]
    ) -> None:
        fs.write("/here.txt", "text")
        with refused(fs, error):
            EVERY[operation](fs, path)

    def test_a_path_is_compared_by_letters_and_case(self, fs: Filesystem) -> None:
        fs.write("/Readme", "upper")
        assert not fs.exists("/readme")
        fs.write("/readme", "lower")
        assert fs.read("/Readme").content == "upper"
        assert not fs.exists("/README")
