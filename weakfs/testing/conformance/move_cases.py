"""Moving: the source is gone, and nothing else changes; see `relocation_cases` for what copying does as well."""

from __future__ import annotations

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases

__all__ = ["MoveCases"]


class MoveCases(FilesystemCases):
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
