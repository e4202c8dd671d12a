"""Text: a read returns exactly what was written, to the last character, whole or in pages."""

from __future__ import annotations

from itertools import product

import pytest

from weakfs.filesystem import Filesystem, Limits
from weakfs.testing.conformance.harness import FilesystemCases, refused

TEXTS = {
    "empty": "",
    "no_final_newline": "one\ntwo",
    "final_newline": "one\ntwo\n",
    "one_line": "one",
    "only_a_newline": "\n",
    "only_newlines": "\n\n\n",
    "blank_lines_at_the_end": "one\n\n\n",
    "blank_lines_at_the_start": "\n\none",
    "crlf": "one\r\ntwo\r\n",
    "crlf_without_a_final_one": "one\r\ntwo",
    "lone_cr": "one\rtwo\r",
    "only_cr": "\r",
    "cr_at_the_end": "one\ntwo\r",
    "cr_cr_lf": "one\r\r\ntwo\n",
    "mixed_line_ends": "one\ntwo\r\nthree\rfour\n",
    "form_feed": "one\x0ctwo\n\x0c\n",
    "vertical_tab": "one\x0btwo\n",
    "separators": "one\x1ctwo\x1dthree\x1efour\n",
    "next_line": "one\x85two\n",
    "line_separator": "one\u2028two\n",
    "paragraph_separator": "one\u2029two\n",
    "nul": "one\0two\n\0",
    "byte_order_mark": "\ufeffone\ntwo\n",
    "only_a_byte_order_mark": "\ufeff",
    "byte_order_mark_inside": "one\ufefftwo\n",
    "spaces_at_the_ends": "  one  \n\ttwo\t\n ",
    "accents": "café\ncafe\u0301\n",
    "emoji": "🎉\n👩‍👩‍👧\n",
    "outside_the_basic_plane": "\U0001f600\U0010ffff\n",
    "replacement_character": "\ufffd\n",
    "noncharacter": "\uffff\n",
    "control_characters": "".join(chr(code) for code in range(1, 32)) + "\x7f\n",
    "long_line": "x" * 100_000 + "\nend",
    "many_lines": "line\n" * 5_000,
}

NOT_UTF8 = {
    "lone_continuation": b"\x80",
    "cut_off": b"\xc3",
    "bad_continuation": b"\xc3(",
    "overlong": b"\xc0\xaf",
    "cut_off_of_three": b"\xe2\x82",
    "surrogate": b"\xed\xa0\x80",
    "too_large": b"\xf5\x80\x80\x80",
    "not_utf8": b"ok\xfe\xff",
}

each_text = pytest.mark.parametrize("text", list(TEXTS.values()), ids=list(TEXTS))


