"""What to say of a text that is not there: where it nearly is, and why that is not the same.

Nothing here is ever applied: a guess goes back to whoever asked, who can look and ask again.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from attrs import frozen

from weakfs.editing.normalization import Haystack, Needle, folded
from weakfs.editing.refusals import TargetNotFound
from weakfs.editing.similarity import first_difference, is_invisible, loose, nearest, spaceless, unrepeated, visible

# `     1\tx`, `1→x`, `12: x`, `12| x`, `L12: x`, `[12] x` and the like, and at last `12   x`.
NUMBERED = re.compile(r"[^\S\n]*(?:[L\[(]?\d{1,7}[^\S\n]?(?:\t|→|│|\||:|\])[ ]?|\d{1,7}[^\S\n]+)")
# These are only taken for line numbers where the text is there without them: `1. x`, `1) x`, `Line 1: x`, `1> x`,
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
ELIDED_INSIDE = re.compile(r"[^\S\n]+(?:\.{3,}|…)[^\S\n]+")

# Longer texts are only looked at so far: a model reads what is said here, and it has to be said soon.
MOST_LOOKED_AT = 100_000
MOST_PARTS = 8
# So much of a line is quoted, and so many lines.
QUOTED = 160
MOST_QUOTED = 8

NUMBERS = "its lines begin with line numbers, which are no part of the file"
LEAVE_OUT = "give the text itself, without the numbers"


@frozen
class Guess:
    """What may have been meant: a word for why it is not the same, where it is in the text, and a sentence on it."""

    hint: str
    start: int
    stop: int
    why: str


def missing(haystack: Haystack, old: str, new: str) -> TargetNotFound:
    """Make the refusal for a text that is not there, nor any equivalent one. O(text)."""
    if not old.strip():
        why = "it is only white space, which is matched exactly or not at all; give some of the text around it"
        return TargetNotFound(f"the text to replace is not in it: {why}", matches=0)
    old = old[:MOST_LOOKED_AT]
    bare = _unnumbered(old, NUMBERED)
    guess = (
        _numbered(haystack, bare)
        or _numbered(haystack, _unnumbered(old, PERHAPS_NUMBERED))
        or _escaped(haystack, old)
        or _elided(haystack, old)
        or _applied(haystack, new)
    )
    return _told(haystack.text, guess) if guess else _like(haystack.text, old, bare)


def _told(text: str, guess: Guess) -> TargetNotFound:
    first = text.count("\n", 0, guess.start) + 1
    last = first + text.count("\n", guess.start, guess.stop)
    reason = f"the text to replace is not in it: {guess.why.format(where=_lines(first, last))}"
    return TargetNotFound(reason, lines=(first, last), matches=0, hint=guess.hint)


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _found(haystack: Haystack, hint: str, wanted: str, why: str) -> Guess | None:
    needle = Needle.of(wanted)
    at = haystack.first(needle)
    return None if at is None else Guess(hint, haystack.original(at), haystack.original(at + len(needle.core)), why)


def _unnumbered(old: str, numbered: re.Pattern[str]) -> str:
    """Give a text without its line numbers, "" if most of its lines have none."""
    lines = old.split("\n")
    without = [numbered.sub("", line, count=1) if numbered.match(line) else line for line in lines]
    given = sum(bool(line.strip()) for line in lines)
    changed = sum(one != other for one, other in zip(lines, without, strict=True))
    return "\n".join(without) if changed * 2 >= given else ""


def _numbered(haystack: Haystack, bare: str) -> Guess | None:
    guess = _found(haystack, "line_numbers", bare, f"{NUMBERS}; without them it is {{where}}: {LEAVE_OUT}")
    if guess is None:
        return None
    # A numbered list, or keys that are numbers: then they are part of the file.
    line = haystack.text.rfind("\n", 0, guess.start) + 1
    return None if PERHAPS_NUMBERED.fullmatch(haystack.text[line : guess.start][:QUOTED]) else guess


def _escaped(haystack: Haystack, old: str) -> Guess | None:
    forms: list[tuple[str, str]] = []
    if "\\" in old:
        unescaped = ESCAPE.sub(_unescaped, old)
        forms.append(
            (unescaped, 'it has escapes such as \\n, \\" or \\u00e9 where the file has the characters themselves')
        )
    if "&" in old:
        forms.append((html.unescape(old), "it has escapes such as &lt; where the file has the characters themselves"))
    if '"' in old or "\\" in old or "\n" in old.strip():
        doubled = old.replace("\\", "\\\\")
        for escaped in (doubled, old.replace('"', '\\"'), doubled.replace('"', '\\"')):
            forms.append((escaped, "the file has backslashes that it leaves out"))
        forms.append((old.replace("\n", "\\n"), "the file has \\n written out where it has line breaks"))
    if "<" in old or ">" in old or "&" in old:
        forms.append((html.escape(old, quote=False), "the file has escapes such as &lt; where it has the characters"))
    for form, why in forms:
        guess = _found(haystack, "escapes", form, f"{why}, on {{where}}: give the text as it is in the file")
        if form != old and guess:
            return guess
    return None


def _unescaped(escape: re.Match[str]) -> str:
    if not escape[1]:
        return ESCAPED.get(escape[2], escape[2])
    # Characters above U+FFFF are escaped as two.
    return bytes.fromhex(escape[1].replace("\\u", "")).decode("utf-16-be", "replace")


def _elided(haystack: Haystack, old: str) -> Guess | None:
    parts: list[list[str]] = [[]]
    for line in old.split("\n"):
        if ELIDED.fullmatch(line):
            parts.append([])
        else:
            head, *others = ELIDED_INSIDE.split(line)
            parts[-1].append(head)
            parts += ([other] for other in others)
    given = ["\n".join(part) for part in parts if any(map(str.strip, part))]
    if len(parts) == 1 or not given or len(given) > MOST_PARTS:
        return None
    start = stop = None
    for part in given:
        needle = Needle.of(part)
        at = haystack.first(needle, stop or 0)
        if at is None:
            return None
        start, stop = (at if start is None else start), at + len(needle.core)
    if start is None or stop is None:
        return None
    why = "it leaves lines out (...), which are not filled in; it is around {where}: give every line of what changes"
    return Guess("elision", haystack.original(start), haystack.original(stop), why)


def _applied(haystack: Haystack, new: str) -> Guess | None:
    """Look for the new text, where it says enough to be known again: whole lines, or a long piece of one."""
    needle = Needle.of(new[:MOST_LOOKED_AT])
    if len(needle.core) < 4 or not any(map(str.isalnum, needle.core)):
        return None
    at = haystack.first(needle)
    if at is None:
        return None
    text, start, stop = haystack.text, haystack.original(at), haystack.original(at + len(needle.core))
    begins = not text[text.rfind("\n", 0, start) + 1 : start].strip().strip("\ufeff")
    end = text.find("\n", stop)
    ends = not text[stop : end if end >= 0 else len(text)].strip()
    if not (begins and ends) and len(needle.core) < 20:
        return None
    if len(needle.core) < 40 and haystack.count(needle) > 1:
        return None
    return Guess(
        "already_applied", start, stop, "the new text is there already, on {where}; there may be nothing to do"
    )


def _like(text: str, old: str, bare: str) -> TargetNotFound:
    """Tell of the lines that are most like the old text; `bare` is that without line numbers, if it has some."""
    region = nearest(text, bare or old)
    lines = text.split("\n")[region.start : region.stop] if region else []
    if bare and any(map(NUMBERED.match, lines)):
        return _like(text, old, "")
    hint, before, old = ("line_numbers", f"But {NUMBERS}; {LEAVE_OUT}. ", bare) if bare else ("similar", "", old)
    if region is None:
        why = f"the text to replace is not in it, nor anything like it; {before}read it again and copy the text exactly"
        return TargetNotFound(why, matches=0, hint=hint if bare else None)
    why = _difference("\n".join(lines), old)
    where = _lines(region.start + 1, region.stop)
    parts = [f"the text to replace is not in it; did you mean {where}? {before}{why}"]
    differs = first_difference(lines, old.split("\n"))
    place = 0
    if differs is not None:
        place, wanted = differs
        there = lines[place] if place < len(lines) else ""
        parts.append(f"Line {region.start + 1 + place} is the first that differs: the file has")
        parts += _quoted(there, wanted, region.start + 1 + place)
    if len(lines) > 1:
        parts.append("The lines are")
        low = max(0, min(place - MOST_QUOTED // 2, len(lines) - MOST_QUOTED))
        shown = lines[low : low + MOST_QUOTED]
        parts += [f"{region.start + 1 + low + number} | {_clip(line)}" for number, line in enumerate(shown)]
    parts.append("Copy the text exactly, without the line numbers")
    return TargetNotFound("\n".join(parts), lines=(region.start + 1, region.stop), matches=0, hint=hint)


def _quoted(there: str, wanted: str, number: int) -> list[str]:
    """Quote two lines around the first character in which they differ."""
    one, other = there.strip(), wanted.strip()
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    begin = max(0, same - QUOTED // 2) if max(len(one), len(other)) > QUOTED else 0
    return [f"{number} | {_clip(one[begin:])}", "and the text to replace has", f"{number} | {_clip(other[begin:])}"]


def _clip(line: str) -> str:
    return line if len(line) <= QUOTED else f"{line[:QUOTED]} ..."


def _difference(there: str, old: str) -> str:
    """Say why two texts are not the same."""
    for form, why in KINDS if len(there) <= MOST_LOOKED_AT else ():
        if folded(form(old)).strip() in folded(form(there)):
            return why.format(_unseen(there, old))
    return "It is similar, and similar text is never replaced."


def _unseen(there: str, old: str) -> str:
    """Name the invisible characters that only one of two texts has."""
    only = {char for char in {*there} ^ {*old} if is_invisible(char)}
    return ", ".join(f"U+{ord(char):04X}" for char in sorted(only)[:5]) or "one of them"


KINDS: tuple[tuple[Callable[[str], str], str], ...] = (
    (str.lower, "Only the case of letters differs."),
    (visible, "Only characters that cannot be seen differ ({}); replace a piece of text without them."),
    (lambda text: spaceless(text).replace("\n", ""), "White space is there in only one of the two."),
    (unrepeated, "A row of the same character is longer or shorter."),
    (lambda text: loose(text).replace("\n", ""), "Case, white space or the like differ."),
)
