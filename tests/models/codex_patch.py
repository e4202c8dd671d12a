"""Codex's update of a text, written from its own rules in a straightforward way: a model to compare with."""

from __future__ import annotations

from collections.abc import Sequence

from weakfs.editing.patches.operations import Hunk

BLANKS = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def normalized(line: str) -> str:
    made = ""
    for char in line.strip(BLANKS):
        code = ord(char)
        if 0x2010 <= code <= 0x2015 or code == 0x2212:
            made += "-"
        elif 0x2018 <= code <= 0x201B:
            made += "'"
        elif 0x201C <= code <= 0x201F:
            made += '"'
        elif code in (0xA0, 0x202F, 0x205F, 0x3000) or 0x2002 <= code <= 0x200A:
            made += " "
        else:
            made += char
    return made


PASSES = (
    lambda line: line,
    lambda line: line.rstrip(BLANKS),
    lambda line: line.strip(BLANKS),
    normalized,
)


def seek(lines: Sequence[str], pattern: Sequence[str], start: int, *, at_end: bool) -> int | None:
    if not pattern:
        return start
    if len(pattern) > len(lines):
        return None
    if at_end:
        start = len(lines) - len(pattern)
    for same in PASSES:
        for at in range(start, len(lines) - len(pattern) + 1):
            if all(same(line) == same(wanted) for line, wanted in zip(lines[at:], pattern, strict=False)):
                return at
    return None


def updated(text: str, hunks: Sequence[Hunk]) -> str | None:
    """Return the new text, or `None` if Codex refuses the update."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    replacements: list[tuple[int, int, list[str]]] = []
    cursor = 0
    for hunk in hunks:
        for anchor in hunk.anchors:
            found = seek(lines, [anchor], cursor, at_end=False)
            if found is None:
                return None
            cursor = found + 1
        old, new = hunk.old, hunk.new
        if not old:
            replacements.append((len(lines) - 1 if lines and lines[-1] == "" else len(lines), 0, new))
            continue
        found = seek(lines, old, cursor, at_end=hunk.at_end)
        if found is None and old[-1] == "":
            old = old[:-1]
            new = new[:-1] if new and new[-1] == "" else new
            found = seek(lines, old, cursor, at_end=hunk.at_end)
        if found is None:
            return None
        replacements.append((found, len(old), new))
        cursor = found + len(old)
    replacements.sort(key=lambda replacement: replacement[0])
    for start, count, inserted in reversed(replacements):
        for _ in range(count):
            if start < len(lines):
                lines.pop(start)
        for offset, line in enumerate(inserted):
            lines.insert(start + offset, line)
    if not lines or lines[-1] != "":
        lines.append("")
    return "\n".join(lines)
