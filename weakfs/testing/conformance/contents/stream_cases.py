"""Streams: reading in parts, and writes that take effect when the stream is closed without an error."""

from __future__ import annotations

import errno
import gc
import io
import warnings
from typing import Literal, TypeAlias, cast

import pytest

from weakfs.filesystem import Filesystem, Limits
from weakfs.testing.conformance.harness import FilesystemCases, refused

TextMode: TypeAlias = Literal["r", "w", "x", "a"]
ByteMode: TypeAlias = Literal["rb", "wb", "xb", "ab"]

TEXT = "one\r\ntwo\rthree\x0cfour\u2028five\nsix"


class InterruptionError(Exception):
    """An error raised while a stream is being written."""


class StreamCases(FilesystemCases):
    def test_a_text_stream_reads_without_translation(self, fs: Filesystem) -> None:
        fs.write("/a.txt", TEXT)
        with fs.open("/a.txt") as stream:
            assert stream.read() == TEXT

    def test_a_text_stream_gives_lines_that_end_at_newlines_only(self, fs: Filesystem) -> None:
        fs.write("/a.txt", TEXT)
        with fs.open("/a.txt", "r") as stream:
            assert list(stream) == ["one\r\n", "two\rthree\x0cfour\u2028five\n", "six"]

    def test_a_text_stream_reads_line_by_line(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one\ntwo\n")
        with fs.open("/a.txt", "r") as stream:
            assert [stream.readline() for _ in range(3)] == ["one\n", "two\n", ""]

    def test_a_text_stream_takes_an_encoding(self, fs: Filesystem) -> None:
        with fs.open("/a.txt", "w", encoding="latin-1") as stream:
            stream.write("café")
        assert fs.read_bytes("/a.txt").content == b"caf\xe9"
        with fs.open("/a.txt", "r", encoding="latin-1") as stream:
            assert stream.read() == "café"

    def test_a_byte_stream_reads_and_seeks(self, fs: Filesystem) -> None:
        fs.write_bytes("/a.bin", b"0123456789")
        with fs.open("/a.bin", "rb") as stream:
            assert stream.read(3) == b"012"
            assert stream.tell() == 3
            stream.seek(-2, io.SEEK_END)
            assert stream.read() == b"89"

    @pytest.mark.parametrize("mode", ["w", "x", "a"])
    def test_a_text_stream_writes_without_translation(self, fs: Filesystem, mode: TextMode) -> None:
        with fs.open("/d/a.txt", mode) as stream:
            stream.write("one\r\n")
            stream.writelines(["two\n", "thr\ree"])
        assert fs.read_bytes("/d/a.txt").content == b"one\r\ntwo\nthr\ree"

    @pytest.mark.parametrize("mode", ["wb", "xb", "ab"])
    def test_a_byte_stream_writes_bytes(self, fs: Filesystem, mode: ByteMode) -> None:
        with fs.open("/d/a.bin", mode) as stream:
            assert stream.write(b"\xff\0") == 2
            stream.write(b"\r\n")
        assert fs.read_bytes("/d/a.bin").content == b"\xff\0\r\n"

    @pytest.mark.parametrize("mode", ["w", "wb", "x", "xb", "a", "ab"])
    def test_a_stream_that_wrote_nothing_creates_an_empty_file(self, fs: Filesystem, mode: str) -> None:
        with fs.open("/a.txt", cast(TextMode, mode)):
            pass
        assert fs.stat("/a.txt").size_bytes == 0

    @pytest.mark.parametrize("mode", ["w", "wb"])
    def test_a_stream_that_wrote_nothing_empties_the_file(self, fs: Filesystem, mode: str) -> None:
        fs.write("/a.txt", "text")
        with fs.open("/a.txt", cast(TextMode, mode)):
            pass
        assert fs.read("/a.txt").content == ""

    @pytest.mark.parametrize(("mode", "expected"), [("w", "new"), ("a", "oldnew")])
    def test_a_stream_takes_effect_when_it_is_closed(self, fs: Filesystem, mode: TextMode, expected: str) -> None:
        fs.write("/a.txt", "old")
        stream = fs.open("/a.txt", mode)
        stream.write("new")
        stream.flush()
        assert fs.read("/a.txt").content == "old"
        stream.close()
        assert fs.read("/a.txt").content == expected

    @pytest.mark.parametrize("mode", ["w", "x", "a"])
    def test_a_new_file_is_not_there_until_its_stream_is_closed(self, fs: Filesystem, mode: TextMode) -> None:
        before = fs.tree().fingerprint
        stream = fs.open("/d/a.txt", mode)
        stream.write("new")
        assert fs.tree().fingerprint == before
        stream.close()
        assert fs.read("/d/a.txt").content == "new"

    @pytest.mark.parametrize("mode", ["w", "a", "wb", "ab"])
    def test_an_error_in_the_block_changes_nothing(self, fs: Filesystem, mode: str) -> None:
        fs.write("/a.txt", "old")
        half = b"half of what was meant" if "b" in mode else "half of what was meant"
        with refused(fs, InterruptionError), fs.open("/a.txt", cast(TextMode, mode)) as stream:
            stream.write(cast(str, half))
            raise InterruptionError

    @pytest.mark.parametrize("mode", ["w", "x", "a"])
    def test_an_error_in_the_block_creates_nothing(self, fs: Filesystem, mode: TextMode) -> None:
        with refused(fs, InterruptionError), fs.open("/d/a.txt", mode) as stream:
            stream.write("half of what was meant")
            raise InterruptionError
        assert not fs.exists("/d")

    def test_a_stream_that_was_never_closed_changes_nothing(self, fs: Filesystem) -> None:
        before = fs.tree().fingerprint
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            stream = fs.open("/a.txt", "w")
            stream.write("forgotten")
            del stream
            gc.collect()
        assert fs.tree().fingerprint == before

    def test_a_stream_may_be_closed_twice(self, fs: Filesystem) -> None:
        stream = fs.open("/a.txt", "w")
        stream.write("once")
        stream.close()
        fs.append("/a.txt", " more")
        stream.close()
        assert stream.closed
        assert fs.read("/a.txt").content == "once more"

    @pytest.mark.parametrize("mode", ["r", "w"])
    def test_a_closed_stream_is_not_used(self, fs: Filesystem, mode: TextMode) -> None:
        fs.write("/a.txt", "text")
        stream = fs.open("/a.txt", mode)
        stream.close()
        with refused(fs, ValueError):
            stream.read() if mode == "r" else stream.write("late")

    def test_a_reading_stream_is_not_written(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, (OSError, ValueError)), fs.open("/a.txt", "r") as stream:
            stream.write("late")

    def test_an_exclusive_stream_refuses_an_existing_file(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, FileExistsError), fs.open("/a.txt", "x") as stream:
            stream.write("other")

    def test_an_exclusive_stream_refuses_a_file_that_came_meanwhile(self, fs: Filesystem) -> None:
        stream = fs.open("/a.txt", "x")
        stream.write("late")
        fs.write("/a.txt", "early")
        with refused(fs, FileExistsError):
            stream.close()

    @pytest.mark.parametrize("mode", ["r", "rb"])
    def test_reading_streams_need_a_file(self, fs: Filesystem, mode: str) -> None:
        fs.mkdir("/d")
        with refused(fs, FileNotFoundError):
            fs.open("/missing", cast(TextMode, mode))
        with refused(fs, IsADirectoryError):
            fs.open("/d", cast(TextMode, mode))

    @pytest.mark.parametrize("mode", ["w", "wb", "a", "ab"])
    def test_writing_streams_refuse_a_directory(self, fs: Filesystem, mode: str) -> None:
        fs.mkdir("/d")
        with refused(fs, IsADirectoryError), fs.open("/d", cast(TextMode, mode)):
            pass

    @pytest.mark.parametrize("mode", ["w", "wb", "x", "xb", "a", "ab"])
    def test_writing_streams_refuse_a_file_as_parent(self, fs: Filesystem, mode: str) -> None:
        fs.write("/a", "text")
        with refused(fs, NotADirectoryError), fs.open("/a/b", cast(TextMode, mode)):
            pass

    @pytest.mark.parametrize("mode", ["", "q", "rw", "r+b+", "wbb"])
    def test_an_unknown_mode_of_a_stream_is_refused(self, fs: Filesystem, mode: str) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, ValueError):
            fs.open("/a.txt", cast(TextMode, mode))

    def test_a_stream_past_the_file_size_changes_nothing(self) -> None:
        fs = self.make_fs(limits=Limits(max_file_size=10))
        fs.write("/a.txt", "old")
        with refused(fs, OSError, errno.EFBIG), fs.open("/a.txt", "w") as stream:
            stream.write("x" * 11)
        with refused(fs, OSError, errno.EFBIG), fs.open("/a.txt", "a") as stream:
            stream.write("x" * 8)
        with fs.open("/a.txt", "a") as stream:
            stream.write("x" * 7)
        assert fs.stat("/a.txt").size_bytes == 10

    def test_text_that_the_encoding_cannot_represent_is_refused_as_a_whole(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "old")
        with refused(fs, ValueError), fs.open("/a.txt", "w", encoding="ascii") as stream:
            stream.write("plain and ")
            stream.write("café")

    @pytest.mark.parametrize("mode", ["r", "w", "a"])
    def test_a_stream_in_an_unknown_encoding_is_refused(self, fs: Filesystem, mode: TextMode) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, ValueError):
            fs.open("/a.txt", mode, encoding="klingon")

    def test_a_stream_overwrites_with_the_same_permission_bits(self, fs: Filesystem) -> None:
        fs.write("/run.sh", "old")
        fs.chmod("/run.sh", 0o755)
        with fs.open("/run.sh", "w") as stream:
            stream.write("new")
        assert fs.stat("/run.sh").mode == 0o755

    def test_bytes_that_do_not_decode_are_refused_by_a_text_stream(self, fs: Filesystem) -> None:
        fs.write_bytes("/bad.txt", b"one\n\xff")
        with refused(fs, ValueError), fs.open("/bad.txt", "r") as stream:
            stream.read()
