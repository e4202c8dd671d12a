"""Grepping: one linear-time engine, the same matches everywhere, and helpful errors for patterns."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem, Limits
from weakfs.testing.conformance.harness import FilesystemCases, refused


def found(fs: Filesystem, pattern: str, *, path: str = "/", glob: str | None = None) -> list[tuple[str, int]]:
    return [(match.path, match.line_number) for match in fs.grep(pattern, path=path, glob=glob)]


# A pattern, a text, and the numbers of the matching lines.
PATTERNS: dict[str, tuple[str, str, list[int]]] = {
    "literal": ("b", "a\nb\nab\n", [2, 3]),
    "alternatives": ("one|two", "one\ntwo\nthree\n", [1, 2]),
    "start_of_line": ("^b", "ab\nba\nb\n", [2, 3]),
    "end_of_line": ("b$", "ab\nba\nb", [1, 3]),
    "whole_line": ("^ab$", "ab\nxab\nabx\nab", [1, 4]),
    "empty_line": ("^$", "a\n\nb\n", [2]),
    "any_character_but_a_newline": ("a.b", "a\nb\naxb\na\rb\n", [3, 4]),
    "white_space_stays_inside_a_line": (r"a\s+b", "a\n b\na \tb\n", [3]),
    "a_negated_class_stays_inside_a_line": ("a[^x]+b", "a\ny\nb\nayb\n", [4]),
    "dot_all_stays_inside_a_line": ("(?s)a.*b", "a\nb\na b\n", [3]),
    "digits": (r"\d{2}", "1\n12\nab\n", [2]),
    "digits_are_ascii": (r"\d", "٣\n3\n", [2]),
    "words_are_ascii": (r"^\w+$", "é\ne\n_\n", [2, 3]),
    "word_ends_are_ascii": (r"\bcaf\b", "café\ncafe\ncaf\n", [1, 3]),
    "letters_of_every_script": ("日.語", "日本語\n日語\n", [1]),
    "a_dot_is_one_character": ("^.$", "é\n🎉\nab\n", [1, 2]),
    "class_of_letters": ("[à-ü]", "e\né\n", [2]),
    "unicode_class": (r"\p{Greek}", "alpha\n\u03b1\n", [2]),
    "escaped": (r"a\.b\(\)", "a.b()\naxb()\n", [1]),
    "quoted": (r"\Qa.b(\E", "a.b(\naxb(\n", [1]),
    "greedy_or_not": ("a+?b", "aab\nb\n", [1]),
    "counted": ("^(ab){2,3}$", "ab\nabab\nababab\nabababab\n", [2, 3]),
    "case_counts": ("needle", "Needle\nneedle\n", [2]),
    "flag_in_the_pattern": ("(?i)needle", "NEEDLE\nneedle\n", [1, 2]),
    "named_group": ("(?P<word>one) two", "one two\ntwo one\n", [1]),
}

UNSUPPORTED = {
    "lookahead": "a(?=b)",
    "negative_lookahead": "a(?!b)",
    "lookbehind": "(?<=a)b",
    "negative_lookbehind": "(?<!a)b",
    "backreference": r"(a)\1",
    "named_backreference": r"(?P<x>a)(?P=x)",
    "atomic_group": "(?>a+)b",
    "line_break": r"a\nb",
}

MALFORMED = ("(", "a)", "[a", "a{2,1}", "*", "a**", "\\", "(?P<x", "[z-a]")


class GrepCases(FilesystemCases):
    def test_a_match_says_where_it_is(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "one\ntwo needle three\n")
        (match,) = fs.grep("needle")
        assert (match.path, match.line_number, match.line_content) == ("/d/a.txt", 2, "two needle three")
        assert (match.match_start, match.match_end) == (4, 10)

    def test_offsets_are_counted_in_characters(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "日本🎉 é needle\n")
        (match,) = fs.grep("needle")
        assert (match.match_start, match.match_end) == (6, 12)
        assert match.line_content[match.match_start : match.match_end] == "needle"

    def test_a_line_is_found_once_at_its_first_match(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "xx ab ab\nab\n\nab ab")
        matches = fs.grep("ab")
        assert [(match.line_number, match.match_start) for match in matches] == [(1, 3), (2, 0), (4, 0)]

    def test_the_lines_of_a_search_end_at_newlines_only(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one\r\x0c\u2028\x85needle\r\nneedle\n")
        first, second = fs.grep("needle")
        assert (first.line_number, first.line_content) == (1, "one\r\x0c\u2028\x85needle\r")
        assert (second.line_number, second.line_content) == (2, "needle")

    @pytest.mark.parametrize("text", ["needle", "needle\n", "\n\nneedle", "\ufeffneedle"])
    def test_a_match_may_touch_the_ends_of_a_file(self, fs: Filesystem, text: str) -> None:
        fs.write("/a.txt", text)
        (match,) = fs.grep("needle")
        assert match.line_number == text.count("\n", 0, text.index("needle")) + 1

    def test_a_multiline_match_has_all_of_its_lines(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one\ntwo\nthree\nfour\n")
        (match,) = fs.grep("two.*hree", multiline=True)
        assert (match.line_number, match.line_content) == (2, "two\nthree")
        assert list(fs.grep("two.*hree")) == []

    def test_the_matches_of_each_file_can_be_bounded(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "x\n" * 5)
        fs.write("/b.txt", "x\n")
        result = fs.grep("x", max_per_file=2)
        assert [(match.path, match.line_number) for match in result] == [("/a.txt", 1), ("/a.txt", 2), ("/b.txt", 1)]
        assert result.truncated is False
        with refused(fs, ValueError):
            fs.grep("x", max_per_file=0)

    def test_an_empty_file_has_no_lines_to_match(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "")
        assert list(fs.grep("x*")) == []

    def test_an_empty_match_is_found_on_every_line(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "one\n\nthree\n")
        matches = fs.grep("x*")
        assert [match.line_number for match in matches] == [1, 2, 3]
        assert [(match.match_start, match.match_end) for match in matches] == [(0, 0)] * 3

    def test_results_come_by_path_and_then_by_line(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/c.txt", "/a/z.txt", "/b.txt")
        for path in ("/c.txt", "/a/z.txt", "/b.txt"):
            fs.write(path, "x\ny\nx\n")
        assert found(fs, "x") == [
            ("/a/z.txt", 1), ("/a/z.txt", 3), ("/b.txt", 1), ("/b.txt", 3), ("/c.txt", 1), ("/c.txt", 3),
        ]  # fmt: skip

    def test_a_search_stays_below_its_path(self, fs: Filesystem) -> None:
        for path in ("/src/a.txt", "/src/lib/b.txt", "/src2/c.txt", "/d.txt"):
            fs.write(path, "needle")
        assert found(fs, "needle", path="/src") == [("/src/a.txt", 1), ("/src/lib/b.txt", 1)]

    def test_a_search_may_be_of_one_file(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "needle")
        fs.write("/b.txt", "needle")
        assert found(fs, "needle", path="/b.txt") == [("/b.txt", 1)]

    def test_a_glob_chooses_the_files(self, fs: Filesystem) -> None:
        for path in ("/a.py", "/d/b.py", "/d/c.txt", "/e/f/g.ts"):
            fs.write(path, "needle")
        assert found(fs, "needle", glob="*.py") == [("/a.py", 1), ("/d/b.py", 1)]
        assert found(fs, "needle", glob="d/*") == [("/d/b.py", 1), ("/d/c.txt", 1)]
        assert found(fs, "needle", glob="**/*.{ts,txt}") == [("/d/c.txt", 1), ("/e/f/g.ts", 1)]
        with refused(fs, ValueError):
            fs.grep("needle", glob="[abc")

    def test_a_glob_starts_at_the_path_of_the_search(self, fs: Filesystem) -> None:
        for path in ("/src/lib/a.py", "/lib/b.py"):
            fs.write(path, "needle")
        assert found(fs, "needle", path="/src", glob="lib/*.py") == [("/src/lib/a.py", 1)]

    def test_hidden_files_are_searched(self, fs: Filesystem) -> None:
        fs.write("/.env", "needle")
        fs.write("/.git/config", "needle")
        assert found(fs, "needle") == [("/.env", 1), ("/.git/config", 1)]

    def test_a_glob_chooses_hidden_files_too(self, fs: Filesystem) -> None:
        for path in ("/.env", "/.github/ci.yml", "/d/.x.yml", "/d/a.yml"):
            fs.write(path, "needle")
        chosen = [match.path for match in fs.grep("needle", glob="*.yml")]
        assert chosen == ["/.github/ci.yml", "/d/.x.yml", "/d/a.yml"]
        assert [match.path for match in fs.grep("needle", path="/.env", glob="*")] == ["/.env"]

    def test_hidden_files_can_be_left_out(self, fs: Filesystem) -> None:
        for path in ("/.env", "/.github/ci.yml", "/d/.x.yml", "/d/a.yml"):
            fs.write(path, "needle")

        def shown(path: str = "/", glob: str | None = None) -> list[str]:
            return [match.path for match in fs.grep("needle", path=path, glob=glob, hidden=False)]

        assert shown() == ["/d/a.yml"]
        assert fs.grep("needle", hidden=False).files_searched == 1
        assert shown(glob="*.yml") == shown(glob="**") == ["/d/a.yml"]
        # Hidden entries that the pattern names are included.
        assert shown(glob=".env") == shown(path="/.env") == ["/.env"]
        assert shown(glob=".github/**") == shown(path="/.github", glob="*.yml") == ["/.github/ci.yml"]

    def test_binary_files_are_skipped_and_counted(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "needle")
        fs.write_bytes("/b.bin", b"needle\0")
        fs.write_bytes("/c.bin", b"\0")
        result = fs.grep("needle")
        assert [match.path for match in result] == ["/a.txt"]
        assert (result.binary_skipped, result.files_searched) == (2, 1)

    @pytest.mark.parametrize(("offset", "binary"), [(0, True), (8_191, True), (8_192, False), (20_000, False)])
    def test_a_nul_in_the_first_eight_kibibytes_makes_a_file_binary(
        self, fs: Filesystem, offset: int, binary: bool
    ) -> None:
        fs.write_bytes("/a", b"x" * offset + b"\0\nneedle\n")
        result = fs.grep("needle")
        assert (len(result), result.binary_skipped) == ((0, 1) if binary else (1, 0))

    def test_undecodable_bytes_are_shown_as_replaced(self, fs: Filesystem) -> None:
        fs.write_bytes("/latin.txt", b"caf\xe9 needle\n\xff\nneedle \xfe\n")
        first, second = fs.grep("needle")
        assert (first.line_content, first.match_start, first.match_end) == ("caf\ufffd needle", 5, 11)
        assert (second.line_number, second.line_content) == (3, "needle \ufffd")

    def test_the_files_that_were_searched_are_counted(self, fs: Filesystem) -> None:
        for path in ("/a.py", "/d/b.py", "/c.txt"):
            fs.write(path, "text")
        fs.symlink("a.py", "/link.py")
        assert fs.grep("nothing").files_searched == 3
        assert fs.grep("nothing", glob="*.py").files_searched == 2
        assert fs.grep("nothing", path="/d").files_searched == 1

    def test_a_search_without_matches_has_an_empty_result(self, fs: Filesystem) -> None:
        result = fs.grep("nothing")
        assert (len(result), list(result), result.truncated) == (0, [], False)
        assert (result.files_searched, result.binary_skipped) == (0, 0)

    @pytest.mark.parametrize(
        ("allowed", "given", "truncated"), [(1, 1, True), (3, 3, True), (4, 4, False), (9, 4, False)]
    )
    def test_no_more_matches_are_returned_than_allowed(
        self, fs: Filesystem, allowed: int, given: int, truncated: bool
    ) -> None:
        fs.write("/a.txt", "x\nx\n")
        fs.write("/b.txt", "x\nx\n")
        result = fs.grep("x", max_matches=allowed)
        assert (len(result), result.truncated) == (given, truncated)
        expected = [("/a.txt", 1), ("/a.txt", 2), ("/b.txt", 1), ("/b.txt", 2)]
        assert [(match.path, match.line_number) for match in result] == expected[:allowed]

    def test_the_preset_cuts_when_no_number_is_given(self) -> None:
        fs = self.make_fs(limits=Limits(max_grep_matches=3))
        fs.write("/a.txt", "x\n" * 4)
        result = fs.grep("x")
        assert (len(result), result.truncated) == (3, True)
        fs.write("/a.txt", "x\n" * 3)
        assert not fs.grep("x").truncated

    def test_a_thousand_matching_lines_are_returned_by_default(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "x\n" * 1_001)
        result = fs.grep("x")
        assert (len(result), result.truncated) == (1_000, True)

    def test_a_number_of_ones_own_may_pass_the_preset(self) -> None:
        fs = self.make_fs(limits=Limits(max_grep_matches=3))
        fs.write("/a.txt", "x\n" * 10)
        assert (len(fs.grep("x", max_matches=5)), fs.grep("x", max_matches=5).truncated) == (5, True)
        assert (len(fs.grep("x", max_matches=-1)), fs.grep("x", max_matches=-1).truncated) == (10, False)
        assert (len(fs.grep("x", max_matches=0)), fs.grep("x", max_matches=0).truncated) == (0, True)
        with refused(fs, ValueError):
            fs.grep("x", max_matches=-2)

    def test_the_matches_of_a_grep_are_a_sequence(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "x1\nx2\nx3\n")
        result = fs.grep("x")
        assert [result[index].line_content for index in (0, 1, -1)] == ["x1", "x2", "x3"]
        assert [match.line_number for match in reversed(result)] == [3, 2, 1]
        assert result[0] in result
        with pytest.raises(IndexError):
            result[3]

    def test_a_file_is_searched_as_it_is_now(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "before\n")
        assert len(fs.grep("before")) == 1
        fs.append("/a.txt", "after\n")
        assert found(fs, "after") == [("/a.txt", 2)]
        fs.write("/a.txt", "other\n")
        assert found(fs, "before|after") == []

    @pytest.mark.parametrize(("pattern", "text", "lines"), list(PATTERNS.values()), ids=list(PATTERNS))
    def test_a_pattern_matches_these_lines(self, fs: Filesystem, pattern: str, text: str, lines: list[int]) -> None:
        fs.write("/a.txt", text)
        assert [match.line_number for match in fs.grep(pattern)] == lines

    def test_a_search_can_ignore_case(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "Needle\nNEEDLE\nnoodle\nÉtude\n")
        assert [match.line_number for match in fs.grep("needle", case_insensitive=True)] == [1, 2]
        assert [match.line_number for match in fs.grep("étude", case_insensitive=True)] == [4]

    @pytest.mark.parametrize("pattern", list(UNSUPPORTED.values()), ids=list(UNSUPPORTED))
    def test_patterns_that_the_engine_does_not_support_are_refused(self, fs: Filesystem, pattern: str) -> None:
        fs.write("/a.txt", "text")
        with refused(fs, ValueError):
            fs.grep(pattern)

    @pytest.mark.parametrize("kind", ["lookahead", "negative_lookahead", "lookbehind", "negative_lookbehind"])
    def test_lookaround_is_named_in_the_error(self, fs: Filesystem, kind: str) -> None:
        with pytest.raises(ValueError, match=r"(?i)look-?(around|ahead|behind)") as caught:
            fs.grep(UNSUPPORTED[kind])
        assert ";" in str(caught.value), "the error does not say what to write instead"

    def test_backreferences_are_named_in_the_error(self, fs: Filesystem) -> None:
        with pytest.raises(ValueError, match=r"(?i)back-?reference") as caught:
            fs.grep(UNSUPPORTED["backreference"])
        assert ";" in str(caught.value), "the error does not say what to write instead"

    @pytest.mark.parametrize("pattern", MALFORMED)
    def test_a_malformed_pattern_is_refused_even_where_nothing_is_searched(self, fs: Filesystem, pattern: str) -> None:
        with refused(fs, ValueError):
            fs.grep(pattern)

    @pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
    def test_no_pattern_takes_forever(self, fs: Filesystem, pattern: str) -> None:
        fs.write("/a.txt", "a" * 5_000 + "!\n")
        assert list(fs.grep(pattern)) == []

    def test_many_matches_in_one_file_are_found_in_linear_time(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "some text before the needle and after\n" * 20_000)
        result = fs.grep("n.*e", max_matches=20_000)
        assert (len(result), result[-1].line_number, result.truncated) == (20_000, 20_000, False)

    def test_a_long_line_is_searched_whole(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "é" * 200_000 + "needle")
        (match,) = fs.grep("needle")
        assert (match.match_start, match.match_end) == (200_000, 200_006)
