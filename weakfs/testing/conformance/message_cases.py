"""Errors: each names the thing, the cause and the remedy: `cannot write '/src': it is ...; name a file`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weakfs.filesystem import Filesystem, Limits
from weakfs.testing.conformance.harness import FilesystemCases, refused

# The call, the error it raises, and the path that the message must name.
CALLS: dict[str, tuple[Callable[[Filesystem], object], type[Exception], str]] = {
    "read_missing": (lambda fs: fs.read("/missing.txt"), FileNotFoundError, "/missing.txt"),
    "read_directory": (lambda fs: fs.read("/d"), IsADirectoryError, "/d"),
    "read_bytes_missing": (lambda fs: fs.read_bytes("/missing.txt"), FileNotFoundError, "/missing.txt"),
    "read_lines_missing": (lambda fs: fs.read_lines("/missing.txt"), FileNotFoundError, "/missing.txt"),
    "open_missing": (lambda fs: fs.open("/missing.txt"), FileNotFoundError, "/missing.txt"),
    "stat_missing": (lambda fs: fs.stat("/missing.txt"), FileNotFoundError, "/missing.txt"),
    "list_missing": (lambda fs: fs.list("/missing"), FileNotFoundError, "/missing"),
    "list_file": (lambda fs: fs.list("/a.txt"), NotADirectoryError, "/a.txt"),
    "glob_missing": (lambda fs: fs.glob("*", path="/missing"), FileNotFoundError, "/missing"),
    "grep_missing": (lambda fs: fs.grep("x", path="/missing"), FileNotFoundError, "/missing"),
    "write_directory": (lambda fs: fs.write("/d", "x"), IsADirectoryError, "/d"),
    "write_below_a_file": (lambda fs: fs.write("/a.txt/b", "x"), NotADirectoryError, "/a.txt"),
    "write_existing": (lambda fs: fs.write("/a.txt", "x", mode="create"), FileExistsError, "/a.txt"),
    "write_without_parent": (
        lambda fs: fs.write("/new/a.txt", "x", create_parents=False),
        FileNotFoundError,
        "/new",
    ),
    "append_directory": (lambda fs: fs.append("/d", "x"), IsADirectoryError, "/d"),
    "mkdir_file": (lambda fs: fs.mkdir("/a.txt"), FileExistsError, "/a.txt"),
    "mkdir_existing": (lambda fs: fs.mkdir("/d", exist_ok=False), FileExistsError, "/d"),
    "mkdir_without_parent": (lambda fs: fs.mkdir("/x/y", parents=False), FileNotFoundError, "/x"),
    "delete_missing": (lambda fs: fs.delete("/missing.txt"), FileNotFoundError, "/missing.txt"),
    "delete_full_directory": (lambda fs: fs.delete("/d"), OSError, "/d"),
    "delete_root": (lambda fs: fs.delete("/"), PermissionError, "/"),
    "move_missing": (lambda fs: fs.move("/missing.txt", "/b"), FileNotFoundError, "/missing.txt"),
    "move_onto_directory": (lambda fs: fs.move("/a.txt", "/d"), IsADirectoryError, "/d"),
    "move_into_itself": (lambda fs: fs.move("/d", "/d/e"), ValueError, "/d"),
    "copy_missing": (lambda fs: fs.copy("/missing.txt", "/b"), FileNotFoundError, "/missing.txt"),
    "copy_onto_directory": (lambda fs: fs.copy("/a.txt", "/d"), IsADirectoryError, "/d"),
    "copy_into_itself": (lambda fs: fs.copy("/d", "/d/e"), ValueError, "/d"),
    "chmod_missing": (lambda fs: fs.chmod("/missing.txt", 0o644), FileNotFoundError, "/missing.txt"),
    "symlink_existing": (lambda fs: fs.symlink("x", "/a.txt"), FileExistsError, "/a.txt"),
    "readlink_missing": (lambda fs: fs.readlink("/missing.txt"), FileNotFoundError, "/missing.txt"),
    "read_link": (lambda fs: fs.read("/link"), PermissionError, "/link"),
    "climbing": (lambda fs: fs.read("../etc/passwd"), PermissionError, "../etc/passwd"),
    "undecodable": (lambda fs: fs.read("/bad.bin"), ValueError, "/bad.bin"),
    "too_large": (lambda fs: fs.write("/new.txt", "x" * 1_001), OSError, "/new.txt"),
    "too_deep": (lambda fs: fs.write("/1/2/3/4/5", "x"), OSError, "/1/2/3/4/5"),
    "too_long_a_name": (lambda fs: fs.write("/" + "n" * 21, "x"), OSError, "n" * 21),
    "too_many_nodes": (lambda fs: fs.copy("/d", "/e"), OSError, "/e"),
    "too_much": (lambda fs: fs.write("/new.txt", "x" * 1_000), OSError, "/new.txt"),
}


class MessageCases(FilesystemCases):
    @pytest.mark.parametrize("call", CALLS)
    def test_an_error_names_the_thing_the_cause_and_the_remedy(self, call: str) -> None:
        def workspace(fs: Filesystem) -> None:
            fs.write("/a.txt", "text" * 50)
            fs.write("/d/b.txt", "text")
            fs.write_bytes("/bad.bin", b"\xff")
            fs.symlink("a.txt", "/link")

        limits = Limits(
            max_file_size=1_000,
            max_path_depth=4,
            max_segment_length=20,
            max_total_size=1_100,
            max_node_count=6,
        )
        fs = self.make_fs(prepare=workspace, limits=limits)
        function, error, path = CALLS[call]
        with refused(fs, error) as caught:
            function(fs)
        message = str(caught.value)
        assert path in message, "the message does not name the path"
        assert "; " in message, "the message has no remedy after a semicolon"
        if str(fs.root) != "/":
            assert str(fs.root) not in message, "the message shows where the files really are"

    @pytest.mark.parametrize("name", ["new\nline", "tab\t", "escape\x1b[31m", "sep\u2028arator"])
    def test_a_message_stays_on_one_line_whatever_the_name(self, fs: Filesystem, name: str) -> None:
        with refused(fs, FileNotFoundError) as caught:
            fs.read(f"/{name}")
        assert str(caught.value).isprintable()
