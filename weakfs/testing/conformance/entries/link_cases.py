"""Symbolic links: entries themselves under the default policy, followed inside the root under the others."""

from __future__ import annotations

import errno

import pytest

from weakfs.filesystem import Filesystem, SymlinkPolicy
from weakfs.testing.conformance.harness import FilesystemCases, refused
from weakfs.testing.conformance.operations import EVERY

TARGETS = {
    "beside": "a.txt",
    "below": "d/e/a.txt",
    "above": "../../a.txt",
    "dot": ".",
    "absolute": "/a.txt",
    "missing": "nowhere",
    "odd": "a b\n'é🎉'",
    "not_normal": "d/.//x/../a.txt",
    "trailing_slash": "d/",
}

THROUGH_A_FILE_LINK = (
    "read", "read_bytes", "read_lines", "open_r", "open_rb", "grep",
    "write", "write_create", "write_append", "write_bytes", "append", "write_lines", "splice",
    "open_w", "open_a", "mkdir", "chmod",
)  # fmt: skip
BELOW_A_DIRECTORY_LINK = (
    "read", "read_bytes", "read_lines", "open_r", "exists", "is_file", "is_directory", "stat", "list", "walk",
    "readlink", "glob", "grep",
    "write", "write_create", "write_append", "write_bytes", "append", "write_lines", "splice", "open_w",
    "mkdir", "delete", "move_from", "move_to", "copy_from", "copy_to", "chmod", "symlink",
)  # fmt: skip

FOLLOWING: tuple[SymlinkPolicy, ...] = ("within_root_only", "allow")


