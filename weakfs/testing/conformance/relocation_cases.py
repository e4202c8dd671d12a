"""Moving and copying alike: what arrives at the destination, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["RelocationCases"]

Relocate: TypeAlias = Callable[[str, str], object]


class RelocationCases(FilesystemCases):
    @pytest.fixture(params=["move", "copy"])
    def relocate(self, request: pytest.FixtureRequest, fs: Filesystem) -> Relocate:
        """`move` or `copy` of the filesystem."""
        method: Relocate = getattr(fs, request.param)
        return method

    def test_a_directory_arrives_with_all_that_it_holds(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/d/a.txt", "a")
        fs.write("/d/e/b.txt", "b")
        fs.mkdir("/d/empty")
        fs.symlink("a.txt", "/d/link")
        fs.chmod("/d/a.txt", 0o755)
        relocate("/d", "/there")
        assert [entry.name for entry in fs.list("/there")] == ["a.txt", "e", "empty", "link"]
        assert fs.read("/there/e/b.txt").content == "b"
        assert fs.stat("/there/a.txt").mode == 0o755
        assert fs.readlink("/there/link") == "a.txt"

    def test_missing_parents_of_a_destination_are_made(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/a.txt", "text")
        fs.write("/d/a.txt", "text")
        relocate("/a.txt", "/x/y/b.txt")
        relocate("/d", "/z/d")
        assert fs.read("/x/y/b.txt").content == fs.read("/z/d/a.txt").content == "text"

    def test_an_existing_file_is_replaced(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/a.txt", "new")
        fs.write("/b.txt", "old and longer")
        relocate("/a.txt", "/b.txt")
        assert fs.read("/b.txt").content == "new"

    def test_permission_bits_come_along(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/a.sh", "text")
        fs.write("/b.sh", "text")
        fs.chmod("/a.sh", 0o750)
        relocate("/a.sh", "/b.sh")
        assert fs.stat("/b.sh").mode == 0o750

    @pytest.mark.parametrize("path", ["/d/a.txt", "/d/link"])
    def test_a_file_or_a_link_onto_itself_changes_nothing(self, fs: Filesystem, relocate: Relocate, path: str) -> None:
        fs.write("/d/a.txt", "text")
        fs.symlink("a.txt", "/d/link")
        before = fs.tree().fingerprint
        relocate(path, path)
        relocate(path, f"/x/..{path}")
        assert fs.tree().fingerprint == before

    def test_a_link_keeps_its_target_at_the_destination(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/a.txt", "text")
        fs.symlink("a.txt", "/link")
        fs.symlink("nowhere", "/broken")
        relocate("/link", "/d/link")
        relocate("/broken", "/d/broken")
        assert fs.readlink("/d/link") == "a.txt"
        assert fs.readlink("/d/broken") == "nowhere"
        assert fs.read("/a.txt").content == "text"

    def test_a_file_onto_a_link_replaces_the_link(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/kept.txt", "kept")
        fs.write("/a.txt", "text")
        fs.symlink("kept.txt", "/link")
        relocate("/a.txt", "/link")
        assert not fs.stat("/link").is_symlink
        assert fs.read("/link").content == "text"
        assert fs.read("/kept.txt").content == "kept"

    @pytest.mark.parametrize("source", ["/missing", "/missing/a.txt"])
    def test_a_missing_source_is_refused(self, fs: Filesystem, relocate: Relocate, source: str) -> None:
        fs.write("/a.txt", "text")
        for destination in ("/b.txt", "/a.txt", "/new/b.txt", source):
            with refused(fs, FileNotFoundError):
                relocate(source, destination)

    def test_nothing_is_placed_onto_a_directory(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/a.txt", "text")
        fs.write("/d/a.txt", "text")
        fs.mkdir("/d/e")
        fs.write("/f/b.txt", "text")
        fs.mkdir("/empty")
        for source in ("/a.txt", "/d"):
            for destination in ("/f", "/empty", "/"):
                with refused(fs, IsADirectoryError):
                    relocate(source, destination)
        for source in ("/d/a.txt", "/d/e"):
            with refused(fs, IsADirectoryError):
                relocate(source, "/d")

    def test_a_directory_is_not_placed_onto_a_file(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.mkdir("/d")
        fs.write("/a.txt", "text")
        with refused(fs, NotADirectoryError):
            relocate("/d", "/a.txt")

    @pytest.mark.parametrize(
        ("source", "destination"),
        [("/d", end) for end in ("/d", "/d/e", "/d/e/f", "/d/new", "/d/new/deeper", "/d/e/../e/x")] + [("/", "/new")],
    )
    def test_a_directory_is_not_placed_into_itself(
        self, fs: Filesystem, relocate: Relocate, source: str, destination: str
    ) -> None:
        fs.write("/d/e/a.txt", "text")
        with refused(fs, ValueError):
            relocate(source, destination)

    def test_a_directory_is_placed_beside_itself_under_a_longer_name(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/d/a.txt", "text")
        relocate("/d", "/dd")
        relocate("/dd", "/ddd/d")
        assert fs.read("/ddd/d/a.txt").content == "text"

    @pytest.mark.parametrize("source", ["/a.txt", "/d"])
    def test_nothing_is_placed_below_a_file(self, fs: Filesystem, relocate: Relocate, source: str) -> None:
        fs.write("/a.txt", "text")
        fs.write("/file", "text")
        fs.mkdir("/d")
        for destination in ("/file/b", "/file/b/c"):
            with refused(fs, NotADirectoryError):
                relocate(source, destination)

    def test_a_file_is_not_placed_below_itself(self, fs: Filesystem, relocate: Relocate) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, NotADirectoryError):
            relocate("/a.txt", "/a.txt/b")
