"""Names: every character that a path may contain, through every operation."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases

__all__ = ["NameCases"]

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


class NameCases(FilesystemCases):
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
