"""Symbolic links as entries of their own, under the default policy, which follows none."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused
from .operations import EVERY

__all__ = ["LinkCases"]

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

    def test_what_is_not_a_link_has_no_target(self, fs: Filesystem) -> None:
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
    def test_a_target_that_no_system_could_hold_is_refused(self, fs: Filesystem, target: str) -> None:
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

    def test_a_link_gives_its_name_back_when_it_is_deleted(self, fs: Filesystem) -> None:
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
