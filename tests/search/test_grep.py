"""What a search shows of a line, which patterns it refuses, and that none of them hangs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.search import Hit, compile_pattern, is_binary
from weakfs.search.grep_syntax import quoted, rarest_part, required_text, tokens


def search(pattern: str, data: bytes, *, case_insensitive: bool = False) -> list[Hit]:
    return compile_pattern(pattern, case_insensitive=case_insensitive).search(data)


def numbers(pattern: str, data: bytes) -> list[int]:
    return [hit.line_number for hit in search(pattern, data)]


def test_a_hit_shows_its_line_and_the_first_match_in_it() -> None:
    assert search("o+", b"one\ntwo foo\n") == [Hit(1, "one", 0, 1), Hit(2, "two foo", 2, 3)]


def test_offsets_count_characters() -> None:
    assert search("x.", "é漢x😀".encode()) == [Hit(1, "é漢x😀", 2, 4)]


@pytest.mark.parametrize(
    ("data", "lines"),
    [(b"", []), (b"\n", [1]), (b"a", [1]), (b"a\n", [1]), (b"a\n\n", [1, 2]), (b"\n\na", [1, 2, 3])],
)
@pytest.mark.parametrize("pattern", ["", "x*", "^", "$", "\\z", "()", "(?:)|q"])
def test_a_pattern_that_matches_nothing_at_all_finds_every_line(pattern: str, data: bytes, lines: list[int]) -> None:
    assert numbers(pattern, data) == lines


@pytest.mark.parametrize("pattern", ["(?s)a.b", "a\\sb", "a[^x]b", "a\\Wb", "(?s)a.*b", "a[\\n ]b", "a[^\\n]?b"])
def test_nothing_matches_across_lines(pattern: str) -> None:
    assert search(pattern, b"a\nb\n") == []


@pytest.mark.parametrize("pattern", ["^b$", "\\Ab\\z", "(?-m)^b$", "(?m)^b$", "(?-m:\\A)b(?-m:$)", "(^|x)b($|x)"])
def test_anchors_match_at_line_boundaries_whatever_the_flags(pattern: str) -> None:
    assert numbers(pattern, b"ab\nb\nbc\nb") == [2, 4]


def test_a_carriage_return_is_part_of_its_line() -> None:
    assert search("b$", b"ab\r\nab\n") == [Hit(2, "ab", 1, 2)]
    assert search("b\\r?$", b"ab\r\n") == [Hit(1, "ab\r", 1, 3)]


def test_only_a_line_feed_ends_a_line() -> None:
    assert search("c", "a\u2028b\x0b\x0c\x85c".encode()) == [Hit(1, "a\u2028b\x0b\x0c\x85c", 6, 7)]


@pytest.mark.parametrize("pattern", [".", "[^a]", "\ufffd", "\\x{fffd}", "\\W", "\\S"])
def test_bytes_that_are_not_utf8_are_matched_and_shown_as_the_replacement_character(pattern: str) -> None:
    assert search(pattern, b"\xff\n") == [Hit(1, "\ufffd", 0, 1)]


def test_offsets_are_right_after_bytes_that_are_not_utf8() -> None:
    assert search("b", b"x\n\xc3\xa9\xe6\xbcab") == [Hit(2, "é\ufffdab", 3, 4)]


def test_a_truncated_character_far_into_a_file_is_detected() -> None:
    data = "é".encode() * 600_000 + b"\n\xc3"

    assert search("^.$", data) == [Hit(2, "\ufffd", 0, 1)]
    assert search("^.$", data[:-1] + "é".encode()) == [Hit(2, "é", 0, 1)]


@pytest.mark.parametrize("pattern", ["^\\w$", "^\\d$", "\\bé", "(?i)^\\w$"])
def test_classes_and_word_boundaries_are_ascii(pattern: str) -> None:
    assert search(pattern, "é\n٣\n".encode()) == []


def test_a_non_word_boundary_is_between_characters() -> None:
    assert search("\\B", "aéb".encode()) == []
    assert search("\\B", "aéé".encode()) == [Hit(1, "aéé", 2, 2)]


@pytest.mark.parametrize(("pattern", "text"), [("straße", "STRAßE"), ("é", "É"), ("k", "\u212a"), ("\u03c3", "\u03c2")])
def test_ignoring_case_works_for_unicode(pattern: str, text: str) -> None:
    assert search(pattern, text.encode()) == []
    assert search(pattern, text.encode(), case_insensitive=True) == [Hit(1, text, 0, len(text))]


@pytest.mark.parametrize(
    "pattern", ["a\\.b\\*", "\\Qa.b*\\E", "a[.]b[*]", "\\x61\\.b\\*", "(?P<name>a)\\.b\\*", "(?<n>a)\\.b\\*"]
)
def test_required_text_is_found_in_any_form_of_pattern(pattern: str) -> None:
    assert search(pattern, b"xa.b*") == [Hit(1, "xa.b*", 1, 5)]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("def \\w+_handler", "_handler"),
        ("ab*cd", "cd"),
        ("ab\\.cd", "ab.cd"),
        ("a(bc)?de", "de"),
        ("ab+", "ab"),
        ("foo|bar", ""),
        ("(?i)foo", ""),
        ("(?i:foo)ba", "ba"),
        ("\\Qa.b\\E*c", "a."),
        ("ab{0}", "a"),
        ("[abc]", ""),
        ("a\\Q\\E*", ""),
    ],
)
def test_the_text_that_every_match_contains_is_extracted(pattern: str, text: str) -> None:
    assert required_text(pattern) == text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("needle_", "dle_"),
        ("def needle", "def needle"),
        ("to do", "o do"),
        ("xen", "xen"),
        ("note_q", "ote_q"),
        ("a漢ab", "漢ab"),
        ("ab", ""),
        ("", ""),
    ],
)
def test_a_text_is_searched_for_by_its_rarest_character(text: str, part: str) -> None:
    assert rarest_part(text) == part


@given(st.text(min_size=1, max_size=20).filter(lambda text: (text.isprintable() or "\0" in text) and "\n" not in text))
def test_a_quoted_text_finds_that_text_alone(text: str) -> None:
    pattern = compile_pattern(f"^{quoted(text)}$")

    assert [hit.line for hit in pattern.search(f"x{text}\n{text}\n{text}x\n".encode())] == [text]


@pytest.mark.parametrize("rest", [b"", "é".encode(), b"\xff"])
@pytest.mark.parametrize("pattern", ["brown \\d+", "brown \\d+$|x"])
def test_a_match_far_behind_many_partial_matches_is_found(pattern: str, rest: bytes) -> None:
    texts = [rest + b"\nbrown bear"] * 40
    texts[20] = rest + b"\nbrown 1234\nbrown 5\n"

    hits = list(compile_pattern(pattern).search_together(texts, b"\n".join(texts)))

    assert hits == [(20, Hit(2, "brown 1234", 0, 10)), (20, Hit(3, "brown 5", 0, 7))]


def test_a_search_of_no_texts_finds_nothing() -> None:
    assert list(compile_pattern("").search_together([], b"")) == []


@given(st.text("ab\\Q\\E[]^:(?P<>)|*+?{1,}$.xn-é\n", max_size=20))
def test_the_tokens_of_a_pattern_add_up_to_it(pattern: str) -> None:
    assert "".join(token.text for token in tokens(pattern)) == pattern


def test_a_limit_of_none_means_no_limit_and_zero_finds_nothing() -> None:
    pattern = compile_pattern("a")

    assert len(pattern.search(b"a\n" * 5_000)) == 5_000
    assert pattern.search(b"a\n", limit=0) == []


def test_a_nul_in_the_first_8_kib_makes_a_file_binary() -> None:
    assert is_binary(b"a\0")
    assert is_binary(b"a" * 8_191 + b"\0")
    assert not is_binary(b"a" * 8_192 + b"\0")
    assert not is_binary(b"\xff\xfe")


def test_the_same_pattern_is_compiled_once() -> None:
    assert compile_pattern("a+") is compile_pattern("a+")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a(?=b)", r"lookahead, '\(\?=' at position 1, is not supported by the linear-time engine.*as in"),
        ("a(?!b)", r"negative lookahead.*linear-time.*leave out the lines"),
        ("(?<=a)b", r"lookbehind.*linear-time.*into the pattern"),
        ("(?<!a)b", r"negative lookbehind.*linear-time"),
        ("(a|b)\\1", r"a backreference.*at position 5.*linear-time.*repeated text out"),
        ("(?P<n>a)(?P=n)", r"a backreference.*linear-time"),
        ("(?<n>a)\\k<n>", r"a backreference.*linear-time"),
        ("a++b", r"a possessive quantifier.*linear-time.*write '\+'"),
        ("a{2}+", r"a possessive quantifier.*write '\{2\}'"),
        ("(?>a)b", r"an atomic group.*linear-time.*\(\?:a\)"),
        ("(?(1)a|b)", "a conditional"),
        ("(?R)", "recursion"),
        ("(?1)", "recursion"),
        ("(?x)a b", "flags are i, m, s and U"),
        ("(?#note)a", "a comment.*leave it out"),
        ("a\\Z", r"write '\$'"),
        ("\\h", r"write '\[ \\t\]'"),
        ("\\u2014", r"write '\\x\{2014\}'"),
        ("\\C", "a single byte.*write '.'"),
        ("a\nb", "can never match: the search goes line by line; leave it out"),
        ("a\\nb", "can never match"),
        ("a\\x0Ab", "can never match"),
        ("a\\x{a}b", "can never match"),
        ("a\\Q\n\\E", "can never match"),
        ("[\\n]", "can never match"),
        ("(a", r"cannot search for '\(a': missing \).*backslash"),
        ("[a", r"missing \]"),
        ("*.py", "no argument for repetition operator"),
        ("a**", "bad repetition operator"),
        ("[b-a]", "invalid character class range"),
        ("a{1001}", "repeat less"),
        ("(a{1000}){1000}", "repeat less"),
        ("\\pL{1000}", "too large.*repeat less"),
        ("\\pL{100}", "too large; repeat less"),
        ("\ud800", "lone surrogate at position 0"),
        ("a" * 16_385, "16,385 bytes, but at most 16,384 are allowed"),
        ("[" * 16_000, r"missing \]"),
        ("(?P<" * 4_000, "invalid named capture group"),
    ],
)
def test_a_pattern_that_cannot_be_searched_for_is_refused_with_the_remedy(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["[(?=]", "\\(?=", "\\\\1", "a{,3}", "{", "a{b}", "]", "\\Q(?=\\1\\E", "[a++]"])
def test_patterns_that_only_look_unsupported_are_accepted(pattern: str) -> None:
    compile_pattern(pattern)


LONG = 1_000_000


@pytest.mark.parametrize(
    ("pattern", "data"),
    [
        ("(a+)+$", b"a" * LONG + b"!"),
        ("(a|aa)+$", b"a" * LONG + b"!"),
        ("(a|a?)+$", b"a" * LONG + b"!"),
        ("(.*a){20}$", b"a" * LONG + b"!"),
        ("([a-zA-Z]+)*$", b"a" * LONG + b"!"),
        ("(x+x+)+[yz]", b"x" * LONG),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", b"a" * LONG),
        ("(a?){30}a{30}[bc]", b"a" * LONG),
        ("(a?){1000}a{1000}[bc]", b"a" * LONG),
        ("(.*)(.*)(.*)(.*)(.*)[xy]", b"a" * LONG),
        ("(\\w+\\s?)*$", b"word " * (LONG // 5) + b"!"),
        (".*.*=.*;", b"x=" * (LONG // 2)),
        ("(?i)(\u017f|k|\u212a)+$", b"k" * LONG + b"!"),
        ("a.{1000}[bc]", b"a" * LONG),
        ("^(a+)+$", (b"a" * 99 + b"!\n") * (LONG // 100)),
        ("\\B", "aé".encode() * 100_000),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_pattern_hangs_on_a_megabyte(pattern: str, data: bytes) -> None:
    assert len(compile_pattern(pattern).search(data, limit=10)) <= 1


def test_a_thousand_hits_are_found_in_one_pass() -> None:
    data = (b"x" * 1_090 + b"needle\n") * 1_000

    for pattern in ("needle", "need.e", ".*needle", "needle$"):
        assert [hit.line_number for hit in search(pattern, data)] == list(range(1, 1_001))
