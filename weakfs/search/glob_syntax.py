"""Glob syntax: braces expanded into alternatives, alternatives split into segments, segments compiled to tests.

Every rule about the meaning of a pattern's characters is here; `glob` knows only segments and their order. A
backslash in a pattern is a slash, as in paths, so it cannot also be an escape. In a class, a character that would
otherwise be special is literal: `[*]`, `[[]`, `[{]`.
"""

from __future__ import annotations

import re
from errno import EACCES
from functools import lru_cache
from typing import Final, NoReturn

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.errors import fault

__all__ = ["Alternative", "Segment", "parse"]

MAX_ALTERNATIVES: Final = 1_000
# Limits the work for one pattern. A thousand alternatives of 262 characters still fit.
MAX_PATTERN_LENGTH: Final = 65_536
MAX_EXPANDED_LENGTH: Final = 262_144

# Possessive, so that `[]` stays open: a `]` right after the start is a member.
_CLASS = re.compile(r"\[[!^]?+\]?+[^]/]*+\]")
_POSIX_NAME = re.compile(r"\[:\w+:$")
_TOKEN = re.compile(rf"(?P<stars>\*+)|(?P<any>\?)|(?P<set>{_CLASS.pattern})|(?P<text>[^*?[]+)", re.DOTALL)


@frozen
class Segment:
    """A test of one name. `literal` is set if only that name matches, `suffix` if the segment is `*suffix`.

    Segments that match the same single name are equal. `regex` is the source of an expression for `re.match`,
    linear in the name: each `*` but the last is an atomic group, so that nothing is ever tried twice.
    """

    text: str
    literal: str | None
    suffix: str | None
    regex: str = field(repr=False)


@frozen
class Alternative:
    """The segments of one brace alternative. A segment of `None` stands for `**`, and is never last."""

    segments: tuple[Segment | None, ...]
    is_absolute: bool
    directories_only: bool


def parse(pattern: str, *, hidden: bool) -> tuple[Alternative, ...]:
    """Return the alternatives of `pattern`.

    Raises `ValueError` for an invalid pattern, and `PermissionError` for one that climbs above the directory where it
    starts, as for a path that does so.
    """
    if not pattern:
        raise ValueError("cannot use an empty glob pattern: it matches nothing; write '**' for every file")
    if len(pattern) > MAX_PATTERN_LENGTH:
        _refuse(pattern, f"it is longer than {MAX_PATTERN_LENGTH:,} characters", "use several patterns")
    if "\0" in pattern:
        _refuse(pattern, f"it has a NUL at position {pattern.index(chr(0))}", "remove it")
    try:
        pattern.encode()
    except UnicodeEncodeError as problem:
        _refuse(pattern, f"it has a lone surrogate at position {problem.start}", "remove it")
    found: dict[Alternative, None] = {}
    texts = expand(pattern)
    if not any(texts):
        _refuse(pattern, "its braces are empty", "write '[{][}]' for literal braces")
    for text in texts:
        found.update(dict.fromkeys(_alternatives(text, pattern, hidden=hidden)))
    return tuple(found)


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 100 else pattern[:100] + "...")


def _refuse(pattern: str, cause: str, remedy: str) -> NoReturn:
    raise ValueError(f"cannot use the glob pattern {_shown(pattern)}: {cause}; {remedy}")


def _class_end(pattern: str, start: int, source: str) -> int:
    """Return the end of the class that opens at `start`; a class contains no slash, because no name does."""
    match = _CLASS.match(pattern, start)
    if match is None:
        _refuse(
            source,
            f"unclosed '[' at position {start}",
            "add its ']' before the next slash, or write '[[]' for a literal '['",
        )
    if _POSIX_NAME.search(match.group()[1:-1]):
        _refuse(source, f"the class at position {start} uses a POSIX name", "write its ranges: [a-zA-Z0-9]")
    for low, high in _class_ranges(match.group()):
        if low > high:
            _refuse(
                source,
                f"the range {low}-{high} in the class at position {start} runs backwards",
                f"write {high}-{low}, or put the '-' last if it is meant literally",
            )
    return match.end()


