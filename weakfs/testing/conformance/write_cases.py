"""Writing: what is created, what is replaced, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused
from .operations import CHANGING

__all__ = ["WriteCases"]

WRITERS = ("write", "write_bytes", "append", "write_lines", "open_w", "open_a")
each_writer = pytest.mark.parametrize("writer", WRITERS)


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
    def test_no_writer_takes_a_file_for_a_parent(self, fs: Filesystem, writer: str, path: str) -> None:
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

    def test_create_takes_a_name_that_was_deleted(self, fs: Filesystem) -> None:
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
    def test_a_missing_parent_is_refused_when_parents_are_not_to_be_made(self, fs: Filesystem, mode: str) -> None:
        with refused(fs, FileNotFoundError):
            fs.write("/d/a.txt", "text", mode=cast(Any, mode), create_parents=False)
        with refused(fs, FileNotFoundError):
            fs.write_bytes("/d/a.txt", b"text", mode=cast(Any, mode), create_parents=False)

    def test_an_existing_parent_is_enough_when_parents_are_not_to_be_made(self, fs: Filesystem) -> None:
        fs.mkdir("/d")
        fs.write("/d/a.txt", "text", create_parents=False)
        fs.write("/b.txt", "text", create_parents=False)
        assert fs.read("/d/a.txt").content == fs.read("/b.txt").content == "text"

    def test_a_file_for_a_parent_is_refused_when_parents_are_not_to_be_made(self, fs: Filesystem) -> None:
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
    def test_asking_below_a_file_finds_nothing(self, fs: Filesystem, path: str) -> None:
        fs.write("/a", "text")
        assert not fs.exists(path)
        assert not fs.is_file(path)
        assert not fs.is_directory(path)

    def test_text_and_bytes_are_not_mistaken_for_each_other(self, fs: Filesystem) -> None:
        with refused(fs, TypeError):
            fs.write("/d/a.txt", cast(Any, b"bytes"))
        with refused(fs, TypeError):
            fs.write_bytes("/d/a.txt", cast(Any, "text"))

    def test_what_was_written_does_not_change_with_the_buffer_it_came_from(self, fs: Filesystem) -> None:
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
