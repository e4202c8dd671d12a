"""The answers to calls: checks of what a handler returned, notes on what was lost, and messages of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import evolve

from weakfs.filesystem.errors import absence_in
from weakfs.messages import a_type, named_type
from weakfs.session import MergeConflict
from weakfs.session.current_timeline import Transaction
from weakfs.session.external_filesystems import INEXACT, InexactNote, Lossy
from weakfs.tools.errors import PolicyDenied, classify
from weakfs.tools.permissions.guard import may_show, point_of
from weakfs.tools.results import Receipt, ToolResult, failed, with_notes
from weakfs.tools.tool import Tool

if TYPE_CHECKING:
    from weakfs.filesystem import Filesystem, Note

# The maximum number of notes in an answer about what could not be restored exactly.
MAX_NOTES = 20


def valid_result(tool: Tool, given: object) -> ToolResult[object]:
    """Return what a handler returned; raise `TypeError` if it is not a result with values of the right types."""
    if not isinstance(given, ToolResult):
        raise TypeError(f"the handler of {tool.name!r} returned {a_type(given)}; return a ToolResult")
    result = cast("ToolResult[object]", given)
    fits = (
        isinstance(result.message, str)
        and isinstance(result.status, str)
        and isinstance(result.summary_text, str)
        and (result.error_code is None or isinstance(result.error_code, str))
        and isinstance(result.success, bool)
    )
    if not fits:
        raise TypeError(
            f"the handler of {tool.name!r} returned a ToolResult with values of wrong types; message, "
            f"status and summary_text must be str, error_code str or None, and success bool"
        )
    if tool.receipt is not Receipt and not isinstance(result.value, tool.receipt):
        raise TypeError(
            f"the handler of {tool.name!r} returned {a_type(result.value)} as the value of its result; return "
            f"{named_type(tool.receipt)}, which the tool declares as its receipt"
        )
    return result


def with_lost(result: ToolResult[object], made: Transaction | None, fs: Filesystem | None) -> ToolResult[object]:
    """Return the answer with notes on what files have lost, such as a hard link that a move broke."""
    journals = () if made is None else made.journals.items()
    lost = [
        (name, cast("Note", note)) for name, journal in journals if isinstance(journal, Lossy) for note in journal.lost
    ]
    return _with_shown(result, lost, "", fs)


def with_inexact(result: ToolResult[object], error: BaseException, fs: Filesystem | None) -> ToolResult[object]:
    """Return the answer of a call that was undone, with notes on what could not be restored exactly."""
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, InexactNote)]
    return _with_shown(result, [(note.filesystem, cast("Note", note.about)) for note in notes], INEXACT, fs)


def _with_shown(
    result: ToolResult[object], notes: list[tuple[str, Note]], start: str, fs: Filesystem | None
) -> ToolResult[object]:
    """Return the answer with notes, each with the id of its filesystem, without those that name hidden files."""
    if not notes:
        return result
    # Imported here because few calls have notes.
    from weakfs.filesystem.missing_path import SupportsNaming

    point, own, told = point_of(fs), getattr(fs, "filesystem_id", None), result.message
    # A directory may hold files that the policy hides, and rules say nothing about the files of another filesystem.
    shown = [
        f"{start}{named}"
        for name, note in notes
        for named in (note if point is None or name != own else point.mounted_note(note),)
        if not isinstance(fs, SupportsNaming) or (name == own and (fs.may_name(named.path) or named.path in told))
    ]
    return evolve(result, message=with_notes(told, [*dict.fromkeys(shown)][:MAX_NOTES])) if shown else result


def answer_to_error(error: Exception, name: str, receipt: type[Receipt], fs: Filesystem | None) -> ToolResult[object]:
    """Return the answer to a call that was undone because of an error that is not a bug."""
    status, code = classify(error)
    message = f"cannot call {name}: {error}" if code == "invalid_arguments" else _message(error, fs)
    reason = error.reason if isinstance(error, PolicyDenied) else None
    return with_inexact(failed(receipt, status, code, message or type(error).__name__, reason=reason), error, fs)


def _message(error: Exception, fs: Filesystem | None) -> str:
    """Return the message of an error; if a path does not exist, suggest the one that may be meant.

    The message of a conflict shows no contents that the policy withholds.
    """
    absence = absence_in(error)
    if isinstance(error, MergeConflict):
        if (point := point_of(fs)) is not None:
            # Paths in records lack the mount point; rules have the paths that calls use.
            error = MergeConflict(tuple(map(point.mounted_conflict, error.conflicts)))
        return error.described(ours="now", theirs="this call", may_show=lambda path: may_show(fs, path))
    if fs is None or absence is None:
        return str(error)
    from weakfs.filesystem.missing_path import with_proposal

    return with_proposal(fs, absence)
