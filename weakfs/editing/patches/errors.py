"""Why a patch was refused: one family of errors, each with what a receipt says and what a model can act on."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from weakfs.errors import WeakfsError

# As many problems of one patch are told; looking for the nearest place costs more than applying.
MAX_PROBLEMS = 10
# What a message quotes of a file or a patch, in characters, and how long it is at most.
QUOTED = 160
MAX_MESSAGE = 1400

NO_MARK = "has no mark; start each line of an update with ' ' if it stays, '-' if it is removed or '+' if it is added"
NO_LINES = "the hunk has no lines; give the lines that change, with '-' and '+', below it"


@frozen
class PatchProblem:
    """One thing that is wrong with a patch.

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

    `status` and `error_code` are what a receipt says, of the first of `errors`; those are at most ten.
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
    """The patch is malformed; `line` is where."""

    status = "parse_error"
    error_code = "patch_parse_error"


class HunkRejected(PatchError):
    """A hunk fits nowhere or in several places, or a file is there that was not to be replaced."""

    status = "reject"
    error_code = "hunk_rejected"


class UpdateTargetNotFound(PatchError):
    """The file to update or to move is not there."""

    status = "not_found"
    error_code = "update_target_not_found"


class DeleteTargetNotFound(PatchError):
    """The file to delete is not there."""

    status = "not_found"
    error_code = "delete_target_not_found"


class UpdateTargetNotText(PatchError):
    """The file to update is not UTF-8."""

    error_code = "update_target_non_utf8"


class PatchPathForbidden(PatchError):
    """A path climbs out, is a directory, or cannot be used for another reason."""

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
    """Give the error to raise for these problems, of the kind of the first."""
    return _KINDS[problems[0].error_code](*problems)


def malformed(line: int, reason: str) -> PatchParseError:
    """Give the error to raise for a line of a patch (from 1) that cannot be read."""
    return PatchParseError(PatchProblem("patch_parse_error", f"line {line} of the patch: {reason}", line=line))


def quoted(text: str) -> str:
    """Give a piece of text as it can stand in a message: in quotes, at most 160 characters."""
    return repr(text if len(text) <= QUOTED else f"{text[: QUOTED - 40]} ... {text[-35:]}")


def clipped_message(text: str) -> str:
    """Return a message, without its end if it is longer than a model should have to read."""
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."
