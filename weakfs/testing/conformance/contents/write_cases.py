"""Writing and appending: what is created, what is replaced, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from weakfs.filesystem import Filesystem
from weakfs.testing.conformance.harness import FilesystemCases, refused
from weakfs.testing.conformance.operations import CHANGING, write_stream

WRITERS = ("write", "write_bytes", "append", "write_lines", "open_w", "open_a")
each_writer = pytest.mark.parametrize("writer", WRITERS)


APPENDERS: dict[str, Callable[[Filesystem, str, str], object]] = {
    "append": lambda fs, path, text: fs.append(path, text),
    "write": lambda fs, path, text: fs.write(path, text, mode="append"),
    "write_bytes": lambda fs, path, text: fs.write_bytes(path, text.encode(), mode="append"),
    "open_a": lambda fs, path, text: write_stream(fs, path, "a", text),
    "open_ab": lambda fs, path, text: write_stream(fs, path, "ab", text),
}

each_appender = pytest.mark.parametrize("appender", APPENDERS)


class WriteCases(FilesystemCases):
    def test_a_new_filesystem_is_empty(self, fs: Filesystem) -> None:
        assert fs.list("/") == ()
        assert fs.is_directory("/")
        assert not fs.read_only

    @each_writer
    def test_every_writer_creates_a_missing_file(self, fs: Filesystem, writer: str) -> None:
        CHANGING[writer](fs, "/a.txt")
        assert fs.is_file("/a.txt")
        assert fs.read("/a.txt").content.startswith("x")

    @each_writer
    def test_every_writer_makes_missing_parents(self, fs: Filesystem, writer: str) -> None:
        CHANGING[writer](fs, "/d/e/f/a.txt")
        assert fs.is_directory("/d/e/f")
        assert fs.read("/d/e/f/a.txt").content.startswith("x")

    @each_writer
    @pytest.mark.parametrize("path", ["/d", "/"])
    def test_no_writer_writes_on_a_directory(self, fs: Filesystem, writer: str, path: str) -> None:
        fs.write("/d/a.txt", "text")
        with refused(fs, IsADirectoryError):
            CHANGING[writer](fs, path)

    @each_writer
    @pytest.mark.parametrize("path", ["/a/b", "/a/b/c/d"])
    def test_no_writer_accepts_a_file_as_parent(self, fs: Filesystem, writer: str, path: str) -> None:
        fs.write("/a", "text")
        with refused(fs, NotADirectoryError):
            CHANGING[writer](fs, path)

    def test_the_result_says_what_was_written(self, fs: Filesystem) -> None:
        written = fs.write("d/a.txt", "café\n")
        assert (written.path, written.bytes_written, written.mode) == ("/d/a.txt", 6, "overwrite")
        written = fs.write_bytes("/d/b.bin", b"12", mode="create")
        assert (written.path, written.bytes_written, written.mode) == ("/d/b.bin", 2, "create")
        written = fs.write("/d/a.txt", "x", mode="append")
        assert (written.path, written.bytes_written, written.mode) == ("/d/a.txt", 1, "append")

    @pytest.mark.parametrize("text", ["short", ""])
    def test_overwriting_replaces_the_whole_content(self, fs: Filesystem, text: str) -> None:
        fs.write("/a.txt", "a long text")
        fs.write("/a.txt", text)
        assert fs.read("/a.txt").content == text
        assert fs.stat("/a.txt").size_bytes == len(text)

    def test_overwriting_with_the_same_content_changes_no_content(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        before = fs.tree().fingerprint
        fs.write("/a.txt", "text")
        assert fs.tree().fingerprint == before

    def test_writing_leaves_the_other_files_alone(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "a")
        fs.write("/d/b.txt", "b")
        fs.write("/d/a.txt", "changed")
        assert fs.read("/d/b.txt").content == "b"

    def test_create_makes_a_new_file(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text", mode="create")
        fs.write_bytes("/d/b.bin", b"bytes", mode="create")
        assert fs.read("/d/a.txt").content == "text"
        assert fs.read_bytes("/d/b.bin").content == b"bytes"

    def test_create_refuses_an_existing_file(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, FileExistsError):
            fs.write("/a.txt", "other", mode="create")
        with refused(fs, FileExistsError):
            fs.write_bytes("/a.txt", b"text", mode="create")

    def test_create_refuses_a_directory(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        with refused(fs, IsADirectoryError):
            fs.write("/d", "text", mode="create")

    def test_create_reuses_a_deleted_name(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "before")
        fs.delete("/a.txt")
        fs.write("/a.txt", "after", mode="create")
        assert fs.read("/a.txt").content == "after"

    def test_an_unknown_mode_is_refused(self, fs: Filesystem) -> None:
        with refused(fs, ValueError):
            fs.write("/a.txt", "text", mode=cast(Any, "replace"))
        with refused(fs, ValueError):
            fs.write_bytes("/a.txt", b"text", mode=cast(Any, ""))

    @pytest.mark.parametrize("mode", ["overwrite", "create", "append"])
    def test_a_missing_parent_is_refused_without_create_parents(self, fs: Filesystem, mode: str) -> None:
        with refused(fs, FileNotFoundError):
            fs.write("/d/a.txt", "text", mode=cast(Any, mode), create_parents=False)
        with refused(fs, FileNotFoundError):
            fs.write_bytes("/d/a.txt", b"text", mode=cast(Any, mode), create_parents=False)

    def test_an_existing_parent_is_enough_without_create_parents(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        fs.write("/d/a.txt", "text", create_parents=False)
        fs.write("/b.txt", "text", create_parents=False)
        assert fs.read("/d/a.txt").content == fs.read("/b.txt").content == "text"

    def test_a_file_as_parent_is_refused_without_create_parents(self, fs: Filesystem) -> None:
        fs.write("/a", "text")
        with refused(fs, NotADirectoryError):
            fs.write("/a/b", "text", create_parents=False)

    def test_a_directory_takes_the_place_of_a_deleted_file(self, fs: Filesystem) -> None:
        fs.write("/a", "file")
        fs.delete("/a")
        fs.write("/a/b", "inside")
        assert fs.is_directory("/a")
        assert fs.read("/a/b").content == "inside"

    def test_a_file_takes_the_place_of_a_deleted_directory(self, fs: Filesystem) -> None:
        fs.write("/a/b", "inside")
        fs.delete("/a", recursive=True)
        fs.write("/a", "file")
        assert fs.read("/a").content == "file"
        assert not fs.exists("/a/b")

    @pytest.mark.parametrize("path", ["/a/b", "/a/b/c"])
    def test_queries_below_a_file_find_nothing(self, fs: Filesystem, path: str) -> None:
        fs.write("/a", "text")
        assert not fs.exists(path)
        assert not fs.is_file(path)
        assert not fs.is_directory(path)

    def test_text_and_bytes_are_not_mistaken_for_each_other(self, fs: Filesystem) -> None:
        with refused(fs, TypeError):
            fs.write("/d/a.txt", cast(Any, b"bytes"))
        with refused(fs, TypeError):
            fs.write_bytes("/d/a.txt", cast(Any, "text"))

    def test_changing_the_buffer_afterwards_does_not_change_the_file(self, fs: Filesystem) -> None:
        buffer = bytearray(b"before")
        fs.write_bytes("/a.bin", cast(Any, buffer))
        fs.write_bytes("/b.bin", cast(Any, memoryview(buffer)))
        buffer[:] = b"after!"
        assert fs.read_bytes("/a.bin").content == fs.read_bytes("/b.bin").content == b"before"

    @pytest.mark.parametrize(
        ("lines", "text"),
        [
            ([], ""),
            (["one"], "one"),
            (["one", "two"], "one\ntwo"),
            (["one\n", "two\n"], "one\ntwo\n"),
            (["one\n", "two", "", "four\n"], "one\ntwo\n\nfour\n"),
            (["one\r\n", "two\r"], "one\r\ntwo\r"),
        ],
    )
    def test_each_line_but_the_last_is_given_the_newline_it_lacks(
        self, fs: Filesystem, lines: list[str], text: str
    ) -> None:
        written = fs.write_lines("/a.txt", iter(lines))
        assert fs.read_bytes("/a.txt").content == text.encode()
        assert (written.path, written.bytes_written) == ("/a.txt", len(text))

    def test_writers_on_several_threads_lose_nothing(self, fs: Filesystem) -> None:
        def work(number: int) -> None:
            for line in range(50):
                fs.append("/shared.txt", f"{number}:{line}\n")
                fs.write(f"/d{number}/{line}.txt", "text")

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(work, number) for number in range(4)]:
                done.result()
        expected = {f"{number}:{line}\n" for number in range(4) for line in range(50)}
        lines = fs.read_lines("/shared.txt")
        assert (len(lines), set(lines)) == (200, expected)
        assert fs.statistics().file_count == 201

    def test_a_deep_path_is_written_and_read(self, fs: Filesystem) -> None:
        path = "/d" * 40 + "/a.txt"
        fs.write(path, "deep")
        assert fs.read(path).content == "deep"
        assert fs.statistics().directory_count == 40

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

    def test_appending_to_a_copy_leaves_the_original_alone(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one")
        fs.copy("/a.txt", "/b.txt")
        fs.append("/b.txt", "two")
        fs.append("/a.txt", "three")
        assert fs.read("/a.txt").content == "onethree"
        assert fs.read("/b.txt").content == "onetwo"

    def test_a_restore_undoes_an_append(self, fs: Filesystem) -> None:
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
    def test_nothing_is_appended_below_a_file(self, fs: Filesystem, appender: str) -> None:
        fs.write("/a", "text")
        with refused(fs, NotADirectoryError):
            APPENDERS[appender](fs, "/a/b", "text")
