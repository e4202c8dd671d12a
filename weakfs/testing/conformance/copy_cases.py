"""Copying: the copy equals the source and is independent of it."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["CopyCases"]


class CopyCases(FilesystemCases):
    def test_a_file_is_copied(self, fs: Filesystem) -> None:
        fs.write_bytes("/a.bin", b"\xff\0text")
        fs.copy("/a.bin", "/b.bin")
        assert fs.read_bytes("/a.bin").content == fs.read_bytes("/b.bin").content == b"\xff\0text"

    def test_a_copied_file_is_changed_alone(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.copy("/a.txt", "/b.txt")
        fs.write("/b.txt", "changed")
        assert fs.read("/a.txt").content == "text"
        fs.write("/a.txt", "other")
        assert fs.read("/b.txt").content == "changed"

    def test_a_directory_is_copied_with_all_that_it_holds(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "a")
        fs.write("/d/e/b.txt", "b")
        fs.mkdir("/d/empty")
        fs.symlink("a.txt", "/d/link")
        fs.chmod("/d/a.txt", 0o755)
        fs.copy("/d", "/copy")
        assert [entry.name for entry in fs.list("/copy")] == ["a.txt", "e", "empty", "link"]
        assert fs.read("/copy/e/b.txt").content == "b"
        assert fs.stat("/copy/a.txt").mode == 0o755
        assert fs.readlink("/copy/link") == "a.txt"
        assert fs.read("/d/e/b.txt").content == "b"

    def test_a_copied_directory_is_changed_alone(self, fs: Filesystem) -> None:
        fs.write("/d/e/a.txt", "text")
        fs.copy("/d", "/copy")
        fs.write("/copy/e/a.txt", "changed")
        fs.write("/copy/e/new.txt", "new")
        fs.delete("/d/e", recursive=True)
        assert not fs.exists("/d/e")
        assert fs.read("/copy/e/a.txt").content == "changed"

    def test_missing_parents_of_a_copy_are_made(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.copy("/d/a.txt", "/x/y/b.txt")
        fs.copy("/d", "/z/d")
        assert fs.read("/x/y/b.txt").content == fs.read("/z/d/a.txt").content == "text"

    def test_an_existing_file_is_replaced_by_a_copy(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "new")
        fs.write("/b.txt", "old and longer")
        fs.copy("/a.txt", "/b.txt")
        assert fs.read("/b.txt").content == fs.read("/a.txt").content == "new"

    def test_permission_bits_are_copied(self, fs: Filesystem) -> None:
        fs.write("/run.sh", "text")
        fs.chmod("/run.sh", 0o755)
        fs.copy("/run.sh", "/copy.sh")
        assert fs.stat("/copy.sh").mode == 0o755
        fs.chmod("/copy.sh", 0o600)
        assert fs.stat("/run.sh").mode == 0o755

    def test_copying_a_file_onto_itself_changes_nothing(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        before = fs.tree().fingerprint
        fs.copy("/d/a.txt", "/d/a.txt")
        fs.copy("/d/a.txt", "/d/./x/../a.txt")
        assert fs.tree().fingerprint == before

    @pytest.mark.parametrize("destination", ["/d", "/d/e", "/d/new", "/d/new/deeper", "/d/e/../e/x"])
    def test_a_directory_is_not_copied_into_itself(self, fs: Filesystem, destination: str) -> None:
        fs.write("/d/e/a.txt", "text")
        with refused(fs, ValueError):
            fs.copy("/d", destination)

    def test_the_root_is_not_copied_into_itself(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        with refused(fs, ValueError):
            fs.copy("/", "/new")

    def test_a_directory_is_copied_beside_itself_under_a_longer_name(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.copy("/d", "/dd")
        assert fs.read("/dd/a.txt").content == "text"

    @pytest.mark.parametrize("source", ["/missing", "/missing/a.txt"])
    def test_what_is_missing_is_not_copied(self, fs: Filesystem, source: str) -> None:
        fs.write("/a.txt", "text")
        for destination in ("/b.txt", "/a.txt", "/new/b.txt"):
            with refused(fs, FileNotFoundError):
                fs.copy(source, destination)

    def test_a_file_is_not_copied_onto_a_directory(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.write("/d/b.txt", "text")
        fs.mkdir("/empty")
        for destination in ("/d", "/empty", "/"):
            with refused(fs, IsADirectoryError):
                fs.copy("/a.txt", destination)

    def test_a_directory_is_not_copied_onto_a_directory(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/e/b.txt", "text")
        fs.mkdir("/empty")
        for destination in ("/e", "/empty", "/"):
            with refused(fs, IsADirectoryError):
                fs.copy("/d", destination)

    def test_a_directory_is_not_copied_onto_a_file(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        fs.write("/a.txt", "text")
        with refused(fs, NotADirectoryError):
            fs.copy("/d", "/a.txt")

    @pytest.mark.parametrize("source", ["/a.txt", "/d"])
    def test_nothing_is_copied_below_a_file(self, fs: Filesystem, source: str) -> None:
        fs.write("/a.txt", "text")
        fs.write("/file", "text")
        fs.mkdir("/d")
        for destination in ("/file/b", "/file/b/c"):
            with refused(fs, NotADirectoryError):
                fs.copy(source, destination)

    def test_a_copy_is_counted_in_full(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "12345")
        fs.write("/d/e/b.txt", "123")
        fs.copy("/d", "/f")
        statistics = fs.statistics()
        assert (statistics.total_size, statistics.file_count, statistics.directory_count) == (16, 4, 4)

    def test_a_copied_directory_has_the_digest_of_its_source(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "a")
        fs.write("/d/e/b.txt", "b")
        fs.copy("/d", "/copy")
        alone, copied = self.make_fs(), self.make_fs()
        for name in ("a.txt", "e/b.txt"):
            alone.write(f"/{name}", fs.read(f"/d/{name}").content)
            copied.write(f"/{name}", fs.read(f"/copy/{name}").content)
        assert alone.tree().fingerprint == copied.tree().fingerprint
