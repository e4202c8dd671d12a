"""A text as non-blank lines, with the white space before, between and after them."""

from __future__ import annotations

from attrs import frozen

from weakfs.editing.line_ends import with_line_ends


@frozen
class TextBlock:
    """The non-blank lines of a text, stripped, and the gaps around them: one more than lines.

    Line ends are `\\n` here. A gap contains the trailing white space of the line before it, its line end, blank
    lines, and the indentation of the line after it. A passage without lines is one gap.
    """

    lines: tuple[str, ...]
    gaps: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> TextBlock:
        lines: list[str] = []
        gaps: list[str] = []
        gap: list[str] = []
        for row in with_line_ends(text, "\n").split("\n"):
            bare = row.lstrip()
            line = bare.rstrip()
            if not line:
                gap += (row, "\n")
                continue
            gap.append(row[: len(row) - len(bare)])
            gaps.append("".join(gap))
            lines.append(line)
            gap = [bare[len(line) :], "\n"]
        gaps.append("".join(gap[:-1]))
        return cls(tuple(lines), tuple(gaps))

    @property
    def lead(self) -> str:
        """Return the white space before the first line."""
        return self.gaps[0]

    @property
    def tail(self) -> str:
        """Return the white space after the last line."""
        return self.gaps[-1]

    def indent(self, number: int) -> str:
        """Return the indentation of a line."""
        return self.gaps[number].rpartition("\n")[2]
