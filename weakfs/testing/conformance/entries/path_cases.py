"""Paths and names: one canonical form for every spelling, no way above the root, and all legal characters."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, cast

import pytest

from weakfs.filesystem import Filesystem
from weakfs.testing.conformance.harness import FilesystemCases, refused
from weakfs.testing.conformance.operations import EVERY, READING

SPELLINGS_OF_A_FILE = (
    "/src/a.txt",
    "src/a.txt",
    "./src/a.txt",
    "/./src/./a.txt",
    "//src//a.txt",
    "/src///a.txt",
    "/src/a.txt/",
    "\\src\\a.txt",
    "src\\a.txt",
    "\\src/a.txt",
    "/src/./x/../a.txt",
    "/src/x/y/../../a.txt",
    "/nowhere/../src/a.txt",
    "src\\x\\..\\a.txt",
)
SPELLINGS_OF_THE_ROOT = ("/", "", ".", "./", "//", "\\", "/.", "a/..", "/a/b/../..")
CLIMBING = ("..", "/..", "../x", "/../x", "a/../../x", "/a/../../x", "..\\x", "\\..\\x", "/a/../../a.txt")
ORDINARY_NAMES = ("[...slug]", "a..b", "..a", "a..", "...", "....", ".hidden", "a.", ".a.")

NAMES = {
    "space": "a b",
    "leading_space": " a",
    "trailing_space": "a ",
    "only_space": " ",
    "newline": "a\nb",
    "carriage_return": "a\rb",
    "tab": "a\tb",
    "escape_code": "a\x1b[31mb",
    "delete": "a\x7fb",
    "accent": "café",
    "decomposed_accent": "cafe\u0301",
    "cjk": "日本語",
    "emoji": "🎉👩‍👩‍👧",
    "right_to_left_mark": "a\u202eb",
    "line_separator": "a\u2028b",
    "byte_order_mark": "\ufeffa",
    "private_use": "a\uf75cb",
    "single_quotes": "it's",
    "double_quotes": 'say "hi"',
    "backtick": "a`b`",
    "leading_dash": "-rf",
    "option": "--help",
    "percent": "100%",
    "percent_escape": "%2e%2e%2fa",
    "format_field": "{0}{name}%s",
    "dollar": "$HOME",
    "tilde": "~",
    "semicolon": "a;b",
    "pipe": "a|b&c",
    "star": "*",
    "question_mark": "a?b",
    "brackets": "[id]",
    "slug": "[...slug]",
    "braces": "{a,b}",
    "hash": "#a#",
    "colon": "c:a",
    "comma": "a,b",
    "at": "@scope",
    "plus": "a+b",
    "device": "con",
    "dunder": "__class__",
    "cached_hash": "_cached_hash",
    "temporary": ".a.tmp",
    "git": ".git",
    "longest_ascii": "n" * 255,
    "longest_multibyte": "é" * 127 + "n",
}

each_name = pytest.mark.parametrize("name", list(NAMES.values()), ids=list(NAMES))


class PathCases(FilesystemCases):
    @pytest.mark.parametrize("spelling", SPELLINGS_OF_A_FILE)
    def test_every_spelling_writes_the_same_file(self, fs: Filesystem, spelling: str) -> None:
        written = fs.write(spelling, "text")
        assert written.path == "/src/a.txt"
        assert [entry.path for entry in fs.list("/src")] == ["/src/a.txt"]
        assert fs.statistics().node_count == 2

    @pytest.mark.parametrize("spelling", SPELLINGS_OF_A_FILE)
    def test_every_spelling_reads_the_same_file(self, fs: Filesystem, spelling: str) -> None:
        fs.write("/src/a.txt", "text")
        assert fs.exists(spelling)
        assert fs.is_file(spelling)
        assert fs.stat(spelling).path == "/src/a.txt"
        read = fs.read(spelling)
        assert (read.path, read.content) == ("/src/a.txt", "text")
        read_bytes = fs.read_bytes(spelling)
        assert (read_bytes.path, read_bytes.content) == ("/src/a.txt", b"text")

    @pytest.mark.parametrize("spelling", SPELLINGS_OF_THE_ROOT)
    def test_every_spelling_of_the_root_is_the_root(self, fs: Filesystem, spelling: str) -> None:
        fs.write("/a.txt", "")
        assert fs.stat(spelling).path == "/"
        assert fs.is_directory(spelling)
        assert [entry.path for entry in fs.list(spelling)] == ["/a.txt"]

    def test_list_lists_the_root_by_default(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "")
        assert fs.list() == fs.list("/")

    @pytest.mark.parametrize("spelling", ["src", "src/", "\\src", "./src/../src", "/x/../src"])
    def test_search_answers_with_canonical_paths(self, fs: Filesystem, spelling: str) -> None:
        fs.write("/src/a.txt", "text")
        assert [entry.path for entry in fs.list(spelling)] == ["/src/a.txt"]
        assert [match.path for match in fs.glob("*.txt", path=spelling)] == ["/src/a.txt"]
        assert [match.path for match in fs.grep("text", path=spelling)] == ["/src/a.txt"]

    @pytest.mark.parametrize("spelling", ["made", "made/", "\\made", "./x/../made"])
    def test_every_spelling_makes_the_same_directory(self, fs: Filesystem, spelling: str) -> None:
        fs.mkdir(spelling)
        assert [entry.path for entry in fs.list("/")] == ["/made"]

    def test_both_ends_of_a_move_may_be_spelled_freely(self, fs: Filesystem) -> None:
        fs.write("/src/a.txt", "text")
        fs.move("src\\a.txt", "./x/../b.txt")
        assert fs.read("/b.txt").content == "text"
        assert not fs.exists("/src/a.txt")

    @pytest.mark.parametrize("name", ORDINARY_NAMES)
    def test_dots_inside_a_name_are_ordinary(self, fs: Filesystem, name: str) -> None:
        fs.write(f"/d/{name}", "text")
        assert [entry.name for entry in fs.list("/d")] == [name]
        assert fs.read(f"d/{name}").content == "text"

    def test_a_directory_named_with_dots_is_not_climbed(self, fs: Filesystem) -> None:
        fs.write("/.../a..b/c.txt", "text")
        assert fs.read("/.../a..b/c.txt").content == "text"

    def test_dots_are_resolved_by_segment_and_not_through_files(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        assert fs.read("/a.txt/../a.txt").content == "text"

    @pytest.mark.parametrize("climbing", CLIMBING)
    def test_climbing_above_the_root_is_refused(self, fs: Filesystem, climbing: str) -> None:
        fs.write("/a/x", "text")
        with refused(fs, PermissionError):
            fs.read(climbing)
        with refused(fs, PermissionError):
            fs.write(climbing, "text")

    @pytest.mark.parametrize("operation", READING)
    def test_a_path_object_is_a_path(self, fs: Filesystem, operation: str) -> None:
        fs.write(PurePosixPath("/d/a.txt"), "text")
        fs.symlink("d/a.txt", PurePosixPath("/link"))
        path = {"list": "/d", "walk": "/d", "glob": "/d", "readlink": "/link"}.get(operation, "/d/a.txt")
        plain = READING[operation](fs, path)
        if not operation.startswith("open"):
            assert READING[operation](fs, PurePosixPath(path)) == plain

    @pytest.mark.parametrize("operation", EVERY)
    @pytest.mark.parametrize("path", [None, 5, b"/here.txt"], ids=["none", "number", "bytes"])
    def test_a_value_that_is_not_a_path_is_refused(self, fs: Filesystem, operation: str, path: object) -> None:
        fs.write("/here.txt", "text")
        with refused(fs, TypeError):
            EVERY[operation](fs, cast(Any, path))

    @pytest.mark.parametrize("operation", EVERY)
    @pytest.mark.parametrize(
        ("path", "error"),
        [("/a/../../here.txt", PermissionError), ("/here\0.txt", ValueError), ("/here\ud800.txt", ValueError)],
        ids=["climbing", "nul", "lone_surrogate"],
    )
    def test_no_operation_takes_an_invalid_path(
        self, fs: Filesystem, operation: str, path: str, error: type[Exception]
    ) -> None:
        fs.write("/here.txt", "text")
        with refused(fs, error):
            EVERY[operation](fs, path)

    def test_a_path_is_compared_by_letters_and_case(self, fs: Filesystem) -> None:
        fs.write("/Readme", "upper")
        assert not fs.exists("/readme")
        fs.write("/readme", "lower")
        assert fs.read("/Readme").content == "upper"
        assert not fs.exists("/README")

    @each_name
    def test_a_file_may_have_the_name(self, fs: Filesystem, name: str) -> None:
        path = f"/d/{name}"
        fs.write(path, "needle\n")
        fs.append(path, "more\n")
        assert fs.read(path).content == "needle\nmore\n"
        assert [(entry.name, entry.path) for entry in fs.list("/d")] == [(name, path)]
        assert fs.stat(path).path == path
        assert [match.path for match in fs.grep("needle")] == [path]
        assert [match.path for match in fs.glob("**", hidden=True)] == [path]
        assert fs.delete(path) == 1
        assert not fs.exists(path)

    @each_name
    def test_a_directory_may_have_the_name(self, fs: Filesystem, name: str) -> None:
        path = f"/{name}/inner/a.txt"
        fs.write(path, "text")
        assert [entry.path for entry in fs.list("/")] == [f"/{name}"]
        assert fs.read(path).content == "text"
        fs.move(f"/{name}", "/plain")
        fs.copy("/plain", f"/{name}")
        assert fs.read(path).content == fs.read("/plain/inner/a.txt").content

    @each_name
    def test_a_restore_brings_the_name_back(self, fs: Filesystem, name: str) -> None:
        fs.write(f"/{name}", "text")
        before = fs.tree().fingerprint
        snapshot = fs.snapshot()
        fs.delete(f"/{name}")
        fs.restore(snapshot)
        assert fs.tree().fingerprint == before
        assert fs.read(f"/{name}").content == "text"

    @each_name
    def test_an_archive_carries_the_name(self, fs: Filesystem, name: str) -> None:
        fs.write(f"/{name}", "text")
        fs.mkdir(f"/d/{name}")
        other = self.make_fs()
        other.import_bytes(fs.export_bytes())
        assert other.read(f"/{name}").content == "text"
        assert other.is_directory(f"/d/{name}")
        assert other.tree().fingerprint == fs.tree().fingerprint

    @each_name
    def test_a_link_may_have_the_name_and_point_to_it(self, fs: Filesystem, name: str) -> None:
        fs.symlink(name, f"/d/{name}")
        assert fs.readlink(f"/d/{name}") == name
        assert fs.stat(f"/d/{name}").target == name

    def test_names_that_look_alike_are_different_files(self, fs: Filesystem) -> None:
        names = ["caf\u00e9", "cafe\u0301", "CAF\u00c9", "cafe", "cafe ", "cafe."]
        for name in names:
            fs.write(f"/{name}", name)
        assert sorted(entry.name for entry in fs.list("/")) == sorted(names)
        assert [fs.read(f"/{name}").content for name in names] == names

    def test_a_directory_takes_many_names(self, fs: Filesystem) -> None:
        names = [f"file-{number:03}.txt" for number in range(300)]
        for name in reversed(names):
            fs.write(f"/d/{name}", name)
        assert [entry.name for entry in fs.list("/d")] == names
        for name in names[::2]:
            fs.delete(f"/d/{name}")
        assert [entry.name for entry in fs.list("/d")] == names[1::2]
        assert all(fs.read(f"/d/{name}").content == name for name in names[1::2])
