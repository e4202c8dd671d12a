"""Texts of which only some lines are known, and their state before a recorded change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.transcripts.reconstruction.claude_edit_rules import Edit, apply_edits
from weakfs.transcripts.reconstruction.recorded_hunks import Hunk


@frozen
class Part:
    """Lines of a file, starting at line `first`; text after the last line break counts as a line, even if empty.

    `total` is the number of lines in the file, `None` if it is not known yet.
    """

    first: int
    lines: tuple[str, ...] = field(repr=False)
    total: int | None = None


@frozen
class Partial:
    """The known lines of a text by number, from 1; text after the last line break counts as a line, even if empty.

    `total` is the number of lines, `None` if unknown.
    """

    lines: Mapping[int, str] = field(factory=dict[int, str], repr=False)
    total: int | None = None

    @classmethod
    def whole(cls, text: str) -> Partial:
        """Return the lines of a text that is known in full."""
        lines = text.split("\n")
        return cls(dict(enumerate(lines, 1)), len(lines))

    @property
    def is_complete(self) -> bool:
        """Whether every line is known."""
        return self.total is not None and len(self.lines) == self.total and 1 in self.lines

    @property
    def text(self) -> str:
        """The text, if it is complete. O(text)."""
        return "\n".join(self.lines[number] for number in range(1, len(self.lines) + 1))

    def joined(self, part: Part) -> Partial | None:
        """Return this text with the lines of a part added; `None` if they contradict each other."""
        if part.total is not None and self.total is not None and part.total != self.total:
            return None
        shown = dict(enumerate(part.lines, part.first))
        return self._with(shown, part.total if self.total is None else self.total)

    def _with(self, shown: Mapping[int, str], total: int | None) -> Partial | None:
        if any(self.lines.get(number, line) != line for number, line in shown.items()):
            return None
        lines = {**self.lines, **shown}
        if lines and (min(lines) < 1 or (total is not None and max(lines) > total)):
            return None
        return Partial(lines, total)

    def before_hunks(self, hunks: Sequence[Hunk], is_trusted: Sequence[bool]) -> Partial | None:
        """Return the text before hunks were applied to it; `None` if they do not fit.

        Old lines are taken from a hunk itself if it is trusted to show them exactly.
        """
        lines: dict[int, str] = {}
        shown: dict[int, str] = {}
        rest = sorted(self.lines)
        at = shift = 0
        last: int | None = None
        for hunk, trusted in zip(hunks, is_trusted, strict=True):
            old, new = _plain(hunk.old), _plain(hunk.new)
            start = hunk.start - shift
            while at < len(rest) and rest[at] < start:
                lines[rest[at] + shift] = self.lines[rest[at]]
                at += 1
            while at < len(rest) and rest[at] < start + len(new):
                if trusted and self.lines[rest[at]] != new[rest[at] - start]:
                    return None
                at += 1
            if trusted:
                shown.update(enumerate(old, hunk.start))
            shift += len(old) - len(new)
            if _is_unended(hunk.old):
                last = hunk.start + len(old) - 1
            elif _is_unended(hunk.new):
                last = hunk.start + len(old)
                shown[last] = ""
        if last is not None:
            # The text ends in the last hunk, before the change, or after it without a line break.
            return Partial(lines)._with(shown, last)
        lines.update((number + shift, self.lines[number]) for number in rest[at:])
        return Partial(lines)._with(shown, None if self.total is None else self.total + shift)

    def before_edits(self, edits: Iterable[Edit]) -> Partial | None:
        """Return a complete text as it was before edits; `None` if that is not certain."""
        edits = tuple(edits)
        if not self.is_complete or not edits:
            return None
        text = after = self.text
        for edit in reversed(edits):
            if not edit.new or text.count(edit.new) != 1:
                return None
            text = text.replace(edit.new, edit.old)
        return Partial.whole(text) if apply_edits(text, edits) == after else None


def trusted_hunks(hunks: Sequence[Hunk], edits: Sequence[Edit]) -> tuple[bool, ...]:
    """Return, for each hunk, whether its lines are exactly those of the file.

    Some versions write two spaces for each leading tab, so a line that begins with two spaces may really begin with a
    tab, unless something else in the recording of the change settles it.
    """
    lines = [line for hunk in hunks for line in _plain((*hunk.old, *hunk.new))]
    strings = [line for edit in edits for line in (*edit.old.split("\n"), *edit.new.split("\n"))]
    indented = tuple(line for line in strings if line.startswith("  ") and line.strip())
    # The strings that were sent are text of the file itself; their last lines may continue beyond them.
    is_plain = not edits or any(line.startswith(("\t", *indented)) for line in lines)
    return tuple(
        is_plain or not any(line.startswith("  ") for line in _plain((*hunk.old, *hunk.new))) for hunk in hunks
    )


def _plain(lines: Sequence[str]) -> list[str]:
    return [line.removesuffix("\n") for line in lines]


def _is_unended(lines: Sequence[str]) -> bool:
    """Return whether lines end a text without a line break."""
    return bool(lines) and not lines[-1].endswith("\n")
