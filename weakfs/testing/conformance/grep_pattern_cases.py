"""Patterns of `grep`: one linear-time engine, the same answers everywhere, and helpful errors."""

from __future__ import annotations

import pytest

from weakfs.filesystem import Filesystem

from .harness import FilesystemCases, refused

__all__ = ["GrepPatternCases"]

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


class GrepPatternCases(FilesystemCases):
    @pytest.mark.parametrize(("pattern", "text", "lines"), list(PATTERNS.values()), ids=list(PATTERNS))
    def test_a_pattern_matches_these_lines(self, fs: Filesystem, pattern: str, text: str, lines: list[int]) -> None:
        fs.write("/a.txt", text)
        assert [match.line_number for match in fs.grep(pattern)] == lines

    def test_case_does_not_count_when_asked(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "Needle\nNEEDLE\nnoodle\nÉtude\n")
        assert [match.line_number for match in fs.grep("needle", case_insensitive=True)] == [1, 2]
        assert [match.line_number for match in fs.grep("étude", case_insensitive=True)] == [4]

    @pytest.mark.parametrize("pattern", list(UNSUPPORTED.values()), ids=list(UNSUPPORTED))
    def test_what_a_linear_search_by_lines_cannot_do_is_refused(self, fs: Filesystem, pattern: str) -> None:
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
    def test_no_pattern_takes_for_ever(self, fs: Filesystem, pattern: str) -> None:
        fs.write("/a.txt", "a" * 5_000 + "!\n")
        assert list(fs.grep(pattern)) == []

    def test_many_hits_in_one_file_take_no_longer_each(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "some text before the needle and after\n" * 20_000)
        result = fs.grep("n.*e", max_matches=20_000)
        assert (len(result), result[-1].line_number, result.truncated) == (20_000, 20_000, False)

    def test_a_long_line_is_searched_whole(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "é" * 200_000 + "needle")
        (match,) = fs.grep("needle")
        assert (match.match_start, match.match_end) == (200_000, 200_006)
