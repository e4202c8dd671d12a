"""Directories: creating, listing and walking them."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["DirectoryCases"]


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

    def test_a_directory_needs_a_parent_when_parents_are_not_to_be_made(self, fs: Filesystem) -> None:
        with refused(fs, FileNotFoundError):
            fs.mkdir("/a/b", parents=False)

    def test_a_directory_with_a_parent_is_made_when_parents_are_not_to_be_made(self, fs: Filesystem) -> None:
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

    def test_directories_stay_when_their_last_entry_goes(self, fs: Filesystem) -> None:
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

    def test_a_walk_starts_where_it_is_told(self, fs: Filesystem) -> None:
        for path in ("/a/b/c.txt", "/a/d.txt", "/ab/e.txt"):
            fs.write(path, "")
        assert [entry.path for entry in fs.walk("/a")] == ["/a/b", "/a/b/c.txt", "/a/d.txt"]

    def test_a_walk_gives_files_by_path_and_each_directory_before_what_is_in_it(self, fs: Filesystem) -> None:
        paths = ["/a b/x", "/a-b", "/a/b/x", "/a/x", "/a0", "/b/x"]
        for path in reversed(paths):
            fs.write(path, "")
        walked = [entry.path for entry in fs.walk()]
        assert [path for path in walked if fs.is_file(path)] == paths
        for path in walked:
            parent = path.rpartition("/")[0]
            assert not parent or walked.index(parent) < walked.index(path)

    def test_a_walk_of_an_empty_filesystem_gives_nothing(self, fs: Filesystem) -> None:
        assert list(fs.walk()) == []