def expand(pattern: str) -> list[str]:
    """Return the texts that the braces expand to, in order. Raises `ValueError` if they are too many or too long.

    A group only increases the count of the enclosing group, so the first group beyond the limit is enough to refuse the
    pattern, and nothing larger is built.
    """
    text = pattern.replace("\\", "/")
    # One frame for each open brace: its position, the finished alternatives, and the current one.
    frames: list[tuple[int, list[str], list[str]]] = []
    done: list[str] = []
    current = [""]
    opened, at, plain = -1, 0, 0

    def checked(texts: int, length: int) -> None:
        if texts > MAX_ALTERNATIVES:
            limit = f"{MAX_ALTERNATIVES:,} alternatives"
            _refuse(pattern, f"its braces expand to more than {limit}", "use several patterns")
        if length > MAX_EXPANDED_LENGTH:
            limit = f"{MAX_EXPANDED_LENGTH:,} characters"
            _refuse(pattern, f"its alternatives exceed {limit} in total", "use several patterns")

    def append(heads: list[str], tails: list[str]) -> list[str]:
        if tails == [""]:
            return heads
        length = len(tails) * sum(map(len, heads)) + len(heads) * sum(map(len, tails))
        checked(len(heads) * len(tails), length)
        return [head + tail for head in heads for tail in tails]

    while at < len(text):
        character = text[at]
        if character == "[":
            at = _class_end(text, at, pattern)
            continue
        if character == "{" or (frames and character in ",}"):
            current = append(current, [text[plain:at]])
            plain = at + 1
            if character == "{":
                frames.append((opened, done, current))
                opened, done, current = at, [], [""]
            else:
                checked(len(done) + len(current), 0)
                done.extend(current)
                current = [""]
                if character == "}":
                    inner = done
                    opened, done, current = frames.pop()
                    current = append(current, inner)
        at += 1
    if frames:
        _refuse(
            pattern,
            f"unclosed '{{' at position {opened}",
            "add its '}', or write '[{]' for a literal '{'",
        )
    return append(current, [text[plain:]])


def _alternatives(text: str, pattern: str, *, hidden: bool) -> list[Alternative]:
    """Parse one text without braces. `x/**/` gives two alternatives: `x` itself, and every directory below it."""
    names: list[str] = []
    for name in text.split("/"):
        if name in ("", "."):
            continue
        if name != "..":
            if name != "**" or names[-1:] != ["**"]:
                names.append(name)
            continue
        if not names:
            raise fault(
                PermissionError,
                EACCES,
                f"cannot use the glob pattern {_shown(pattern)}: '..' climbs above where it starts; "
                "pass the directory to start from as the path",
            )
        if names.pop() == "**":
            _refuse(pattern, "'..' after '**' does not name a single directory", "remove both")
    if "/" not in text and names and names != ["**"]:
        names.insert(0, "**")
    is_absolute = text.startswith("/")
    directories_only = text.endswith("/") or not names

    def alternative(names: list[str]) -> Alternative:
        segments = tuple(None if name == "**" else _segment(name, hidden) for name in names)
        return Alternative(segments, is_absolute, directories_only)

    if names[-1:] != ["**"]:
        return [alternative(names)]
    below = alternative([*names, "*"])
    return [alternative(names[:-1]), below] if directories_only else [below]


@lru_cache(maxsize=2_048)
def _segment(text: str, hidden: bool) -> Segment:
    # Pieces of an expression, None for a star. `literal` is the text so far as long as it has no special characters.
    pieces: list[str | None] = []
    literal: str | None = ""
    for token in _TOKEN.finditer(text):
        value = token.group()
        if token["stars"]:
            pieces.append(None)
            literal = None
        elif token["any"]:
            pieces.append(".")
            literal = None
        elif token["text"]:
            pieces.append(re.escape(value))
            literal = None if literal is None else literal + value
        else:
            pieces.append(_class_regex(value))
            # `[[]` is one literal character; but `[.]` is not the literal dot that lets a segment match dotfiles.
            single = len(value) == 3 and value[1] != "."
            literal = literal + value[1] if single and literal is not None else None
    if literal is not None:
        return Segment(literal, literal, None, re.escape(literal) + r"\Z")
    ending = text.lstrip("*")
    suffix = ending if ending != text and not re.search(r"[*?[]", ending) else None
    guard = "" if hidden or text.startswith(".") else r"(?!\.)"
    return Segment(text, literal, suffix, guard + _join(pieces))


def _join(pieces: list[str | None]) -> str:
    runs: list[str] = [""]
    for piece in pieces:
        if piece is None:
            runs.append("")
        else:
            runs[-1] += piece
    first, *rest = runs
    if not rest:
        return first + r"\Z"
    *middle, last = rest
    # `(?>.*?run)` finds the next run and never backtracks: taking the earliest position is always enough.
    found = "".join(f"(?>.*?{run})" for run in middle if run)
    return first + found + (f".*{last}\\Z" if last else "")


def _class_ranges(text: str) -> list[tuple[str, str]]:
    """Return the first and last character of each member; a `-` at either end is itself a member."""
    body = text[2:-1] if text[1] in "!^" else text[1:-1]
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(body):
        width = 3 if body[at + 1 : at + 2] == "-" and at + 2 < len(body) else 1
        ranges.append((body[at], body[at + width - 1]))
        at += width
    return ranges


def _class_regex(text: str) -> str:
    members = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in _class_ranges(text))
    return f"[{'^' if text[1] in '!^' else ''}{members}]"
