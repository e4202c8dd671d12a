"""Bytes: stored unchanged, and read in parts."""

from __future__ import annotations

from itertools import product

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["ByteCases"]

CONTENTS = {
    "empty": b"",
    "nul": b"\0",
    "every_byte": bytes(range(256)),
    "crlf": b"one\r\ntwo\r",
    "not_utf8": b"\xff\xfe\x80",
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "large": bytes(range(256)) * 4_096,
}

DIGITS = b"0123456789"


class ByteCases(FilesystemCases):
    @pytest.mark.parametrize("content", list(CONTENTS.values()), ids=list(CONTENTS))
    def test_bytes_are_read_as_they_were_written(self, fs: Filesystem, content: bytes) -> None:
        written = fs.write_bytes("/d/a.bin", content)
        assert (written.path, written.bytes_written) == ("/d/a.bin", len(content))
        result = fs.read_bytes("/d/a.bin")
        assert (result.path, result.content, result.truncated) == ("/d/a.bin", content, False)
        assert result.size_bytes == fs.stat("/d/a.bin").size_bytes == len(content)

    @pytest.mark.parametrize("content", list(CONTENTS.values()), ids=list(CONTENTS))
    def test_bytes_survive_an_archive_and_a_copy(self, fs: Filesystem, content: bytes) -> None:
        fs.write_bytes("/a.bin", content)
        fs.copy("/a.bin", "/b.bin")
        other = self.make_fs()
        other.import_bytes(fs.export_bytes())
        assert other.read_bytes("/a.bin").content == content
        assert other.read_bytes("/b.bin").content == content

    @pytest.mark.parametrize(("offset", "limit"), list(product((0, 1, 9, 10, 15), (None, -1, 0, 1, 9, 10, 15))))
    def test_a_part_holds_the_bytes_that_were_asked_for(self, fs: Filesystem, offset: int, limit: int | None) -> None:
        fs.write_bytes("/a.bin", DIGITS)
        end = 10 if limit in (None, -1) else offset + limit
        result = fs.read_bytes("/a.bin", offset=offset, limit=limit)
        assert result.content == DIGITS[offset:end]
        assert result.truncated == (end < 10)
        assert result.size_bytes == 10
        assert result.offset == offset

    def test_a_part_may_begin_inside_a_character(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "é")
        assert fs.read_bytes("/a.txt", offset=1, limit=1).content == b"\xa9"

    @pytest.mark.parametrize("reader", ["read", "read_bytes", "read_lines"])
    def test_a_missing_file_cannot_be_read(self, fs: Filesystem, reader: str) -> None:
        for path in ("/missing", "/missing/a.txt"):
            with refused(fs, FileNotFoundError):
                getattr(fs, reader)(path)

    @pytest.mark.parametrize("reader", ["read", "read_bytes", "read_lines"])
    def test_a_directory_cannot_be_read_as_a_file(self, fs: Filesystem, reader: str) -> None:
        fs.mkdir("/d")
        for path in ("/d", "/"):
            with refused(fs, IsADirectoryError):
                getattr(fs, reader)(path)

    def test_what_was_read_does_not_change_afterwards(self, fs: Filesystem) -> None:
        fs.write_bytes("/a.bin", b"before")
        result = fs.read_bytes("/a.bin")
        fs.write_bytes("/a.bin", b"after")
        assert result.content == b"before"
