"""Symbolic links under policies that follow them: inside the root, and without looping."""

from __future__ import annotations

import errno

import pytest

from weakfs.filesystem import Filesystem, SymlinkPolicy

from .harness import FilesystemCases, refused

__all__ = ["LinkPolicyCases"]

FOLLOWING: tuple[SymlinkPolicy, ...] = ("within_root_only", "allow")


class LinkPolicyCases(FilesystemCases):
    @pytest.fixture(params=FOLLOWING)
    def following(self, request: pytest.FixtureRequest) -> Filesystem:
        """A filesystem that follows links, under each policy that does."""
        return self.make_fs(follow_symlinks=request.param)

    def test_a_file_is_read_through_a_link(self, following: Filesystem) -> None:
        following.write("/d/a.txt", "one\ntwo\n")
        following.symlink("d/a.txt", "/link")
        assert following.read("/link", offset=1).content == "two\n"
        assert following.read_bytes("/link").content == b"one\ntwo\n"
        assert following.read_lines("/link") == ("one\n", "two\n")
        with following.open("/link") as stream:
            assert stream.read() == "one\ntwo\n"

    def test_a_directory_is_listed_through_a_link(self, following: Filesystem) -> None:
        following.write("/d/e/a.txt", "text")
        following.symlink("d/e", "/link")
        assert [entry.name for entry in following.list("/link")] == ["a.txt"]
        assert following.read("/link/a.txt").content == "text"
        assert following.stat("/link/a.txt").is_file

    def test_a_link_counts_as_what_it_leads_to(self, following: Filesystem) -> None:
        following.write("/d/a.txt", "text")
        following.symlink("d", "/directory")
        following.symlink("d/a.txt", "/file")
        following.symlink("nowhere", "/broken")
        assert (following.is_directory("/directory"), following.is_file("/directory")) == (True, False)
        assert (following.is_directory("/file"), following.is_file("/file")) == (False, True)
        assert (following.is_directory("/broken"), following.is_file("/broken")) == (False, False)

    def test_a_link_is_still_an_entry_of_its_own(self, following: Filesystem) -> None:
        following.write("/a.txt", "text")
        following.symlink("a.txt", "/link")
        assert following.stat("/link").is_symlink
        assert following.readlink("/link") == "a.txt"
        following.move("/link", "/moved")
        assert following.readlink("/moved") == "a.txt"
        assert following.delete("/moved") == 1
        assert following.read("/a.txt").content == "text"

    def test_a_file_is_written_through_a_link_that_stays_a_link(self, following: Filesystem) -> None:
        following.write("/d/a.txt", "one")
        following.symlink("d/a.txt", "/link")
        following.write("/link", "two")
        assert following.read("/d/a.txt").content == "two"
        following.append("/link", "three")
        assert following.read("/d/a.txt").content == "twothree"
        assert following.readlink("/link") == "d/a.txt"

    def test_a_file_is_made_below_a_link_to_a_directory(self, following: Filesystem) -> None:
        following.mkdir("/d")
        following.symlink("d", "/link")
        following.write("/link/new/a.txt", "text")
        assert following.read("/d/new/a.txt").content == "text"
        assert following.delete("/link/new", recursive=True) == 2
        assert following.list("/d") == ()

    def test_what_a_link_leads_to_is_made_by_writing_through_it(self, following: Filesystem) -> None:
        following.mkdir("/d")
        following.symlink("d/new.txt", "/link")
        following.write("/link", "text")
        assert following.read("/d/new.txt").content == "text"
        assert following.readlink("/link") == "d/new.txt"

    def test_bits_are_set_on_what_a_link_leads_to(self, following: Filesystem) -> None:
        following.write("/a.txt", "text")
        following.symlink("a.txt", "/link")
        following.chmod("/link", 0o600)
        assert following.stat("/a.txt").mode == 0o600

    def test_a_link_to_a_directory_is_an_existing_directory(self, following: Filesystem) -> None:
        following.mkdir("/d")
        following.symlink("d", "/link")
        following.mkdir("/link")
        with refused(following, FileExistsError):
            following.mkdir("/link", exist_ok=False)
        following.mkdir("/link/e")
        assert following.is_directory("/d/e")

    def test_links_are_copied_and_moved_as_links(self, following: Filesystem) -> None:
        following.write("/d/a.txt", "text")
        following.symlink("d", "/link")
        following.copy("/link", "/copy")
        following.move("/link", "/moved")
        assert following.readlink("/copy") == following.readlink("/moved") == "d"
        assert following.delete("/copy", recursive=True) == 1
        assert following.read("/d/a.txt").content == "text"

    def test_a_chain_of_links_is_followed(self, following: Filesystem) -> None:
        following.write("/x/a.txt", "text")
        following.symlink("x", "/one")
        following.symlink("one/a.txt", "/two")
        following.symlink("../two", "/d/three")
        assert following.read("/d/three").content == "text"

    def test_dots_in_a_target_climb_from_the_folder_of_the_link(self, following: Filesystem) -> None:
        following.write("/x/a.txt", "text")
        following.symlink("../../x/a.txt", "/d/e/link")
        assert following.read("/d/e/link").content == "text"

    def test_dots_after_a_link_in_a_target_climb_from_where_the_link_leads(self, following: Filesystem) -> None:
        following.write("/x/y/a.txt", "inner")
        following.write("/x/b.txt", "beside the directory that is linked")
        following.write("/b.txt", "beside the link")
        following.symlink("x/y", "/link")
        following.symlink("link/../b.txt", "/other")
        assert following.read("/other").content == "beside the directory that is linked"

    def test_a_link_to_nothing_is_not_found(self, following: Filesystem) -> None:
        following.symlink("nowhere", "/link")
        with refused(following, FileNotFoundError):
            following.read("/link")
        with refused(following, FileNotFoundError):
            following.list("/link")

    def test_a_link_to_a_file_is_no_directory(self, following: Filesystem) -> None:
        following.write("/a.txt", "text")
        following.symlink("a.txt", "/link")
        with refused(following, NotADirectoryError):
            following.list("/link")
        with refused(following, NotADirectoryError):
            following.write("/link/b.txt", "text")

    def test_a_link_to_a_directory_is_no_file(self, following: Filesystem) -> None:
        following.mkdir("/d")
        following.symlink("d", "/link")
        with refused(following, IsADirectoryError):
            following.read("/link")
        with refused(following, IsADirectoryError):
            following.write("/link", "text")

    @pytest.mark.parametrize("target", ["link", "./link", "../d/link", "other", "link/x"])
    def test_a_loop_of_links_is_refused(self, following: Filesystem, target: str) -> None:
        following.symlink(target, "/d/link")
        following.symlink("link", "/d/other")
        with refused(following, OSError, errno.ELOOP):
            following.read("/d/link")
        with refused(following, OSError, errno.ELOOP):
            following.write("/d/link/a.txt", "text")

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

    def test_a_search_ends_where_links_go_in_circles(self, following: Filesystem) -> None:
        following.write("/d/a.txt", "needle")
        following.symlink("..", "/d/up")
        following.symlink("d", "/again")
        assert "/d/a.txt" in [match.path for match in following.grep("needle")]
        assert "/d/a.txt" in [match.path for match in following.glob("*.txt")]
        assert len(list(following.walk("/"))) < 10
