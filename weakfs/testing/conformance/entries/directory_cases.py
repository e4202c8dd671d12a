"""Directories: creating, listing and walking them, and deleting their contents."""

from __future__ import annotations

import errno

import pytest

from weakfs.filesystem import Filesystem
from weakfs.testing.conformance.harness import FilesystemCases, refused


class DirectoryCases(FilesystemCases):
    def test_a_directory_is_made(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        assert fs.is_directory("/d")
        assert not fs.is_file("/d")
        assert fs.exists("/d")
        assert fs.list("/d") == ()

    def test_missing_parents_are_made(self, fs: Filesystem) -> None:
        fs.mkdir("/a/b/c")
        assert fs.is_directory("/a")
        assert fs.is_directory("/a/b")
        assert fs.is_directory("/a/b/c")

    def test_without_parents_the_parent_must_exist(self, fs: Filesystem) -> None:
        with refused(fs, FileNotFoundError):
            fs.mkdir("/a/b", parents=False)

    def test_without_parents_a_directory_is_made_in_an_existing_one(self, fs: Filesystem) -> None:
        fs.mkdir("/a", parents=False)
        fs.mkdir("/a/b", parents=False)
        assert fs.is_directory("/a/b")

    def test_an_existing_directory_is_accepted(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.chmod("/d", 0o700)
        before = fs.tree().fingerprint
        fs.mkdir("/d")
        fs.mkdir("/d", parents=False)
        assert fs.tree().fingerprint == before

    def test_an_existing_directory_is_refused_when_it_must_be_new(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        with refused(fs, FileExistsError):
            fs.mkdir("/d", exist_ok=False)
        with refused(fs, FileExistsError):
            fs.mkdir("/d", parents=False, exist_ok=False)

    def test_the_root_is_an_existing_directory(self, fs: Filesystem) -> None:
        fs.mkdir("/")
        with refused(fs, FileExistsError):
            fs.mkdir("/", exist_ok=False)

    def test_parents_may_exist_when_the_directory_must_be_new(self, fs: Filesystem) -> None:
        fs.mkdir("/a")
        fs.mkdir("/a/b/c", exist_ok=False)
        assert fs.is_directory("/a/b/c")

    @pytest.mark.parametrize("exist_ok", [True, False])
    def test_a_directory_is_not_made_over_a_file(self, fs: Filesystem, exist_ok: bool) -> None:
        fs.write("/a", "text")
        with refused(fs, FileExistsError):
            fs.mkdir("/a", exist_ok=exist_ok)

    @pytest.mark.parametrize("parents", [True, False])
    @pytest.mark.parametrize("path", ["/a/b", "/a/b/c"])
    def test_a_directory_is_not_made_below_a_file(self, fs: Filesystem, path: str, parents: bool) -> None:
        fs.write("/a", "text")
        with refused(fs, NotADirectoryError):
            fs.mkdir(path, parents=parents)

    def test_a_list_names_each_entry_once_in_the_order_of_names(self, fs: Filesystem) -> None:
        for name in ("b.txt", "a.txt", "C.txt", "é.txt", "10", "9", "d/inner.txt", "d/other.txt", ".hidden"):
            fs.write(f"/{name}", "")
        fs.mkdir("/empty")
        names = [entry.name for entry in fs.list("/")]
        assert names == sorted(["b.txt", "a.txt", "C.txt", "é.txt", "10", "9", "d", ".hidden", "empty"])

    def test_a_list_says_what_each_entry_is(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.mkdir("/d/b")
        fs.symlink("a.txt", "/d/c")
        kinds = [(entry.path, entry.is_file, entry.is_directory, entry.is_symlink) for entry in fs.list("/d")]
        assert kinds == [
            ("/d/a.txt", True, False, False),
            ("/d/b", False, True, False),
            ("/d/c", False, False, True),
        ]

    def test_a_list_goes_one_level_deep(self, fs: Filesystem) -> None:
        fs.write("/a/b/c.txt", "text")
        assert [entry.path for entry in fs.list("/")] == ["/a"]
        assert [entry.path for entry in fs.list("/a")] == ["/a/b"]

    def test_a_list_does_not_change_afterwards(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        entries = fs.list("/")
        fs.delete("/a.txt")
        assert [entry.name for entry in entries] == ["a.txt"]

    @pytest.mark.parametrize("lister", ["list", "walk"])
    def test_a_file_is_not_listed(self, fs: Filesystem, lister: str) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, NotADirectoryError):
            tuple(getattr(fs, lister)("/a.txt"))

    @pytest.mark.parametrize("lister", ["list", "walk"])
    def test_a_missing_directory_is_not_listed(self, fs: Filesystem, lister: str) -> None:
        with refused(fs, FileNotFoundError):
            tuple(getattr(fs, lister)("/missing"))

    def test_directories_stay_when_their_last_entry_is_deleted(self, fs: Filesystem) -> None:
        fs.write("/a/b/c.txt", "text")
        fs.delete("/a/b/c.txt")
        assert fs.is_directory("/a/b")
        fs.write("/a/b/d.txt", "text")
        fs.move("/a/b/d.txt", "/d.txt")
        assert fs.is_directory("/a/b")

    def test_a_walk_goes_through_everything_below(self, fs: Filesystem) -> None:
        for path in ("/a/b/c.txt", "/a/d.txt", "/e.txt"):
            fs.write(path, "")
        fs.mkdir("/empty")
        fs.symlink("a", "/link")
        walked = {entry.path: entry for entry in fs.walk()}
        assert sorted(walked) == ["/a", "/a/b", "/a/b/c.txt", "/a/d.txt", "/e.txt", "/empty", "/link"]
        assert [path for path, entry in walked.items() if entry.is_directory] == ["/a", "/a/b", "/empty"]
        assert walked["/link"].is_symlink
        assert walked["/a/b/c.txt"].name == "c.txt"

    def test_a_walk_starts_at_the_given_directory(self, fs: Filesystem) -> None:
        for path in ("/a/b/c.txt", "/a/d.txt", "/ab/e.txt"):
            fs.write(path, "")
        assert [entry.path for entry in fs.walk("/a")] == ["/a/b", "/a/b/c.txt", "/a/d.txt"]

    def test_a_walk_yields_files_by_path_and_each_directory_before_its_contents(self, fs: Filesystem) -> None:
        paths = ["/a b/x", "/a-b", "/a/b/x", "/a/x", "/a0", "/b/x"]
        for path in reversed(paths):
            fs.write(path, "")
        walked = [entry.path for entry in fs.walk()]
        assert [path for path in walked if fs.is_file(path)] == paths
        for path in walked:
            parent = path.rpartition("/")[0]
            assert not parent or walked.index(parent) < walked.index(path)

    def test_a_walk_of_an_empty_filesystem_yields_nothing(self, fs: Filesystem) -> None:
        assert list(fs.walk()) == []

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

    def test_a_directory_with_entries_is_deleted_if_recursive(self, fs: Filesystem) -> None:
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

    def test_a_file_written_again_keeps_nothing_of_the_deleted_one(self, fs: Filesystem) -> None:
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
