"""Pages of text: `offset`, `limit`, `truncated` and `total_lines` in all combinations."""

from __future__ import annotations

from itertools import product

import pytest

from weakfs.filesystem import Filesystem, Limits

from .harness import FilesystemCases, refused

__all__ = ["PageCases"]

WITH_FINAL_NEWLINE = ("one\n", "two\n", "three\n", "four\n", "five\n")
WITHOUT_FINAL_NEWLINE = ("one\n", "two\n", "three\n", "four\n", "five")

OFFSETS = (0, 1, 4, 5, 9)
LIMITS = (None, -1, 0, 1, 4, 5, 9)


class PageCases(FilesystemCases):
    @pytest.mark.parametrize(("offset", "limit"), list(product(OFFSETS, LIMITS)))
    @pytest.mark.parametrize("lines", [WITH_FINAL_NEWLINE, WITHOUT_FINAL_NEWLINE], ids=["newline", "no_newline"])
    def test_a_page_holds_the_lines_that_were_asked_for(
        self, fs: Filesystem, lines: tuple[str, ...], offset: int, limit: int | None
    ) -> None:
        fs.write("/a.txt", "".join(lines))
        end = len(lines) if limit in (None, -1) else offset + limit
        result = fs.read("/a.txt", offset=offset, limit=limit)
        assert result.content == "".join(lines[offset:end])
        assert result.truncated == (end < len(lines))
        assert result.total_lines == 5
        assert result.offset == offset

    @pytest.mark.parametrize("limit", [0, 1, 5, 9])
    def test_a_page_names_the_limit_that_was_asked_for(self, fs: Filesystem, limit: int) -> None:
        fs.write("/a.txt", "one\ntwo\n")
        assert fs.read("/a.txt", limit=limit).limit == limit

    @pytest.mark.parametrize(("offset", "limit"), list(product((0, 1), (None, -1, 0, 1))))
    def test_an_empty_file_has_no_lines(self, fs: Filesystem, offset: int, limit: int | None) -> None:
        fs.write("/a.txt", "")
        result = fs.read("/a.txt", offset=offset, limit=limit)
        assert (result.content, result.total_lines, result.truncated) == ("", 0, False)

    @pytest.mark.parametrize(
        ("preset", "offset", "limit", "first", "end"),
        [
            (3, 0, None, 0, 3),
            (3, 1, None, 1, 4),
            (3, 2, None, 2, 5),
            (5, 0, None, 0, 5),
            (3, 0, -1, 0, 5),
            (2, 1, -1, 1, 5),
            (3, 0, 4, 0, 4),
        ],
    )
    def test_the_preset_holds_from_the_offset_unless_a_limit_is_given(
        self, preset: int, offset: int, limit: int | None, first: int, end: int
    ) -> None:
        fs = self.make_fs(limits=Limits(default_read_limit=preset))
        fs.write("/a.txt", "".join(WITH_FINAL_NEWLINE))
        result = fs.read("/a.txt", offset=offset, limit=limit)
        assert result.content == "".join(WITH_FINAL_NEWLINE[first:end])
        assert (result.truncated, result.total_lines) == (end < 5, 5)

    def test_the_preset_is_for_lines_and_not_for_bytes(self) -> None:
        fs = self.make_fs(limits=Limits(default_read_limit=3))
        fs.write("/a.txt", "".join(WITH_FINAL_NEWLINE))
        assert fs.read_bytes("/a.txt").content == "".join(WITH_FINAL_NEWLINE).encode()

    @pytest.mark.parametrize(("preset", "lines"), [("tools", 2_000), ("strict", 2_000)])
    def test_the_presets_for_tools_read_two_thousand_lines(self, preset: str, lines: int) -> None:
        limits = Limits.tools() if preset == "tools" else Limits.strict()
        fs = self.make_fs(limits=limits)
        fs.write("/a.txt", "line\n" * (lines + 1))
        result = fs.read("/a.txt")
        assert (len(result.content), result.truncated, result.total_lines) == (lines * 5, True, lines + 1)

    def test_without_a_preset_the_whole_file_is_read(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "line\n" * 20_000)
        result = fs.read("/a.txt")
        assert (len(result.content), result.truncated, result.total_lines) == (100_000, False, 20_000)

    @pytest.mark.parametrize("offset", [-1, -100])
    def test_an_offset_below_zero_is_refused(self, fs: Filesystem, offset: int) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, ValueError):
            fs.read("/a.txt", offset=offset)
        with refused(fs, ValueError):
            fs.read_bytes("/a.txt", offset=offset)

    @pytest.mark.parametrize("limit", [-2, -100])
    def test_a_limit_below_minus_one_is_refused(self, fs: Filesystem, limit: int) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, ValueError):
            fs.read("/a.txt", limit=limit)
        with refused(fs, ValueError):
            fs.read_bytes("/a.txt", limit=limit)
