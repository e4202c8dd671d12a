"""Moving and copying: what arrives at the destination, what stays at the source, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from weakfs.filesystem import Filesystem
from weakfs.testing.conformance.harness import FilesystemCases, refused

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

    def test_a_directory_is_placed_next_to_itself_under_a_longer_name(self, fs: Filesystem, relocate: Relocate) -> None:
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

    def test_what_was_moved_is_only_at_its_new_place(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.write("/d/c.txt", "text")
        fs.symlink("b.txt", "/link")
        for source, destination in (("/a.txt", "/b.txt"), ("/d", "/e"), ("/link", "/e/link")):
            fs.move(source, destination)
            assert not fs.exists(source)
            assert fs.exists(destination)
        assert fs.read("/b.txt").content == fs.read("/e/c.txt").content == "text"

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

    def test_moving_a_directory_keeps_the_statistics(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        fs.write("/d/e/b.txt", "text")
        before = fs.statistics()
        fs.move("/d", "/f")
        assert fs.statistics() == before

    def test_a_file_is_copied(self, fs: Filesystem) -> None:
        fs.write_bytes("/a.bin", b"\xff\0text")
        fs.copy("/a.bin", "/b.bin")
        assert fs.read_bytes("/a.bin").content == fs.read_bytes("/b.bin").content == b"\xff\0text"

    def test_changing_a_copied_file_leaves_the_original_alone(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        fs.copy("/a.txt", "/b.txt")
        fs.write("/b.txt", "changed")
        assert fs.read("/a.txt").content == "text"
        fs.write("/a.txt", "other")
        fs.chmod("/a.txt", 0o755)
        assert fs.read("/b.txt").content == "changed"
        assert fs.stat("/b.txt").mode == 0o644

    def test_changing_a_copied_directory_leaves_the_original_alone(self, fs: Filesystem) -> None:
        fs.write("/d/e/a.txt", "text")
        fs.copy("/d", "/copy")
        fs.write("/copy/e/a.txt", "changed")
        fs.write("/copy/e/new.txt", "new")
        fs.delete("/d/e", recursive=True)
        assert not fs.exists("/d/e")
        assert fs.read("/copy/e/a.txt").content == "changed"

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
