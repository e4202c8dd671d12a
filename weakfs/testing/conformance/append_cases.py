"""Appending: the existing content is kept byte for byte, and the new content follows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["AppendCases"]


def append_by_stream(fs: Filesystem, path: str, text: str) -> object:
    with fs.open(path, "a") as stream:
        return stream.write(text)


def append_by_byte_stream(fs: Filesystem, path: str, text: str) -> object:
    with fs.open(path, "ab") as stream:
        return stream.write(text.encode())


APPENDERS: dict[str, Callable[[Filesystem, str, str], object]] = {
    "append": lambda fs, path, text: fs.append(path, text),
    "write": lambda fs, path, text: fs.write(path, text, mode="append"),
    "write_bytes": lambda fs, path, text: fs.write_bytes(path, text.encode(), mode="append"),
    "open_a": append_by_stream,
    "open_ab": append_by_byte_stream,
}

each_appender = pytest.mark.parametrize("appender", APPENDERS)


class AppendCases(FilesystemCases):
    @each_appender
    def test_appending_keeps_what_was_there(self, fs: Filesystem, appender: str) -> None:
        fs.write("/a.txt", "one\n")
        APPENDERS[appender](fs, "/a.txt", "two\n")
        APPENDERS[appender](fs, "/a.txt", "three")
        assert fs.read("/a.txt").content == "one\ntwo\nthree"

    @each_appender
    def test_appending_creates_a_missing_file(self, fs: Filesystem, appender: str) -> None:
        APPENDERS[appender](fs, "/d/a.txt", "one\n")
        assert fs.read("/d/a.txt").content == "one\n"

    @each_appender
    def test_appending_adds_no_newline_of_its_own(self, fs: Filesystem, appender: str) -> None:
        fs.write("/a.txt", "one")
        APPENDERS[appender](fs, "/a.txt", "two")
        assert fs.read("/a.txt").content == "onetwo"

    @each_appender
    def test_appending_nothing_changes_no_content(self, fs: Filesystem, appender: str) -> None:
        fs.write("/a.txt", "one")
        before = fs.tree().fingerprint
        APPENDERS[appender](fs, "/a.txt", "")
        assert fs.tree().fingerprint == before

    @each_appender
    def test_appending_nothing_creates_an_empty_file(self, fs: Filesystem, appender: str) -> None:
        APPENDERS[appender](fs, "/a.txt", "")
        assert fs.stat("/a.txt").size_bytes == 0

    @each_appender
    def test_appending_keeps_undecodable_bytes(self, fs: Filesystem, appender: str) -> None:
        fs.write_bytes("/a.bin", b"\xff\xfe")
        APPENDERS[appender](fs, "/a.bin", "é")
        assert fs.read_bytes("/a.bin").content == b"\xff\xfe\xc3\xa9"

    @each_appender
    def test_appending_keeps_carriage_returns(self, fs: Filesystem, appender: str) -> None:
        fs.write("/a.txt", "one\r\n")
        APPENDERS[appender](fs, "/a.txt", "two\r\n\r")
        assert fs.read_bytes("/a.txt").content == b"one\r\ntwo\r\n\r"

    @each_appender
    def test_appending_keeps_the_permission_bits(self, fs: Filesystem, appender: str) -> None:
        fs.write("/run.sh", "one\n")
        fs.chmod("/run.sh", 0o755)
        APPENDERS[appender](fs, "/run.sh", "two\n")
        assert fs.stat("/run.sh").mode == 0o755

    def test_a_character_may_arrive_in_two_appends(self, fs: Filesystem) -> None:
        fs.write_bytes("/a.txt", b"caf\xc3")
        fs.write_bytes("/a.txt", b"\xa9", mode="append")
        assert fs.read("/a.txt").content == "café"

    def test_many_appends_add_up(self, fs: Filesystem) -> None:
        for number in range(300):
            fs.append("/log.txt", f"line {number}\n")
        assert fs.read_lines("/log.txt") == tuple(f"line {number}\n" for number in range(300))
        assert fs.stat("/log.txt").size_bytes == fs.statistics().total_size == len(fs.read("/log.txt").content)

    def test_many_appends_have_the_digest_of_one_write(self, fs: Filesystem) -> None:
        for number in range(50):
            fs.append("/log.txt", f"line {number}\n")
        other = self.make_fs()
        other.write("/log.txt", "".join(f"line {number}\n" for number in range(50)))
        assert fs.tree().digest == other.tree().digest

    def test_the_result_counts_only_what_was_added(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one")
        written = fs.append("/a.txt", "é\n")
        assert (written.path, written.bytes_written, written.mode) == ("/a.txt", 3, "append")

    def test_a_file_that_was_emptied_is_appended_to_from_the_start(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one")
        fs.write("/a.txt", "")
        fs.append("/a.txt", "two")
        assert fs.read("/a.txt").content == "two"

    def test_a_copy_is_appended_to_alone(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one")
        fs.copy("/a.txt", "/b.txt")
        fs.append("/b.txt", "two")
        fs.append("/a.txt", "three")
        assert fs.read("/a.txt").content == "onethree"
        assert fs.read("/b.txt").content == "onetwo"

    def test_a_restore_takes_back_what_was_appended(self, fs: Filesystem) -> None:
        fs.append("/a.txt", "one\n")
        snapshot = fs.snapshot()
        fs.append("/a.txt", "two\n")
        fs.restore(snapshot)
        assert fs.read("/a.txt").content == "one\n"
        fs.append("/a.txt", "three\n")
        assert fs.read("/a.txt").content == "one\nthree\n"

    @each_appender
    def test_a_directory_is_not_appended_to(self, fs: Filesystem, appender: str) -> None:
        fs.mkdir("/d")
        with refused(fs, IsADirectoryError):
            APPENDERS[appender](fs, "/d", "text")

    @each_appender
    def test_a_file_for_a_parent_is_not_appended_below(self, fs: Filesystem, appender: str) -> None:
        fs.write("/a", "text")
        with refused(fs, NotADirectoryError):
            APPENDERS[appender](fs, "/a/b", "text")
