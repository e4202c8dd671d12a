"""Bytes: reading ranges of a file, and splicing pieces of it by byte offsets, all of them or none."""

from __future__ import annotations

import errno
from itertools import product

import pytest

from weakfs.filesystem import Filesystem, Limits
from weakfs.testing.conformance.harness import FilesystemCases, refused

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

# Pieces to replace in `0123456789`, and the result.
SPLICES: dict[str, tuple[list[tuple[int, int, bytes]], bytes]] = {
    "one": ([(2, 4, b"ab")], b"01ab456789"),
    "longer": ([(2, 4, b"abcd")], b"01abcd456789"),
    "shorter": ([(2, 6, b"a")], b"01a6789"),
    "deleted": ([(2, 6, b"")], b"016789"),
    "inserted": ([(5, 5, b"ab")], b"01234ab56789"),
    "at_the_start": ([(0, 0, b"ab")], b"ab0123456789"),
    "at_the_end": ([(10, 10, b"ab")], b"0123456789ab"),
    "everything": ([(0, 10, b"ab")], b"ab"),
    "several": ([(0, 1, b"a"), (4, 6, b""), (9, 10, b"bcd")], b"a123678bcd"),
    "side_by_side": ([(2, 4, b"a"), (4, 6, b"b")], b"01ab6789"),
    "twice_at_one_place": ([(5, 5, b"a"), (5, 5, b"b")], b"01234ab56789"),
    "nothing": ([], b"0123456789"),
    "bytes_that_are_not_text": ([(1, 2, b"\xff\0")], b"0\xff\x0023456789"),
}

REFUSED: dict[str, list[tuple[int, int, bytes]]] = {
    "past_the_end": [(8, 11, b"a")],
    "behind_the_end": [(11, 11, b"a")],
    "before_the_start": [(-1, 2, b"a")],
    "backwards": [(4, 2, b"a")],
    "overlapping": [(2, 5, b"a"), (4, 6, b"b")],
    "out_of_order": [(6, 7, b"a"), (2, 3, b"b")],
    "good_and_bad": [(0, 1, b"a"), (9, 11, b"b")],
}


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
    def test_a_range_has_the_requested_bytes(self, fs: Filesystem, offset: int, limit: int | None) -> None:
        fs.write_bytes("/a.bin", DIGITS)
        end = 10 if limit in (None, -1) else offset + limit
        result = fs.read_bytes("/a.bin", offset=offset, limit=limit)
        assert result.content == DIGITS[offset:end]
        assert result.truncated == (end < 10)
        assert result.size_bytes == 10
        assert result.offset == offset

    def test_a_range_may_begin_inside_a_character(self, fs: Filesystem) -> None:
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

    @pytest.mark.parametrize(("pieces", "expected"), list(SPLICES.values()), ids=list(SPLICES))
    def test_pieces_are_replaced(self, fs: Filesystem, pieces: list[tuple[int, int, bytes]], expected: bytes) -> None:
        fs.write("/d/a.txt", "0123456789")
        written = fs.splice("/d/a.txt", pieces)
        assert written.path == "/d/a.txt"
        assert fs.read_bytes("/d/a.txt").content == expected
        assert fs.statistics().total_size == fs.stat("/d/a.txt").size_bytes == len(expected)

    @pytest.mark.parametrize("pieces", list(REFUSED.values()), ids=list(REFUSED))
    def test_pieces_that_do_not_fit_are_refused_together(
        self, fs: Filesystem, pieces: list[tuple[int, int, bytes]]
    ) -> None:
        fs.write("/a.txt", "0123456789")
        with refused(fs, ValueError):
            fs.splice("/a.txt", pieces)

    def test_a_spliced_file_has_the_digest_of_a_written_one(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one\ntwo\nthree\n")
        fs.splice("/a.txt", [(4, 7, b"2")])
        other = self.make_fs()
        other.write("/a.txt", "one\n2\nthree\n")
        assert fs.tree().fingerprint == other.tree().fingerprint

    def test_a_splice_keeps_the_permission_bits(self, fs: Filesystem) -> None:
        fs.write("/run.sh", "0123456789")
        fs.chmod("/run.sh", 0o755)
        fs.splice("/run.sh", [(0, 1, b"x")])
        assert fs.stat("/run.sh").mode == 0o755

    def test_a_restore_undoes_a_splice(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "0123456789")
        snapshot = fs.snapshot()
        fs.splice("/a.txt", [(0, 5, b""), (7, 7, b"x")])
        fs.restore(snapshot)
        assert fs.read("/a.txt").content == "0123456789"

    def test_only_a_file_is_spliced(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        fs.write("/a.txt", "text")
        fs.symlink("a.txt", "/link")
        for path, error in [
            ("/d", IsADirectoryError),
            ("/", IsADirectoryError),
            ("/missing", FileNotFoundError),
            ("/a.txt/b", NotADirectoryError),
            ("/link", PermissionError),
        ]:
            with refused(fs, error):
                fs.splice(path, [(0, 0, b"x")])

    def test_a_splice_keeps_to_the_limits(self) -> None:
        fs = self.make_fs(limits=Limits(max_file_size=10, max_total_size=15))
        fs.write("/a.txt", "12345678")
        fs.write("/b.txt", "12345")
        with refused(fs, OSError, errno.EFBIG):
            fs.splice("/a.txt", [(8, 8, b"901")])
        with refused(fs, OSError, errno.EDQUOT):
            fs.splice("/b.txt", [(0, 0, b"123")])
        fs.splice("/b.txt", [(0, 1, b"123")])
        assert fs.statistics().total_size == 15
