"""Lines with their indentations, as given and in the file, and the error for those that contradict one another."""

from __future__ import annotations

from weakfs.class_decorators import frozen


class DoubtfulIndentation(Exception):
    """The depth of a line is ambiguous; `lines` are the numbers (from 1) of the lines of the file that show it."""

    def __init__(self, reason: str, lines: tuple[int, ...]) -> None:
        self.reason = reason
        self.lines = lines
        super().__init__(reason)


@frozen
class OldLine:
    """A non-blank line of the quoted text, and where it was found.

    `actual` is its indentation in the file, `None` for a line that begins inside one of the file's; `number` is the
    number of the file's line (from 1).
    """

    indent: str
    text: str
    actual: str | None
    number: int


@frozen
class NewLine:
    """A non-blank line of the replacement.

    `kept` is the number (from 0) of the equal old line, `None` for an inserted line. `blanks` counts the blank lines
    above it.
    """

    indent: str
    text: str
    kept: int | None = None
    blanks: int = 0


def contradiction(one: OldLine, other: OldLine) -> DoubtfulIndentation:
    """Return the error for two old lines whose relative depth in the file is not the quoted one."""
    one, other = sorted((one, other), key=lambda line: line.number)
    if one.indent == other.indent:
        given = "have the same indentation in the text that was given"
    else:
        given = f"are indented by {spoken(one.indent)} and {spoken(other.indent)} in the text that was given"
    if one.actual == other.actual:
        there = f"are both indented by {spoken(one.actual or '')} in the file"
    else:
        there = f"are indented by {spoken(one.actual or '')} and {spoken(other.actual or '')} in the file"
    return DoubtfulIndentation(
        f"its indentation contradicts that of the file: lines {one.number} ({quote(one.text)}) and {other.number} "
        f"({quote(other.text)}) {given}, but {there}, so the block of each new line is ambiguous; "
        "give all lines, old and new, with the indentation of the file",
        (one.number, other.number),
    )


def no_depth(line: NewLine, given: str, old: OldLine) -> DoubtfulIndentation:
    """Return the error for a new line whose depth relative to an old one, as given, does not exist in the file."""
    return DoubtfulIndentation(
        f"its indentation contradicts that of the file: the new line {quote(line.text)} and line {old.number} "
        f"({quote(old.text)}) are indented by {spoken(given)} and {spoken(old.indent)} in the text that was given, "
        f"but line {old.number} is indented by {spoken(old.actual or '')} in the file, where no depth corresponds to "
        "that of the new line; give all lines, old and new, with the indentation of the file",
        (old.number,),
    )


def shared_depth(line: NewLine, old: OldLine) -> DoubtfulIndentation:
    """Return the error for a new text with the outermost indentation of the file, unlike the old text."""
    return DoubtfulIndentation(
        f"its indentation contradicts that of the file: {quote(old.text)} is indented by {spoken(old.indent)} in the "
        f"old text and by {spoken(old.actual or '')} on line {old.number} of the file, and the new text is indented "
        f"like the file, from {quote(line.text)} on; give all lines, old and new, with the indentation of the file",
        (old.number,),
    )


def shared_steps(line: NewLine, new: int, old: int) -> DoubtfulIndentation:
    """Return the error for new lines with the steps of indentation of the file, unlike the old text."""
    return DoubtfulIndentation(
        f"the indentation of the new line {quote(line.text)} is ambiguous: the new text is indented in steps of {new} "
        f"like the file, but the old text in steps of {old}; give all lines, old and new, with the indentation of the "
        "file",
        (),
    )


def lost_indentation(line: NewLine, old: OldLine, margin: OldLine) -> DoubtfulIndentation:
    """Return the error for a first new line without indentation, which may be meant or an omission."""
    return DoubtfulIndentation(
        f"the indentation of the new line {quote(line.text)} is ambiguous: the new text begins without indentation, as "
        f"{quote(margin.text)} does in the old text, but the old text begins with {quote(old.text)}, which is indented "
        f"by {spoken(old.indent)}; give all lines, old and new, with the indentation of the file",
        (old.number,),
    )


def spoken(indent: str) -> str:
    """Return an indentation in words."""
    if not indent:
        return "0 spaces"
    kind = "tab" if set(indent) == {"\t"} else "space" if set(indent) == {" "} else "character"
    return f"{len(indent)} {kind}{'' if len(indent) == 1 else 's'}"


def quote(text: str) -> str:
    """Return a line in quotes, truncated if it is long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