def lines_of(text: str) -> list[str]:
    """Split after each `\\n` and nowhere else: `str.splitlines` would split at ten other characters."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


WITH_FINAL_NEWLINE = ("one\n", "two\n", "three\n", "four\n", "five\n")
WITHOUT_FINAL_NEWLINE = ("one\n", "two\n", "three\n", "four\n", "five")

OFFSETS = (0, 1, 4, 5, 9)
LIMITS = (None, -1, 0, 1, 4, 5, 9)


class TextCases(FilesystemCases):
    @each_text
    def test_text_is_read_as_it_was_written(self, fs: Filesystem, text: str) -> None:
        fs.write("/a.txt", text)
        result = fs.read("/a.txt")
        assert result.content == text
        assert not result.truncated

    @each_text
    def test_text_is_stored_as_utf8_without_translation(self, fs: Filesystem, text: str) -> None:
        written = fs.write("/a.txt", text)
        assert fs.read_bytes("/a.txt").content == text.encode()
        assert written.bytes_written == fs.stat("/a.txt").size_bytes == len(text.encode())

    @each_text
    def test_bytes_are_read_as_text_without_translation(self, fs: Filesystem, text: str) -> None:
        fs.write_bytes("/a.txt", text.encode())
        assert fs.read("/a.txt").content == text

    @each_text
    def test_lines_end_at_newlines_only(self, fs: Filesystem, text: str) -> None:
        fs.write("/a.txt", text)
        assert fs.read_lines("/a.txt") == tuple(lines_of(text))
        assert fs.read("/a.txt").total_lines == len(lines_of(text))

    @each_text
    def test_lines_are_written_as_they_were_read(self, fs: Filesystem, text: str) -> None:
        fs.write("/a.txt", text)
        fs.write_lines("/b.txt", fs.read_lines("/a.txt"))
        assert fs.read_bytes("/b.txt").content == text.encode()

    @each_text
    def test_pages_put_together_are_the_whole_text(self, fs: Filesystem, text: str) -> None:
        fs.write("/a.txt", text)
        size = max(1, len(lines_of(text)) // 7)
        pages = [fs.read("/a.txt", offset=at, limit=size) for at in range(0, len(lines_of(text)), size)]
        assert "".join(page.content for page in pages) == text
        assert [page.truncated for page in pages] == [True] * (len(pages) - 1) + [False] * bool(pages)

    @each_text
    def test_text_survives_a_snapshot_and_a_restore(self, fs: Filesystem, text: str) -> None:
        fs.write("/a.txt", text)
        snapshot = fs.snapshot()
        fs.write("/a.txt", f"{text} changed")
        fs.restore(snapshot)
        assert fs.read("/a.txt").content == text

    def test_other_encodings_are_read_when_named(self, fs: Filesystem) -> None:
        fs.write_bytes("/latin.txt", b"caf\xe9\n")
        assert fs.read("/latin.txt", encoding="latin-1").content == "café\n"

    def test_lines_of_wide_encodings_are_counted_after_decoding(self, fs: Filesystem) -> None:
        # U+0A0A is two bytes 0x0A in UTF-16: counting newline bytes would find lines that do not exist.
        fs.write_bytes("/wide.txt", "one\u0a0a\ntwo\nthree".encode("utf-16-le"))
        result = fs.read("/wide.txt", offset=1, limit=1, encoding="utf-16-le")
        assert (result.content, result.total_lines, result.truncated) == ("two\n", 3, True)

    def test_an_unknown_encoding_is_refused(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, ValueError):
            fs.read("/a.txt", encoding="klingon")

    @pytest.mark.parametrize("offset", [0, 5, 1234, 70_001])
    def test_bytes_that_do_not_decode_are_named_by_their_offset(self, fs: Filesystem, offset: int) -> None:
        fs.write_bytes("/bad.txt", b"a" * offset + b"\xff" + b"b" * 10)
        with pytest.raises(ValueError, match=rf"\b{offset}\b") as caught:
            fs.read("/bad.txt")
        assert "/bad.txt" in str(caught.value)

    def test_an_offset_is_counted_from_the_start_of_the_file(self, fs: Filesystem) -> None:
        fs.write_bytes("/bad.txt", b"one\n" * 100 + b"x\xffy\n")
        with pytest.raises(ValueError, match=r"\b401\b"):
            fs.read("/bad.txt", offset=100, limit=1)

    @pytest.mark.parametrize("content", list(NOT_UTF8.values()), ids=list(NOT_UTF8))
    def test_bytes_that_are_not_utf8_are_never_guessed_at(self, fs: Filesystem, content: bytes) -> None:
        fs.write_bytes("/bad", content)
        with pytest.raises(ValueError, match="/bad"):
            fs.read("/bad")
        with pytest.raises(ValueError, match="/bad"):
            fs.read_lines("/bad")
        assert fs.read_bytes("/bad").content == content

    @pytest.mark.parametrize("content", ["\ud800", "text \udfff", "\udc80\n"])
    def test_a_lone_surrogate_is_not_text(self, fs: Filesystem, content: str) -> None:
        with refused(fs, ValueError):
            fs.write("/new/a.txt", content)
        fs.write("/a.txt", "kept")
        with refused(fs, ValueError):
            fs.append("/a.txt", content)
        with refused(fs, ValueError):
            fs.write_lines("/a.txt", ["one\n", content])

    @pytest.mark.parametrize(("offset", "limit"), list(product(OFFSETS, LIMITS)))
    @pytest.mark.parametrize("lines", [WITH_FINAL_NEWLINE, WITHOUT_FINAL_NEWLINE], ids=["newline", "no_newline"])
    def test_a_page_has_the_requested_lines(
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
    def test_a_page_reports_the_requested_limit(self, fs: Filesystem, limit: int) -> None:
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
    def test_the_preset_limit_applies_from_the_offset_unless_a_limit_is_given(
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

    @pytest.mark.parametrize("limits", [Limits.tools(), Limits.strict()], ids=["tools", "strict"])
    def test_the_presets_for_tools_read_two_thousand_lines(self, limits: Limits) -> None:
        fs = self.make_fs(limits=limits)
        fs.write("/a.txt", "line\n" * 2_001)
        result = fs.read("/a.txt")
        assert (len(result.content), result.truncated, result.total_lines) == (10_000, True, 2_001)

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
