"""Compare the scan of a whole text with what RE2 answers for each line alone, decoded."""

from __future__ import annotations

import importlib
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from weakfs.search import Hit, compile_pattern

re2: Any = importlib.import_module("re2")


def line_by_line(pattern: str, data: bytes, *, case_insensitive: bool) -> list[Hit]:
    """Search each line as bytes; RE2 sees `\\B` inside a character too, and such a match is none."""
    options = re2.Options()
    options.case_sensitive = not case_insensitive
    options.log_errors = False
    regex = re2.compile(pattern, options)
    lines = data.decode(errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    hits: list[Hit] = []
    for number, line in enumerate(lines, 1):
        raw = line.encode()
        for match in regex.finditer(raw):
            start, end = match.span()
            if start == len(raw) or raw[start] & 0xC0 != 0x80:
                hits.append(Hit(number, line, len(raw[:start].decode()), len(raw[:end].decode())))
                break
    return hits


CHARACTERS = ["a", "b", "ab", "aab", "k", "_", " ", "x{", "]", "é", "\u017f", "\u212a", "\ufffd"]
ESCAPED = ["\\.", "\\Qa.\\E", "\\x61", "\\t", "\\w", "\\W", "\\s", "\\S", "\\d", "\\D", "\\pL"]
CLASSES = [".", "[ab]", "[^a]", "[^\\n]", "[\\s_]", "[]a]", "[[:^alpha:]]", "(?-s:.)"]
EDGES = ["^", "$", "\\A", "\\z", "\\b", "\\B", "(?m:^)", "(?-m:$)"]
FLAGS = ["(?m)", "(?s)", "(?i)", "(?U)"]
ATOMS = st.sampled_from([*CHARACTERS, *ESCAPED, *CLASSES, *EDGES, *FLAGS])


def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = inner.map(lambda text: f"({text})") | inner.map(lambda text: f"(?:{text})")
    other = inner.map(lambda text: f"(?i:{text})") | inner.map(lambda text: f"(?s:{text})")
    repeat = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}"])
    return (
        st.lists(inner, min_size=2, max_size=4).map("".join)
        | st.lists(inner | st.just(""), min_size=2, max_size=3).map("|".join)
        | st.tuples(group | other, repeat).map("".join)
        | group
        | st.tuples(st.sampled_from(["a", "é", "[ab]", ".", "\\w", "\\Qba\\E"]), repeat).map("".join)
    )


PATTERNS = st.recursive(ATOMS, combine, max_leaves=8) | st.just("")
TEXTS = st.lists(
    st.sampled_from([b"a", b"b", b"ab", b"\n", b"\n", b" ", b"_", b"\r", b"\r\n", b".", b"x{", b"]", b"\t"])
    | st.sampled_from(["é".encode(), "\u017f".encode(), "\u212a".encode(), "漢".encode(), "\ufffd".encode()])
    | st.sampled_from([b"\xff", b"\xc3", b"\xe6\xbc", b"\xa9", b"\0", b"\xed\xa0\x80", b"\x0b", b"\x85"]),
    max_size=14,
).map(b"".join)


@settings(max_examples=1_000)
@given(PATTERNS, TEXTS, st.booleans())
@example("", b"a\n\n", False)
@example("a|b$", b"b\na\n", False)
@example("\\s*", b"\n\n a", False)
@example("\ufffd", b"a\xff", False)
@example("a\ufffd+b?", b"a\xff\xff", False)
@example("(?i)k", "\u212a".encode(), False)
@example("^*a", b"b\na", False)
@example("(a|\\z)+", b"b\n\n", False)
@example("\\B", "a\u00e9b\na\u00e9".encode(), False)
def test_the_scan_equals_the_search_of_each_line(pattern: str, data: bytes, case_insensitive: bool) -> None:
    hits = compile_pattern(pattern, case_insensitive=case_insensitive).search(data)

    assert hits == line_by_line(pattern, data, case_insensitive=case_insensitive)


@given(PATTERNS, TEXTS, st.integers(0, 4))
def test_a_limit_takes_the_first_hits(pattern: str, data: bytes, limit: int) -> None:
    compiled = compile_pattern(pattern)

    assert compiled.search(data, limit=limit) == compiled.search(data)[:limit]
