"""A session as a git repository: one commit for each call or turn, written by `git fast-import`.

Each commit has trailers that name the session and its records. A later export continues from them.
"""

from __future__ import annotations

import os
from pathlib import Path

from weakfs.class_decorators import frozen
from weakfs.history.commit_graph import Per, commits_of
from weakfs.history.git_export.commit_stream import CommitStream
from weakfs.history.git_export.repository import ExportedRepository
from weakfs.history.trees import chosen_filesystem
from weakfs.session import Session
from weakfs.session.session import checked_session


@frozen
class ExportReport:
    """What an export added. `head` is the branch's newest commit; `None` if the session has no files."""

    repository: str
    branch: str
    commits: int
    head: str | None


def export_git(
    session: Session,
    repository: str | os.PathLike[str],
    *,
    filesystem: str | None = None,
    per: Per = "call",
    branch: str = "main",
) -> ExportReport:
    """Write the history of a session to a git repository, and return what was added.

    The repository is created if it does not exist, as a bare one if its name ends in `.git`. There is one commit for
    each call that changed files or, with `per="turn"`, for consecutive calls of one caller. Forks become branches below
    `forks/`, merges have two parents, and tagged snapshots become tags. If the session was exported before, only what
    is new is added; records that were compacted away since then become one commit. The export is atomic. Imported
    commits are written unchanged; if the repository has them, the branch continues from there.

    Git does not support empty directories, permission bits other than the executable bit, or names such as `.git`:
    these are left out.

    `filesystem` is the id of an external filesystem. By default, the session's own files are exported or, if it has
    none, those of its only external filesystem.

    Raises `ExportRefused` if the repository or the branch cannot be used, for example because the branch has other
    commits, `ValueError` if there is no such filesystem, and `OSError` if git is missing or cannot write.
    """
    meant = chosen_filesystem(checked_session(session), filesystem)
    target = ExportedRepository.at(Path(repository).absolute(), branch)
    old = target.head()
    imported = target.those_there(session)
    known = target.known(session.session_id, imported)
    stream = CommitStream(session, target, known, imported)
    try:
        for commit in commits_of(session, meant, per=per, ends={last for _, last in known}):
            stream.add(commit)
        stream.finish()
    finally:
        stream.close()
    head = target.head()
    target.check_out(old, head)
    return ExportReport(str(repository), branch, stream.added, head)
