"""Why a replacement was refused, in words that say how to go on."""

from __future__ import annotations

from typing import ClassVar


class EditError(ValueError):
    """A replacement that was refused; nothing was changed.

    `status` and `error_code` are what a receipt says, `reason` the message without its first words. `matches` is
    how many places there are (`None` where nobody looked) and `lines` the line (from 1) of each, at most the first
    1,000; where there is none, `lines` are the first and the last line of the nearest text, and `hint` says in a
    word why that is not the same. `unquoted` is a reason of the kind that quotes nothing of the text, for kinds whose
    `reason` may.
    """

    status: ClassVar[str] = "error"
    error_code: ClassVar[str]
    unquoted: ClassVar[str | None] = None

    def __init__(
        self, reason: str, *, lines: tuple[int, ...] = (), matches: int | None = None, hint: str | None = None
    ) -> None:
        self.reason = reason
        self.lines = lines
        self.matches = matches
        self.hint = hint
        super().__init__(f"cannot replace: {reason}")

    def without_quotes(self) -> EditError:
        """Return this refusal for a text that may not be shown: nothing in it quotes the text or tells of its lines."""
        return self if self.unquoted is None else type(self)(self.unquoted, matches=self.matches)


class EmptyOldString(EditError):
    """There is nothing to look for."""

    error_code = "invalid_input_empty_old_string"


class NoChange(EditError):
    """The new text is the old one."""

    error_code = "invalid_input_no_change"


class TargetNotFound(EditError):
    """The old text is not there."""

    status = "not_found"
    error_code = "edit_target_not_found"
    unquoted = "the text to replace is not in it, and nothing of the file may be shown; give the exact text"


class AmbiguousTarget(EditError):
    """The old text is there several times, and one place was asked for."""

    status = "ambiguous"
    error_code = "ambiguous_matches"


class AmbiguousIndentation(EditError):
    """The old text is there with another indentation, which leaves in doubt how deep the new lines belong."""

    status = "ambiguous"
    error_code = "ambiguous_indentation"
    unquoted = (
        "the text to replace is in it with another indentation, which leaves in doubt how deep the new lines belong, "
        "and nothing of the file may be shown; give the old lines with the indentation that they have"
    )