class LinkCases(FilesystemCases):
    @pytest.mark.parametrize("target", list(TARGETS.values()), ids=list(TARGETS))
    def test_a_link_keeps_its_target_as_it_was_given(self, fs: Filesystem, target: str) -> None:
        fs.symlink(target, "/links/here")
        assert fs.readlink("/links/here") == target
        assert fs.stat("/links/here").target == target

    @pytest.mark.parametrize("target", ["a.txt", "d", "nowhere"])
    def test_a_link_is_an_entry_of_its_own(self, fs: Filesystem, target: str) -> None:
        fs.write("/a.txt", "text")
        fs.write("/d/b.txt", "text")
        fs.symlink(target, "/link")
        stat = fs.stat("/link")
        assert (stat.path, stat.is_symlink, stat.is_file, stat.is_directory) == ("/link", True, False, False)
        assert fs.exists("/link")
        assert not fs.is_file("/link")
        assert not fs.is_directory("/link")

    def test_an_entry_that_is_not_a_link_has_no_target(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        for path in ("/d/a.txt", "/d", "/"):
            stat = fs.stat(path)
            assert (stat.is_symlink, stat.target) == (False, None)

    def test_a_list_shows_links_as_links(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.symlink("a.txt", "/d/file")
        fs.symlink(".", "/d/loop")
        entries = {entry.name: entry for entry in fs.list("/d")}
        for name in ("file", "loop"):
            entry = entries[name]
            assert (entry.is_symlink, entry.is_file, entry.is_directory) == (True, False, False)

    def test_missing_parents_of_a_link_are_made(self, fs: Filesystem) -> None:
        fs.symlink("../../a.txt", "/x/y/link")
        assert fs.readlink("/x/y/link") == "../../a.txt"

    @pytest.mark.parametrize("path", ["/a.txt", "/d", "/link"])
    def test_a_link_is_not_made_over_an_entry(self, fs: Filesystem, path: str) -> None:
        fs.write("/a.txt", "text")
        fs.mkdir("/d")
        fs.symlink("a.txt", "/link")
        with refused(fs, FileExistsError):
            fs.symlink("d", path)

    def test_a_link_is_not_made_over_the_root(self, fs: Filesystem) -> None:
        with refused(fs, FileExistsError):
            fs.symlink("a.txt", "/")

    def test_a_link_is_not_made_below_a_file(self, fs: Filesystem) -> None:
        fs.write("/a", "text")
        with refused(fs, NotADirectoryError):
            fs.symlink("a", "/a/link")

    @pytest.mark.parametrize("target", ["", "a\0b", "a\ud800"], ids=["empty", "nul", "surrogate"])
    def test_a_target_that_no_system_supports_is_refused(self, fs: Filesystem, target: str) -> None:
        with refused(fs, ValueError):
            fs.symlink(target, "/d/link")

    @pytest.mark.parametrize("path", ["/a.txt", "/d", "/"])
    def test_only_a_link_has_a_target_to_read(self, fs: Filesystem, path: str) -> None:
        fs.write("/a.txt", "text")
        fs.mkdir("/d")
        with refused(fs, (OSError, ValueError)):
            fs.readlink(path)

    @pytest.mark.parametrize(
        ("target", "path", "operation"),
        [
            *(("a.txt", "/link", operation) for operation in THROUGH_A_FILE_LINK),
            *(("nowhere.txt", "/link", operation) for operation in THROUGH_A_FILE_LINK),
            *(("d", "/link", operation) for operation in ("list", "walk", "glob")),
            *(("d", "/link/a.txt", operation) for operation in BELOW_A_DIRECTORY_LINK),
        ],
    )
    def test_a_link_is_not_followed(self, fs: Filesystem, target: str, path: str, operation: str) -> None:
        for file in ("/a.txt", "/d/a.txt", "/here.txt"):
            fs.write(file, "text")
        fs.symlink(target, "/link")
        with refused(fs, PermissionError):
            EVERY[operation](fs, path)

    def test_a_walk_and_a_search_do_not_follow_links(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "needle")
        fs.symlink("d", "/link")
        fs.symlink("..", "/d/up")
        assert [match.path for match in fs.grep("needle")] == ["/d/a.txt"]
        assert [match.path for match in fs.glob("*.txt")] == ["/d/a.txt"]
        assert len(list(fs.walk("/"))) < 10

    def test_a_link_that_leads_outside_is_kept_and_not_followed(self, fs: Filesystem) -> None:
        fs.symlink("../../../../etc/passwd", "/link")
        fs.symlink("/etc", "/etc-link")
        for path in ("/link", "/etc-link", "/etc-link/passwd"):
            with refused(fs, PermissionError):
                fs.read(path)

    def test_the_name_of_a_deleted_link_can_be_reused(self, fs: Filesystem) -> None:
        fs.symlink("a.txt", "/link")
        fs.delete("/link")
        fs.write("/link", "a file now")
        assert fs.read("/link").content == "a file now"

    def test_a_copied_directory_holds_links_and_not_what_they_lead_to(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.symlink("../a.txt", "/d/link")
        fs.symlink("nowhere", "/d/broken")
        fs.copy("/d", "/copy")
        assert fs.readlink("/copy/link") == "../a.txt"
        assert fs.readlink("/copy/broken") == "nowhere"

    def test_a_restore_brings_links_back(self, fs: Filesystem) -> None:
        fs.symlink("a.txt", "/link")
        fs.symlink("d", "/d/loop")
        before = fs.tree().fingerprint
        snapshot = fs.snapshot()
        fs.delete("/link")
        fs.write("/link", "a file now")
        fs.delete("/d", recursive=True)
        fs.restore(snapshot)
        assert fs.tree().fingerprint == before
        assert fs.readlink("/link") == "a.txt"

    def test_an_archive_carries_links(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        for name, target in TARGETS.items():
            fs.symlink(target, f"/links/{name}")
        other = self.make_fs()
        other.import_bytes(fs.export_bytes())
        assert {name: other.readlink(f"/links/{name}") for name in TARGETS} == TARGETS
        assert other.tree().fingerprint == fs.tree().fingerprint

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

    def test_a_link_to_a_file_is_not_a_directory(self, following: Filesystem) -> None:
        following.write("/a.txt", "text")
        following.symlink("a.txt", "/link")
        with refused(following, NotADirectoryError):
            following.list("/link")
        with refused(following, NotADirectoryError):
            following.write("/link/b.txt", "text")

    def test_a_link_to_a_directory_is_not_a_file(self, following: Filesystem) -> None:
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

    def test_a_link_that_leads_outside_through_another_link_is_refused(self) -> None:
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
