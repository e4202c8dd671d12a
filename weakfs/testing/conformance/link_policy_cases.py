"""Symbolic links under policies that follow them: inside the root, and without looping."""

from __future__ import annotations

import errno

import pytest

from weakfs.filesystem import SymlinkPolicy

from .harness import FilesystemCases, refused

__all__ = ["LinkPolicyCases"]

FOLLOWING: tuple[SymlinkPolicy, ...] = ("within_root_only", "allow")
each_policy = pytest.mark.parametrize("policy", FOLLOWING)


class LinkPolicyCases(FilesystemCases):
    @each_policy
    def test_a_file_is_read_through_a_link(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/d/a.txt", "one\ntwo\n")
        fs.symlink("d/a.txt", "/link")
        assert fs.read("/link", offset=1).content == "two\n"
        assert fs.read_bytes("/link").content == b"one\ntwo\n"
        assert fs.read_lines("/link") == ("one\n", "two\n")
        with fs.open("/link") as stream:
            assert stream.read() == "one\ntwo\n"

    @each_policy
    def test_a_directory_is_listed_through_a_link(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/d/e/a.txt", "text")
        fs.symlink("d/e", "/link")
        assert [entry.name for entry in fs.list("/link")] == ["a.txt"]
        assert fs.read("/link/a.txt").content == "text"
        assert fs.stat("/link/a.txt").is_file

    @each_policy
    def test_a_link_counts_as_what_it_leads_to(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/d/a.txt", "text")
        fs.symlink("d", "/directory")
        fs.symlink("d/a.txt", "/file")
        fs.symlink("nowhere", "/broken")
        assert (fs.is_directory("/directory"), fs.is_file("/directory")) == (True, False)
        assert (fs.is_directory("/file"), fs.is_file("/file")) == (False, True)
        assert (fs.is_directory("/broken"), fs.is_file("/broken")) == (False, False)

    @each_policy
    def test_a_link_is_still_an_entry_of_its_own(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/a.txt", "text")
        fs.symlink("a.txt", "/link")
        assert fs.stat("/link").is_symlink
        assert fs.readlink("/link") == "a.txt"
        fs.move("/link", "/moved")
        assert fs.readlink("/moved") == "a.txt"
        assert fs.delete("/moved") == 1
        assert fs.read("/a.txt").content == "text"

    @each_policy
    def test_a_file_is_written_through_a_link_that_stays_a_link(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/d/a.txt", "one")
        fs.symlink("d/a.txt", "/link")
        fs.write("/link", "two")
        assert fs.read("/d/a.txt").content == "two"
        fs.append("/link", "three")
        assert fs.read("/d/a.txt").content == "twothree"
        assert fs.readlink("/link") == "d/a.txt"

    @each_policy
    def test_a_file_is_made_below_a_link_to_a_directory(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.mkdir("/d")
        fs.symlink("d", "/link")
        fs.write("/link/new/a.txt", "text")
        assert fs.read("/d/new/a.txt").content == "text"
        assert fs.delete("/link/new", recursive=True) == 2
        assert fs.list("/d") == ()

    @each_policy
    def test_what_a_link_leads_to_is_made_by_writing_through_it(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.mkdir("/d")
        fs.symlink("d/new.txt", "/link")
        fs.write("/link", "text")
        assert fs.read("/d/new.txt").content == "text"
        assert fs.readlink("/link") == "d/new.txt"

    @each_policy
    def test_bits_are_set_on_what_a_link_leads_to(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/a.txt", "text")
        fs.symlink("a.txt", "/link")
        fs.chmod("/link", 0o600)
        assert fs.stat("/a.txt").mode == 0o600

    @each_policy
    def test_a_link_to_a_directory_is_an_existing_directory(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.mkdir("/d")
        fs.symlink("d", "/link")
        fs.mkdir("/link")
        with refused(fs, FileExistsError):
            fs.mkdir("/link", exist_ok=False)
        fs.mkdir("/link/e")
        assert fs.is_directory("/d/e")

    @each_policy
    def test_links_are_copied_and_moved_as_links(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/d/a.txt", "text")
        fs.symlink("d", "/link")
        fs.copy("/link", "/copy")
        fs.move("/link", "/moved")
        assert fs.readlink("/copy") == fs.readlink("/moved") == "d"
        assert fs.delete("/copy", recursive=True) == 1
        assert fs.read("/d/a.txt").content == "text"

    @each_policy
    def test_a_chain_of_links_is_followed(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/x/a.txt", "text")
        fs.symlink("x", "/one")
        fs.symlink("one/a.txt", "/two")
        fs.symlink("../two", "/d/three")
        assert fs.read("/d/three").content == "text"

    @each_policy
    def test_dots_in_a_target_climb_from_the_folder_of_the_link(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/x/a.txt", "text")
        fs.symlink("../../x/a.txt", "/d/e/link")
        assert fs.read("/d/e/link").content == "text"

    @each_policy
    def test_dots_after_a_link_in_a_target_climb_from_where_the_link_leads(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/x/y/a.txt", "inner")
        fs.write("/x/b.txt", "beside the directory that is linked")
        fs.write("/b.txt", "beside the link")
        fs.symlink("x/y", "/link")
        fs.symlink("link/../b.txt", "/other")
        assert fs.read("/other").content == "beside the directory that is linked"

    @each_policy
    def test_a_link_to_nothing_is_not_found(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.symlink("nowhere", "/link")
        with refused(fs, FileNotFoundError):
            fs.read("/link")
        with refused(fs, FileNotFoundError):
            fs.list("/link")

    @each_policy
    def test_a_link_to_a_file_is_no_directory(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/a.txt", "text")
        fs.symlink("a.txt", "/link")
        with refused(fs, NotADirectoryError):
            fs.list("/link")
        with refused(fs, NotADirectoryError):
            fs.write("/link/b.txt", "text")

    @each_policy
    def test_a_link_to_a_directory_is_no_file(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.mkdir("/d")
        fs.symlink("d", "/link")
        with refused(fs, IsADirectoryError):
            fs.read("/link")
        with refused(fs, IsADirectoryError):
            fs.write("/link", "text")

    @each_policy
    @pytest.mark.parametrize("target", ["link", "./link", "../d/link", "other", "link/x"])
    def test_a_loop_of_links_is_refused(self, policy: SymlinkPolicy, target: str) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.symlink(target, "/d/link")
        fs.symlink("link", "/d/other")
        with refused(fs, OSError, errno.ELOOP):
            fs.read("/d/link")
        with refused(fs, OSError, errno.ELOOP):
            fs.write("/d/link/a.txt", "text")

    @pytest.mark.parametrize("target", ["..", "../", "../a.txt", "d/../../a.txt", "../../../../../../etc/passwd"])
    def test_a_link_that_leads_outside_is_refused(self, target: str) -> None:
        fs = self.make_fs(follow_symlinks="within_root_only")
        fs.write("/a.txt", "text")
        fs.mkdir("/d")
        fs.symlink(target, "/link")
        with refused(fs, PermissionError):
            fs.read("/link")
        with refused(fs, PermissionError):
            fs.list("/link")
        with refused(fs, PermissionError):
            fs.write("/link/new.txt", "text")

    def test_a_link_that_leads_outside_by_way_of_another_is_refused(self) -> None:
        fs = self.make_fs(follow_symlinks="within_root_only")
        fs.write("/d/a.txt", "text")
        fs.symlink("../..", "/d/out")
        fs.symlink("d/out/etc/passwd", "/link")
        with refused(fs, PermissionError):
            fs.read("/link")

    @each_policy
    def test_a_search_ends_where_links_go_in_circles(self, policy: SymlinkPolicy) -> None:
        fs = self.make_fs(follow_symlinks=policy)
        fs.write("/d/a.txt", "needle")
        fs.symlink("..", "/d/up")
        fs.symlink("d", "/again")
        assert "/d/a.txt" in [match.path for match in fs.grep("needle")]
        assert "/d/a.txt" in [match.path for match in fs.glob("*.txt")]
        assert len(list(fs.walk("/"))) < 10
