"""Misquotes: the known ways in which a quote of a file goes wrong, and the text that was meant.

Nothing here is ever applied: it tells a caller what to correct.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from attrs import evolve

from weakfs.class_decorators import frozen

# `     1\tx`, `1→x`, `12: x`, `12| x`, `L12: x`, `[12] x` and the like, and finally `12   x`.
NUMBERED = re.compile(r"[^\S\n]*(?:[L\[(]?\d{1,7}[^\S\n]?(?:\t|→|│|\||:|\])[ ]?|\d{1,7}[^\S\n]+)")
# These count as line numbers only if the text occurs without them: `1. x`, `1) x`, `Line 1: x`, `1> x`,
# `#1 x`, `1-x`, `a.py:1:x`.
PERHAPS_NUMBERED = re.compile(
    r"[^\S\n]*(?:(?:[Ll]ine[ ]|[L#\[(]|[\w./-]{1,200}:)?\d{1,7}[^\S\n]?(?:\t|→|│|\||:|\]|\.|\)|>|-)[ ]?"
    r"|#?\d{1,7}[^\S\n]+)"
)
ESCAPE = re.compile(r"((?:\\u[0-9a-fA-F]{4})+)|\\([nrt\"'`$\\/])")
ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
# A line that stands for others: `...`, `// ... existing code ...`, `# … rest`, `# rest of code`.
ELIDED = re.compile(
    r"\s*(?:(?://|#|--|;|%|/\*|<!--|\{/\*|\*)\s*(?:[\[(<]?(?:\.{3}|…)|(?:the )?(?:rest of|remaining|existing)\b).*"
    r"|[\[(<]?(?:\.{3,}|…)[\])>]?(?: .*)?)"
)
# White space around a marker is not matched here, because a run would be scanned again from each of its characters.
ELIDED_INSIDE = re.compile(r"(?<=[^\S\n])(?:\.{3,}|…)(?=[^\S\n])")
MARKER = re.compile(r"(?P<search><{5,9}[ \t]*(?:SEARCH|ORIGINAL))|(?P<divider>={5,9})|>{5,9}[ \t]*(?:REPLACE|UPDATED)")
DIFF_HEADER = re.compile(r"@@|--- [ab/]|\+\+\+ [ab/]|diff --git ")
FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")
# `html.unescape` raises an error for a number of more than 4,300 digits.
LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{16}")

SINGLE_TO_DOUBLE, DOUBLE_TO_SINGLE = str.maketrans("'", '"'), str.maketrans('"', "'")
TO_BACKTICKS = str.maketrans("'\"", "``")

MOST_PARTS = 8


@frozen
class Misquote:
    """A known mistake in a quote: why it is wrong, the remedy, and the intended text; `hint` is a keyword for it.

    `meant_text` is the name of that text in messages.

    If `is_sure` is true, this is wrong even if the intended text is not in the file either.
    """

    hint: str
    why: str
    remedy: str
    meant: str
    is_sure: bool = False
    meant_text: str = "the text without them"


def misquotes(old: str) -> Iterator[Misquote]:
    """Yield possible mistakes in a quote: single ones first, then pairs. O(old)."""
    pasted = [*_pasted(old)]
    yield from pasted
    yield from _escaped(old)
    yield from _unescaped(old)
    yield from _requoted(old)
    for first in pasted:
        for second in (*_pasted(first.meant), *_escaped(first.meant)):
            if second.hint != first.hint:
                yield evolve(first, why=f"{first.why}, and {second.why}", meant=second.meant, is_sure=False)


def _pasted(old: str) -> Iterator[Misquote]:
    """Yield decorations pasted along with the text: line numbers, diff marks, patch markers."""
    for pattern in (NUMBERED, PERHAPS_NUMBERED):
        bare = without_numbers(old, pattern)
        if bare:
            yield Misquote(
                "line_numbers",
                "its lines begin with line numbers, which are not part of the file",
                "give the text without the numbers",
                bare,
                is_sure=pattern is NUMBERED,
            )
    searched = _between_markers(old)
    if searched is not None:
        yield Misquote(
            "search_replace_markers",
            "it contains SEARCH/REPLACE markers, which are not part of the file",
            "give only the lines to find, without the markers",
            searched,
            is_sure=True,
        )
    fenced = _in_fence(old)
    if fenced is not None:
        yield Misquote(
            "markdown_fence",
            "it is in a Markdown fence, which is not part of the file",
            "give only the lines inside the fence",
            fenced,
            meant_text="the text inside the fence",
        )
    for bare in _without_marks(old):
        yield Misquote(
            "diff_marks",
            "its lines begin with '-' or '+', unlike the lines in the file: these are the marks of a diff",
            "give the text without the marks",
            bare,
        )


def _in_fence(old: str) -> str | None:
    lines = old.strip().split("\n")
    fence = FENCE.fullmatch(lines[0])
    return "\n".join(lines[1:-1]) if fence and len(lines) > 2 and lines[-1].strip() == fence[1] else None


def without_numbers(old: str, numbered: re.Pattern[str]) -> str:
    """Return a text without its line numbers, or "" if most of its lines have none."""
    lines = old.split("\n")
    without = [numbered.sub("", line, count=1) if numbered.match(line) else line for line in lines]
    given = sum(bool(line.strip()) for line in lines)
    changed = sum(one != other for one, other in zip(lines, without, strict=True))
    return "\n".join(without) if changed * 2 >= given else ""


def _between_markers(old: str) -> str | None:
    lines = old.split("\n")
    kinds = [MARKER.fullmatch(line.strip()) if line.strip()[:1] in ("<", "=", ">") else None for line in lines]
    # A lone row of equals signs may underline a heading.
    if not any(kind and not kind["divider"] for kind in kinds):
        return None
    searches = [at for at, kind in enumerate(kinds) if kind and kind["search"]]
    first = searches[0] + 1 if searches else 0
    last = next((at for at in range(first, len(lines)) if kinds[at] is not None), len(lines))
    return "\n".join(lines[first:last])


def _without_marks(old: str) -> Iterator[str]:
    lines = [line for line in old.split("\n") if not DIFF_HEADER.match(line)]
    if not any(line[:1] in ("-", "+") for line in lines):
        return
    # In a diff, the lines to find are those that it keeps or removes.
    to_find = [line for line in lines if line[:1] != "+"]
    if not any(map(str.strip, to_find)):
        yield "\n".join([line[1:] for line in lines])
        return
    if all(line[:1] in ("", " ", "-", "+") for line in lines):
        yield "\n".join([line[1:] for line in to_find])
    yield "\n".join([line.removeprefix("-") for line in to_find])


def _escaped(old: str) -> Iterator[Misquote]:
    """Yield readings in which escapes stand for characters."""
    if "\\" in old:
        why = 'it has escapes such as \\n, \\" or \\u00e9 where the file has the characters themselves'
        yield _escapes(why, ESCAPE.sub(_character, old))
    if "&" in old and not LONG_REFERENCE.search(old):
        why = "it has escapes such as &lt; where the file has the characters themselves"
        yield _escapes(why, html.unescape(old))


def _unescaped(old: str) -> Iterator[Misquote]:
    """Yield readings in which the file has escapes in place of some characters of the quote."""
    if '"' in old or "\\" in old or "\n" in old.strip():
        why = "it leaves out backslashes that the file has"
        doubled = old.replace("\\", "\\\\")
        for meant in (doubled, old.replace('"', '\\"'), doubled.replace('"', '\\"')):
            yield _escapes(why, meant)
        why = "the file has \\n written out where it has line breaks"
        yield _escapes(why, old.replace("\n", "\\n"))
    if "<" in old or ">" in old or "&" in old:
        why = "the file has escapes such as &lt; where it has the characters"
        yield _escapes(why, html.escape(old, quote=False))


def _requoted(old: str) -> Iterator[Misquote]:
    """Yield readings with single quotes in place of double ones, and the other way round; then with backticks."""
    if "'" in old or '"' in old:
        for table in (SINGLE_TO_DOUBLE, DOUBLE_TO_SINGLE, SINGLE_TO_DOUBLE | DOUBLE_TO_SINGLE):
            yield Misquote(
                "quotes",
                "its quotes are single where the file has double ones, or the other way round",
                "give the quotes as they are in the file",
                old.translate(table),
                meant_text="the text with the other quotes",
            )
    backticks = (TO_BACKTICKS,) if "`" not in old else (str.maketrans("`", "'"), str.maketrans("`", '"'))
    if any(quote in old for quote in "'\"`"):
        for table in backticks:
            yield Misquote(
                "quotes",
                "it has quotes where the file has backticks, or the other way round",
                "give the quotes as they are in the file",
                old.translate(table),
                meant_text="the text with the other quotes",
            )


def _escapes(why: str, meant: str) -> Misquote:
    return Misquote("escapes", why, "give the text as it is in the file", meant, meant_text="the intended text")


def _character(escape: re.Match[str]) -> str:
    if not escape[1]:
        return ESCAPED.get(escape[2], escape[2])
    # Characters above U+FFFF are escaped as two.
    return bytes.fromhex(escape[1].replace("\\u", "")).decode("utf-16-be", "replace")


def parts_around_elisions(old: str) -> list[str]:
    """Return the pieces of a text that omits lines between them; an empty list if it omits nothing."""
    parts: list[list[str]] = [[]]
    for line in old.split("\n"):
        if ELIDED.fullmatch(line):
            parts.append([])
        else:
            head, *others = ELIDED_INSIDE.split(line)
            parts[-1].append(head)
            parts += ([other] for other in others)
    if len(parts) == 1:
        return []
    given = ["\n".join(part) for part in parts if any(map(str.strip, part))]
    return given if len(given) <= MOST_PARTS else []
