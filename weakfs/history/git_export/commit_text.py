"""The text of a commit: its author, its message, and the trailers by which a later export finds it again."""

from __future__ import annotations

import re

from weakfs.history.commit_graph import Commit
from weakfs.history.descriptions import target_of_call, target_of_event
from weakfs.history.git_import.commit_calls import GitCommit, commit_of
from weakfs.messages import clip, one_line
from weakfs.session import Merged, RolledBack, Session

COMMITTER = b"weakfs <weakfs@localhost>"
LAST_SECOND = 1 << 40
# The maximum length of a subject line, and of the arguments in a message, in characters.
MAX_SUBJECT = 72
MAX_ARGUMENTS = 2_000
RECORDS, SESSION = "Weakfs-Records", "Weakfs-Session"


def imported_commit(commit: Commit) -> GitCommit | None:
    """Return the commit from which this one was imported; `None` if it was not imported."""
    return commit_of(commit.calls[0].call) if len(commit.calls) == 1 else None


def description_of(session: Session, commit: Commit, original: GitCommit | None) -> tuple[bytes, bytes, bytes]:
    """Return the author and the committer of a commit, with their times, and the message."""
    if original is not None and original.can_be_written:
        return original.author, original.committer, original.message
    seconds = min(max(commit.at // 1_000_000_000, 0), LAST_SECOND)
    people = (b"%s %d +0000" % (who, seconds) for who in (_author(commit), COMMITTER))
    author, committer = people
    return author, committer, _message(session, commit)


def _message(session: Session, commit: Commit) -> bytes:
    """Return the message of a commit: what was done, with which arguments, and the trailers."""
    parts = [clip(_subject(commit), MAX_SUBJECT)]
    for call in commit.calls:
        text = call.call.arguments
        arguments = text if isinstance(text, str) else text.decode("utf-8", "replace")
        parts.append(f"{one_line(call.call.summary)}\n\n{clip(one_line(arguments), MAX_ARGUMENTS)}")
    trailers = [f"Weakfs-Call: {trailer(call.call.call_id)}" for call in commit.calls]
    trailers += [f"{RECORDS}: {commit.first}-{commit.last}", f"{SESSION}: {trailer(session.session_id)}"]
    text = "\n\n".join([*parts, "\n".join(trailers)]) + "\n"
    return text.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0")


def _subject(commit: Commit) -> str:
    if len(commit.calls) == 1:
        call = commit.calls[0].call
        return f"{one_line(call.tool)} {target_of_call(call)}".rstrip()
    if commit.calls:
        return f"{len(commit.calls)} calls: " + ", ".join(
            dict.fromkeys(one_line(one.call.tool) for one in commit.calls)
        )
    if not commit.records:
        return "Files before the first record"
    event = commit.records[-1].event
    if isinstance(event, Merged):
        return f"Merge {one_line(event.fork)}"
    if isinstance(event, RolledBack):
        return f"Roll back to record {event.target}"
    cause = commit.records[-1].cause
    return one_line(cause) if cause is not None else _event_subject(event)


def _event_subject(event: object) -> str:
    words = re.sub("([A-Z])", r" \1", type(event).__name__).strip().capitalize()
    return f"{words} {target_of_event(event)}".rstrip()


def _author(commit: Commit) -> bytes:
    callers = {call.call.caller for call in commit.calls}
    name = callers.pop() if len(callers) == 1 else None
    plain = re.sub(r"[<>\n\0]+", " ", one_line(name or "weakfs")).strip(" .,:;<>\"\\'") or "weakfs"
    return plain.encode("utf-8", "backslashreplace") + b" <" + re.sub(r"[^\w.-]+", "-", plain).encode() + b"@localhost>"


def trailer(text: str) -> str:
    return one_line(text).strip()
