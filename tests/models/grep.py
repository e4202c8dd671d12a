"""The results of a search, computed line by line, and patterns and texts to test it with."""

from __future__ import annotations

import importlib
from typing import Any

from hypothesis import strategies as st

from weakfs.search import Hit

re2: Any = importlib.import_module("re2")


def line_by_line(pattern: str, data: bytes, *, case_insensitive: bool) -> list[Hit]:
    """Search each line as bytes; RE2 also finds `\\B` inside a character, which does not count as a match."""
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
# Long enough that a search looks for them before it tries the pattern that contains them.
WORDS = ["axb_", "\\Qa.b\\E\\.", "éa\\tb", "a{b}", "xa\ufffd", "a+axb", "xxb?", "\\(b\\]"]


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


PATTERNS = st.recursive(ATOMS | st.sampled_from(WORDS), combine, max_leaves=8) | st.just("")
TEXTS = st.lists(
    st.sampled_from([b"a", b"b", b"ab", b"\n", b"\n", b" ", b"_", b"\r", b"\r\n", b".", b"x{", b"]", b"\t"])
    | st.sampled_from(["é".encode(), "\u017f".encode(), "\u212a".encode(), "漢".encode(), "\ufffd".encode()])
    | st.sampled_from([b"\xff", b"\xc3", b"\xe6\xbc", b"\xa9", b"\0", b"\xed\xa0\x80", b"\x0b", b"\x85"])
    | st.sampled_from([b"axb_", b"a.b.", "éa\tb".encode(), b"xa\xff", b"aaxb", b"xxb", b"xx", b"(b]"]),
    max_size=14,
).map(b"".join)
