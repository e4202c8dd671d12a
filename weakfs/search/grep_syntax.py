"""Regular expression syntax of RE2: tokens, the text that every match contains, and unsupported features.

RE2 itself decides what is valid. This module finds the tokens of a valid expression, so that anchors can be
tied to lines and fixed text can be searched for first, and explains why RE2 refuses an expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Token", "explain", "for_lines", "quoted", "rarest_part", "required_text", "tokens"]

# Every quantifier is possessive, and an unclosed construct runs to the end: tokenizing takes linear time.
_TOKEN = re.compile(
    r"""
      (?P<quoted>     \\Q (?: (?!\\E) . )*+ (?: \\E )? )
    | (?P<escape>     \\ (?: [xpP] \{[^}]*+\}? | x[0-9A-Fa-f]{0,2} | 0[0-7]{0,2} | [pP].? | . )? )
    | (?P<set>        \[ \^?+ \]?+ (?: \[:\^?\w++:\] | \\. | [^]\\] )*+ \]? )
    | (?P<named>      \(\?P?<(?![=!])[^>]*+>? )
    | (?P<flags>      \(\?[imsU-]*+\) )
    | (?P<open>       \( (?: \?[imsU-]*+: | (?!\?) ) )
    | (?P<unknown>    \(\? (?: <[=!] | P. | [a-zA-Z-]++ | . )? )
    | (?P<close>      \) )
    | (?P<bar>        \| )
    | (?P<possessive> (?: [*+?] | \{(?:0|[1-9][0-9]*+)(?:,(?:0|[1-9][0-9]*+)?+)?+\} ) \+ )
    | (?P<repeat>     (?: [*+?] | \{(?:0|[1-9][0-9]*+)(?:,(?:0|[1-9][0-9]*+)?+)?+\} ) \?? )
    | (?P<anchor>     [$^] )
    | (?P<dot>        \. )
    | (?P<text>       . )
    """,
    re.VERBOSE | re.DOTALL,
)

_LINE_BREAK = re.compile(r"\\(?:n|x0[aA]|x\{0*[aA]\}|012)")
_ONLY_LINE_BREAKS = re.compile(rf"\[(?:\n|{_LINE_BREAK.pattern})++\]")
# The characters of source code, most common first, as counted in 270 MB of Python and C.
COMMON: Final = " etsnriao_lcdpf,u)(mhS.Eg*yT\":b0NIA-=CRkxOL1P'v/2#wDMF53G;[]U\tBX94>68VKq\\`7Hz{}+WYj<@|&QZJ%!?~^$"
# A shorter text is too common to be worth a separate search.
LEAST_PART: Final = 3

_CONTROL: Final = {"a": "\a", "f": "\f", "t": "\t", "r": "\r", "v": "\v"}

_LOOKAHEAD: Final = "search for the whole text, as in 'foo.*bar' for 'foo(?=.*bar)'"
_LOOKBEHIND: Final = "put the text before it into the pattern, as in 'foo:bar' for '(?<=foo:)bar'"
_WITHOUT: Final = "search for the text alone and leave out the lines that you do not want"
_REPEATED: Final = "write the repeated text out, as in '(aa|bb)' for '(a|b)\\1'"
_GREEDY: Final = "write '(?:a)' and 'a+': the engine never backtracks, so nothing else is needed"
_SPELL_OUT: Final = "write each case out, joined by '|'"

_GROUPS: Final = {
    "(?=": ("lookahead", _LOOKAHEAD),
    "(?!": ("negative lookahead", _WITHOUT),
    "(?<=": ("lookbehind", _LOOKBEHIND),
    "(?<!": ("negative lookbehind", _WITHOUT),
    "(?>": ("an atomic group", _GREEDY),
    "(?P=": ("a backreference", _REPEATED),
    "(?P>": ("recursion", _SPELL_OUT),
    "(?R": ("recursion", _SPELL_OUT),
    "(?&": ("recursion", _SPELL_OUT),
    "(?+": ("recursion", _SPELL_OUT),
    "(?(": ("a conditional", _SPELL_OUT),
    "(?|": ("a branch reset", "use '(?:...|...)'"),
    "(?#": ("a comment", "leave it out"),
}
_ESCAPES: Final = {
    "k": ("a backreference", _REPEATED),
    "g": ("a backreference", _REPEATED),
    "Z": ("an anchor of other engines", "write '$' for the end of the line"),
    "G": ("an anchor of other engines", "write '^' for the start of the line"),
    "K": ("a lookbehind", _LOOKBEHIND),
    "R": ("a line break", "search for the text of one line at a time"),
    "X": ("a grapheme cluster", "write '.' for a character"),
    "C": ("a single byte", "write '.' for a character"),
    "N": ("a character by its name", "write '\\x{2014}' with its code point, or '[^\\n]' for any character"),
    "h": ("a blank", "write '[ \\t]'"),
    "H": ("anything but a blank", "write '[^ \\t]'"),
    "u": ("a code point in the notation of other engines", "write '\\x{2014}'"),
    "U": ("a code point in the notation of other engines", "write '\\x{2014}'"),
    "c": ("a control character in the notation of other engines", "write '\\x1b'"),
    "e": ("a control character in the notation of other engines", "write '\\x1b'"),
}


class Token(NamedTuple):
    kind: str
    text: str
    position: int


def tokens(pattern: str) -> Iterator[Token]:
    """Yield the tokens of `pattern`; their texts, joined, are the pattern."""
    for match in _TOKEN.finditer(pattern):
        yield Token(match.lastgroup or "text", match.group(), match.start())


def explain(pattern: str, *, multiline: bool = False) -> str | None:
    """Return which part of `pattern` a linear-time search by lines does not support, and what to write instead.

    Return `None` if all of it is supported. With `multiline`, line breaks are supported.
    """
    for token in tokens(pattern):
        trouble = _unsupported(token)
        if trouble is not None:
            what, remedy = trouble
            return (
                f"{what}, {token.text!r} at position {token.position}, is not supported by the "
                f"linear-time engine (RE2); {remedy}"
            )
        if not multiline and _is_line_break(token):
            return (
                f"the line break, {token.text!r} at position {token.position}, can never match: the search "
                "goes line by line; leave it out and search for one of the lines ('$' is the end of a line)"
            )
    return None


def for_lines(pattern: str) -> str:
    """Return a valid `pattern` changed so that in a whole text it finds the same matches as in each line.

    `^`, `$`, `\\A` and `\\z` become the edges of a line whatever the flags; groups no longer capture, because captures
    cost RE2 another pass.
    """
    return "".join(_for_lines(token) for token in tokens(pattern))


def required_text(pattern: str) -> str:
    """Return the longest text known to be in every match of `pattern`; "" if there is none."""
    runs = [""]
    depth = 0
    for token in tokens(pattern):
        if token.kind == "flags" or (token.kind == "bar" and depth == 0):
            return ""
        depth += (token.kind in ("open", "named")) - (token.kind == "close")
        literal = _literal(token) if depth == 0 else None
        if literal is not None:
            runs[-1] += literal
            continue
        if token.kind == "repeat" and depth == 0 and token.text[0] != "+":
            runs[-1] = runs[-1][:-1]
        runs.append("")
    return max(runs, key=len)


def rarest_part(text: str) -> str:
    """Return the end of `text` from its rarest character on; "" if that is not worth a search.

    The engine searches for the first byte of a text with the processor's widest instructions and compares the
    rest where it is found: over 21 MB, `needle_` takes 5 ms and `dle_` takes 1 ms.
    """
    if len(text) < LEAST_PART:
        return ""
    start = min(range(len(text) - LEAST_PART + 1), key=lambda index: _commonness(text[index]))
    return text[start:]


def _commonness(character: str) -> int:
    """Return how common a character is, in steps of eight ranks, so that the first of similarly rare ones is chosen."""
    return -(COMMON.find(character) // 8) if character in COMMON else -len(COMMON)


def quoted(text: str) -> str:
    """Return the expression that matches exactly `text`."""
    return "".join(character if character.isalnum() else f"\\x{{{ord(character):x}}}" for character in text)


def _unsupported(token: Token) -> tuple[str, str] | None:
    if token.kind == "possessive":
        return "a possessive quantifier", f"write {token.text[:-1]!r}: the engine never backtracks"
    if token.kind == "unknown":
        for start, trouble in _GROUPS.items():
            if token.text.startswith(start):
                return trouble
        if token.text[2:3].isdigit():
            return "recursion", _SPELL_OUT
        return "this group", "the flags are i, m, s and U ('(?i)'), the groups '(?:...)' and '(?P<name>...)'"
    if token.kind == "escape":
        letter = token.text[1:2]
        return ("a backreference", _REPEATED) if letter in set("123456789") else _ESCAPES.get(letter)
    return None


def _is_line_break(token: Token) -> bool:
    if token.kind in ("text", "quoted"):
        return "\n" in token.text
    if token.kind == "set":
        return _ONLY_LINE_BREAKS.fullmatch(token.text) is not None
    return token.kind == "escape" and (token.text == "\\\n" or _LINE_BREAK.fullmatch(token.text) is not None)


def _for_lines(token: Token) -> str:
    if token.text in ("^", "\\A"):
        return "(?m:^)"
    if token.text in ("$", "\\z"):
        return "(?m:$)"
    return "(?:" if token.kind == "named" or token.text == "(" else token.text


def _literal(token: Token) -> str | None:
    """Return the literal text that a token matches, `None` if it is not literal."""
    if token.kind == "text":
        return token.text
    if token.kind == "quoted":
        return token.text[2:].removesuffix("\\E")
    if token.kind == "escape" and len(token.text) == 2:
        character = token.text[1]
        is_punctuation = character.isascii() and not character.isalnum()
        return character if is_punctuation else _CONTROL.get(character)
    return None
