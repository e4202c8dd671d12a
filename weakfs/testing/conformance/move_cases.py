"""Moving: in one step, to a free name or onto a file, never onto a directory."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["MoveCases"]


class MoveCases(FilesystemCases):
    def test_a_file_is_moved(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.move("/a.txt", "/b.txt")
        assert fs.read("/b.txt").content == "text"
        assert not fs.exists("/a.txt")

    def test_a_directory_is_moved_with_all_that_it_holds(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "a")
        fs.write("/d/e/b.txt", "b")
        fs.mkdir("/d/empty")
        fs.symlink("a.txt", "/d/link")
        fs.move("/d", "/moved")
        assert not fs.exists("/d")
        assert [entry.name for entry in fs.list("/moved")] == ["a.txt", "e", "empty", "link"]
        assert fs.read("/moved/e/b.txt").content == "b"
        assert fs.readlink("/moved/link") == "a.txt"

    def test_missing_parents_of_a_move_are_made(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.move("/a.txt", "/x/y/b.txt")
        assert fs.read("/x/y/b.txt").content == "text"
        fs.move("/x", "/z/x")
        assert fs.read("/z/x/y/b.txt").content == "text"

    def test_an_existing_file_is_replaced_by_a_move(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "new")
        fs.write("/b.txt", "old and longer")
        fs.move("/a.txt", "/b.txt")
        assert fs.read("/b.txt").content == "new"
        assert not fs.exists("/a.txt")

    def test_permission_bits_move_along(self, fs: Filesystem) -> None:
        fs.write("/a.sh", "text")
        fs.write("/b.sh", "text")
        fs.chmod("/a.sh", 0o750)
        fs.move("/a.sh", "/b.sh")
        assert fs.stat("/b.sh").mode == 0o750

    def test_the_modification_time_moves_along(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/a.txt", "/other.txt")
        before = fs.stat("/a.txt").modified_at
        fs.move("/a.txt", "/b.txt")
        assert fs.stat("/b.txt").modified_at == before

    def test_moving_there_and_back_changes_nothing(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        before = fs.tree().fingerprint
        fs.move("/d", "/e")
        assert fs.tree().fingerprint != before
        fs.move("/e", "/d")
        assert fs.tree().fingerprint == before

    @pytest.mark.parametrize("path", ["/d/a.txt", "/d/link"])
    def test_moving_a_file_or_a_link_onto_itself_changes_nothing(self, fs: Filesystem, path: str) -> None:
        fs.write("/d/a.txt", "text")
        fs.symlink("a.txt", "/d/link")
        before = fs.tree().fingerprint
        fs.move(path, path)
        fs.move(path, f"/x/..{path}")
        assert fs.tree().fingerprint == before

    @pytest.mark.parametrize("source", ["/missing", "/missing/a.txt"])
    def test_what_is_missing_is_not_moved(self, fs: Filesystem, source: str) -> None:
        fs.write("/a.txt", "text")
        for destination in ("/b.txt", "/a.txt", "/new/b.txt", source):
            with refused(fs, FileNotFoundError):
                fs.move(source, destination)

    def test_a_file_is_not_moved_onto_a_directory(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.write("/d/b.txt", "text")
        fs.mkdir("/empty")
        for destination in ("/d", "/empty", "/"):
            with refused(fs, IsADirectoryError):
                fs.move("/a.txt", destination)

    def test_a_file_is_not_moved_onto_its_own_parent(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        with refused(fs, IsADirectoryError):
            fs.move("/d/a.txt", "/d")

    def test_a_directory_is_not_moved_onto_a_directory(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/e/b.txt", "text")
        fs.mkdir("/empty")
        for destination in ("/e", "/empty", "/"):
            with refused(fs, IsADirectoryError):
                fs.move("/d", destination)

    def test_a_directory_is_not_moved_onto_its_own_parent(self, fs: Filesystem) -> None:
        fs.mkdir("/d/e")
        with refused(fs, IsADirectoryError):
            fs.move("/d/e", "/d")

    def test_a_directory_is_not_moved_onto_a_file(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        fs.write("/a.txt", "text")
        with refused(fs, NotADirectoryError):
            fs.move("/d", "/a.txt")

    @pytest.mark.parametrize("destination", ["/d", "/d/e", "/d/e/f", "/d/new", "/d/new/deeper", "/d/e/../e/x"])
    def test_a_directory_is_not_moved_into_itself(self, fs: Filesystem, destination: str) -> None:
        fs.write("/d/e/a.txt", "text")
        with refused(fs, ValueError):
            fs.move("/d", destination)

    def test_the_root_is_not_moved(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        with refused(fs, ValueError):
            fs.move("/", "/new")

    def test_a_directory_is_moved_beside_itself_under_a_longer_name(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.move("/d", "/dd")
        fs.move("/dd", "/ddd/d")
        assert fs.read("/ddd/d/a.txt").content == "text"

    @pytest.mark.parametrize("source", ["/a.txt", "/d"])
    def test_nothing_is_moved_below_a_file(self, fs: Filesystem, source: str) -> None:
        fs.write("/a.txt", "text")
        fs.write("/file", "text")
        fs.mkdir("/d")
        for destination in ("/file/b", "/file/b/c"):
            with refused(fs, NotADirectoryError):
                fs.move(source, destination)

    def test_a_file_is_not_moved_below_itself(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, NotADirectoryError):
            fs.move("/a.txt", "/a.txt/b")

    def test_a_link_is_moved_and_keeps_its_target(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.symlink("a.txt", "/link")
        fs.move("/link", "/d/link")
        assert fs.readlink("/d/link") == "a.txt"
        assert not fs.exists("/link")
        assert fs.read("/a.txt").content == "text"

    def test_a_file_moved_onto_a_link_replaces_the_link(self, fs: Filesystem) -> None:
        fs.write("/kept.txt", "kept")
        fs.write("/a.txt", "text")
        fs.symlink("kept.txt", "/link")
        fs.move("/a.txt", "/link")
        assert not fs.stat("/link").is_symlink
        assert fs.read("/link").content == "text"
        assert fs.read("/kept.txt").content == "kept"

    def test_moving_a_directory_keeps_the_statistics(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/d/e/b.txt", "text")
        before = fs.statistics()
        fs.move("/d", "/f")
        assert fs.statistics() == before
