"""Text for messages: on one line, shortened, with control characters escaped."""

from __future__ import annotations

import re

# Characters that control a terminal or change the order in which text is displayed: C0 except for tabs and line breaks,
# DEL, C1, bidirectional embeddings, overrides and isolates.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
# Compiled by `re` on first use, because most processes never use it and compiling takes 1 % of a first write.
_UNSAFE = f"[{_CONTROLS}]"
_UNSAFE_IN_LINE = f"[{_CONTROLS}\n\u2028\u2029]"


def one_line(text: str) -> str:
    """Return `text` on one line, with line breaks and other non-printing characters as escapes.

    Use this for names and summaries. Tabs, and spaces other than U+0020, are escaped too.
    """
    return text if text.isprintable() else "".join(map(_escaped_unless_printable, text))


def printable(text: str, *, is_line: bool = False) -> str:
    """Return `text` with control characters as escapes such as `\\x1b` and `\\u202e`. Tabs and line breaks are kept.

    With `is_line`, line breaks are escaped too, including U+2028 and U+2029. Use this for text of any length and
    language, which `one_line` would change in more places.
    """
    kept = text.replace("\t", "") if is_line else text.replace("\t", "").replace("\n", "")
    # Much faster than the expression, which most texts do not need.
    return text if kept.isprintable() else re.sub(_UNSAFE_IN_LINE if is_line else _UNSAFE, _escaped_match, text)


def _escaped_match(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped_unless_printable(character: str) -> str:
    return character if character.isprintable() else _escaped(character)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def clip(text: str, most: int) -> str:
    """Return `text`, with its middle left out if it is longer than `most` characters."""
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def named_type(cls: type) -> str:
    """Return a class as it is named in a sentence: `a str`, `an InMemoryFilesystem`, `bytes`, `None`."""
    name = cls.__name__
    if name in ("NoneType", "bytes"):
        return name.removesuffix("Type")
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def a_type(value: object) -> str:
    """Return the type of a value as it is named in a sentence."""
    return named_type(type(value))


def plural(count: int, noun: str) -> str:
    """Return a number with its noun, `1 line` or `3 lines`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") else f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"
