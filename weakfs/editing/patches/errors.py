"""The errors of refused patches: one family, each with fields for a receipt and a message that a model can act on."""

from __future__ import annotations

from typing import ClassVar

from weakfs.class_decorators import frozen
from weakfs.errors import WeakfsError

# The maximum number of problems of one patch that are reported: finding the nearest place costs more than applying.
MAX_PROBLEMS = 10
# The maximum number of characters of a file or a patch that a message quotes, and the maximum length of a message.
QUOTED = 160
MAX_MESSAGE = 1400

NO_MARK = "has no mark; start each line of an update with ' ' if it stays, '-' if it is removed or '+' if it is added"
RETURNS_ALONE = (
    "the lines of the file end in a carriage return alone, and a patch divides lines only at line feeds; "
    "use edit_file, or convert the line ends first"
)
NO_LINES = "the hunk has no lines; give the lines that change, with '-' and '+', below it"


@frozen
class PatchProblem:
    """One problem of a patch.

    `line` is the line of the patch, `hunk` the number of the hunk in its file (from 1), `file_lines` the lines of
    the file that the message names.
    """

    error_code: str
    message: str
    path: str | None = None
    line: int | None = None
    hunk: int | None = None
    file_lines: tuple[int, ...] = ()


class PatchError(WeakfsError, ValueError):
    """A patch that was refused; nothing was changed.

    `status` and `error_code` go into a receipt and are those of the first of `errors`, of which there are at most ten.
    """

    status: ClassVar[str] = "error"
    error_code: ClassVar[str]

    def __init__(self, *errors: PatchProblem) -> None:
        self.errors = errors
        super().__init__("cannot apply the patch: " + "\n".join(error.message for error in errors))

    @property
    def line(self) -> int | None:
        """The line of the patch that is at fault."""
        return self.errors[0].line


class PatchParseError(PatchError):
    """The patch is malformed at `line`."""

    status = "parse_error"
    error_code = "patch_parse_error"


class HunkRejected(PatchError):
    """A hunk fits nowhere or in several places, or a file exists that must not be replaced."""

    status = "reject"
    error_code = "hunk_rejected"


class UpdateTargetNotFound(PatchError):
    """The file to update or to move does not exist."""

    status = "not_found"
    error_code = "update_target_not_found"


class DeleteTargetNotFound(PatchError):
    """The file to delete does not exist."""

    status = "not_found"
    error_code = "delete_target_not_found"


class UpdateTargetNotText(PatchError):
    """The file to update is not UTF-8."""

    error_code = "update_target_non_utf8"


class PatchPathForbidden(PatchError):
    """A path climbs above the root, is a directory, or is unusable for another reason."""

    status = "forbidden"
    error_code = "path_forbidden"


_KINDS: dict[str, type[PatchError]] = {
    kind.error_code: kind
    for kind in (
        PatchParseError,
        HunkRejected,
        UpdateTargetNotFound,
        DeleteTargetNotFound,
        UpdateTargetNotText,
        PatchPathForbidden,
    )
}


def refusal(problems: list[PatchProblem]) -> PatchError:
    """Return the error for these problems, of the class that fits the first."""
    return _KINDS[problems[0].error_code](*problems)


def malformed(line: int, reason: str) -> PatchParseError:
    """Return the error for a line of a patch (from 1) that cannot be parsed."""
    return PatchParseError(PatchProblem("patch_parse_error", f"line {line} of the patch: {reason}", line=line))


def quoted(text: str) -> str:
    """Return a piece of text for a message: in quotes, at most 160 characters."""
    return repr(text if len(text) <= QUOTED else f"{text[: QUOTED - 40]} ... {text[-35:]}")


def clipped_message(text: str) -> str:
    """Return a message, truncated to a length that a model should read."""
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."
