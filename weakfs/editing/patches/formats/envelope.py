"""What models write around a patch, and is skipped: blank lines, white space before every line, fences, heredocs."""

from __future__ import annotations

import re

from weakfs.editing.line_context import indent
from weakfs.editing.patches.errors import malformed, quoted

# What may surround a path. Other white space, such as a no-break space, is part of a name.
BLANKS = " \t\r\n"
# A longer first line does not open an envelope.
LONGEST = 1024
# The deepest nesting: a fence with a heredoc inside.
DEEPEST = 3

_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[\w+-]*")

_PROGRAM = r"(?:\S*/)?apply_?patch"
# `apply_patch <<'EOF'`, `cat <<EOF | apply_patch`, or the bare redirection, directly or as an argument of a shell that
# is started for it. There is never more than one blank, so that each can be matched in one way only.
_HEREDOC = re.compile(
    r"(?:\$ )?"
    r"(?:(?:\S*/)?(?:ba|z|da)?sh -\w*c (?P<word>') ?)?"
    r"(?P<moves>cd [^;&|<]+(?:&&|;) ?)?"
    rf"(?:cat|{_PROGRAM}(?: -| (?P<inner>\"?)(?P<output>\$\( ?cat))?)?"
    r" ?<<-? ?(?:'(?P<single>[^'\s]+)'|\"(?P<double>[^\"\s]+)\"|\\?(?P<bare>[\w.-]+))"
    rf"(?: ?\| ?{_PROGRAM}(?: -)?)?"
)
_MOVE = re.compile(r"(?:\$ )?cd \S.*")
# How a quote is written inside a word in single quotes.
_QUOTE = "'\\''"


def unwrapped(lines: list[str], begin: str) -> tuple[list[str], int, int]:
    """Return the lines, and the range of the patch in them. Raises `PatchParseError` if it is malformed. O(lines)."""
    at, end = _without_blanks(lines, 0, len(lines))
    for _ in range(DEEPEST):
        first = " ".join(lines[at].split()) if at < end and len(lines[at]) <= LONGEST else ""
        if first == begin:
            break
        fence, heredoc = _FENCE.fullmatch(first), _HEREDOC.fullmatch(first)
        if fence:
            end -= lines[end - 1].strip() == fence["fence"]
        elif heredoc and not heredoc["moves"]:
            end = _end_of_heredoc(lines, at, end, heredoc)
            if heredoc["word"]:
                lines = [line.replace(_QUOTE, "'") for line in lines]
        else:
            _refuse_move(first, at, is_heredoc=heredoc is not None)
            break
        at, end = _without_blanks(lines, at + 1, end)
    return dedented(lines, at, end), at, end


def dedented(lines: list[str], at: int, end: int) -> list[str]:
    """Return the lines without the white space that precedes every line of the patch."""
    first = lines[at] if at < end else ""
    margin = indent(first)
    if not margin or not all(line.startswith(margin) or not line.strip() for line in lines[at:end]):
        return lines
    return [*lines[:at], *(line.removeprefix(margin) for line in lines[at:end]), *lines[end:]]


def _without_blanks(lines: list[str], at: int, end: int) -> tuple[int, int]:
    while at < end and not lines[at].strip():
        at += 1
    while end > at and not lines[end - 1].strip():
        end -= 1
    return at, end


def _end_of_heredoc(lines: list[str], at: int, end: int, found: re.Match[str]) -> int:
    """Return where a heredoc's lines end: before its tag and the closing quotes, if present."""
    tag = found["single"] or found["double"] or found["bare"]
    closing = tag + (")" if found["output"] else "") + (found["inner"] or "") + (found["word"] or "")
    tail = ""
    for number in range(end - 1, max(at, end - 1 - len(closing)), -1):
        tail = lines[number].strip() + tail
        if tail == closing or (tail == tag and not found["output"]):
            return number
        if len(tail) > len(closing):
            break
    return end


def _refuse_move(first: str, at: int, *, is_heredoc: bool) -> None:
    if is_heredoc or _MOVE.fullmatch(first):
        raise malformed(
            at + 1,
            f"{quoted(first)} changes the directory, which a patch cannot; leave the 'cd' out, and give all paths from "
            "the root",
        )
