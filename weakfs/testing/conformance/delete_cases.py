"""Deleting: which entries are removed, how many there were, and what is refused."""

from __future__ import annotations

import errno

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["DeleteCases"]


class DeleteCases(FilesystemCases):
    @pytest.mark.parametrize("recursive", [False, True])
    def test_a_file_is_deleted(self, fs: Filesystem, recursive: bool) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/d/b.txt", "text")
        assert fs.delete("/d/a.txt", recursive=recursive) == 1
        assert not fs.exists("/d/a.txt")
        assert [entry.name for entry in fs.list("/d")] == ["b.txt"]

    @pytest.mark.parametrize("recursive", [False, True])
    def test_an_empty_directory_is_deleted(self, fs: Filesystem, recursive: bool) -> None:
        fs.mkdir("/d/e")
        assert fs.delete("/d/e", recursive=recursive) == 1
        assert fs.list("/d") == ()

    def test_a_directory_with_entries_is_refused(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        with refused(fs, OSError, errno.ENOTEMPTY):
            fs.delete("/d")

    def test_a_directory_with_an_empty_directory_is_refused(self, fs: Filesystem) -> None:
        fs.mkdir("/d/e")
        with refused(fs, OSError, errno.ENOTEMPTY):
            fs.delete("/d")

    def test_a_directory_with_entries_is_deleted_when_asked_for(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/d/e/b.txt", "text")
        fs.write("/other.txt", "text")
        fs.delete("/d", recursive=True)
        assert [entry.path for entry in fs.list("/")] == ["/other.txt"]
        assert not fs.exists("/d/e/b.txt")

    def test_every_removed_entry_is_counted(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/d/e/b.txt", "text")
        fs.mkdir("/d/f/g")
        fs.symlink("a.txt", "/d/link")
        before = fs.statistics().node_count
        assert fs.delete("/d", recursive=True) == 7
        assert fs.statistics().node_count == before - 7

    @pytest.mark.parametrize("recursive", [False, True])
    @pytest.mark.parametrize("path", ["/missing", "/missing/a.txt", "/d/missing"])
    def test_a_missing_entry_is_refused(self, fs: Filesystem, path: str, recursive: bool) -> None:
        fs.mkdir("/d")
        with refused(fs, FileNotFoundError):
            fs.delete(path, recursive=recursive)

    @pytest.mark.parametrize("recursive", [False, True])
    @pytest.mark.parametrize("path", ["/", "", ".", "/d/.."])
    def test_the_root_is_never_deleted(self, fs: Filesystem, path: str, recursive: bool) -> None:
        fs.write("/d/a.txt", "text")
        with refused(fs, PermissionError):
            fs.delete(path, recursive=recursive)

    def test_the_root_of_an_empty_filesystem_is_never_deleted(self, fs: Filesystem) -> None:
        with refused(fs, PermissionError):
            fs.delete("/")

    def test_a_deleted_entry_is_not_deleted_again(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.delete("/a.txt")
        with refused(fs, FileNotFoundError):
            fs.delete("/a.txt")

    def test_a_link_is_deleted_and_its_target_stays(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.symlink("d", "/link")
        fs.symlink("d/a.txt", "/other")
        assert fs.delete("/link", recursive=True) == 1
        assert fs.delete("/other") == 1
        assert fs.read("/d/a.txt").content == "text"

    def test_links_inside_a_directory_are_deleted_and_their_targets_stay(self, fs: Filesystem) -> None:
        fs.write("/kept/a.txt", "text")
        fs.symlink("../kept", "/d/link")
        assert fs.delete("/d", recursive=True) == 2
        assert fs.read("/kept/a.txt").content == "text"

    def test_a_file_written_again_has_nothing_of_the_deleted_one(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "before")
        fs.chmod("/a.txt", 0o600)
        fs.delete("/a.txt")
        fs.append("/a.txt", "after")
        assert fs.read("/a.txt").content == "after"
        assert fs.stat("/a.txt").mode == 0o644

    def test_deleting_a_prefix_leaves_longer_names(self, fs: Filesystem) -> None:
        fs.write("/a/x.txt", "text")
        fs.write("/ab/x.txt", "text")
        fs.write("/a.txt", "text")
        fs.delete("/a", recursive=True)
        assert [entry.name for entry in fs.list("/")] == ["a.txt", "ab"]
