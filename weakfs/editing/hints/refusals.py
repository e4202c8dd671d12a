"""Errors of refused replacements, with messages that say how to continue."""

from __future__ import annotations

from typing import ClassVar

from weakfs.errors import WeakfsError


class EditError(WeakfsError, ValueError):
    """A replacement that was refused; nothing was changed.

    `status` and `error_code` go into a receipt; `reason` is the message without its first words. `matches` is the
    number of matches (`None` if they were not counted), and `lines` holds the line (from 1) of each, at most the first
    1,000. If there is no match, `lines` are the first and the last line of the nearest text, and `hint` is a keyword
    for the difference. `unquoted` is a reason that does not quote the text, for errors whose `reason` may quote it.
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
        """Return this refusal without quotes or descriptions of the text, for a text that may not be shown."""
        return self if self.unquoted is None else type(self)(self.unquoted, matches=self.matches)


class EmptyOldString(EditError):
    """The old text is empty."""

    error_code = "invalid_input_empty_old_string"


class NoChange(EditError):
    """The new text equals the old one."""

    error_code = "invalid_input_no_change"


class TargetNotFound(EditError):
    """The old text was not found."""

    status = "not_found"
    error_code = "edit_target_not_found"
    unquoted = "the text to replace is not in the file, and its contents may not be shown; give the exact text"


class AmbiguousTarget(EditError):
    """The old text occurs several times, but only one place should be replaced."""

    status = "ambiguous"
    error_code = "ambiguous_matches"


class AmbiguousIndentation(EditError):
    """The old text occurs with another indentation, so the depth of the new lines is ambiguous."""

    status = "ambiguous"
    error_code = "ambiguous_indentation"
    unquoted = (
        "the text to replace is in the file with another indentation, so the depth of the new lines is ambiguous; "
        "its contents may not be shown; give the old lines with the indentation that they have in the file"
    )
