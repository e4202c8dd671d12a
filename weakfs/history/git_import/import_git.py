"""`import_git`: the history of a git repository as records of a session."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.filesystem.limits import Limits
from weakfs.history.git_import.commit_calls import GitCommit, call_of
from weakfs.history.git_import.foreign_repository import ForeignRepository, ImportRefused, opened
from weakfs.history.git_import.lines import Line, main_line
from weakfs.history.git_import.objects import Objects
from weakfs.history.git_import.tree_changes import Changes, SkippedEntry
from weakfs.history.ref_names import ref_part
from weakfs.reducers import FileTree
from weakfs.reducers.events import FileWritten
from weakfs.session import Session
from weakfs.session.session import checked_session

# A stored session takes a checkpoint after this many bytes of contents, to read old contents from its storage instead
# of holding them in memory.
CHECKPOINT = 32 << 20
# The maximum number of skipped entries that a report lists; the others are only counted.
MOST_SKIPPED = 1_000


@frozen
class ImportReport:
    """What was imported. `commits` counts commits with their own call, `merged` those among them in merged forks.

    `flattened` counts commits without their own call, because their merge was recorded as one change. `skipped` lists
    at most 1,000 of the `skipped_count` entries that were left out, and `other_refs` the branches and tags that were
    left out. If `is_exact`, an export of the session has commits with the same ids.
    """

    branch: str
    head: str
    commits: int
    merged: int
    flattened: int
    skipped: tuple[SkippedEntry, ...]
    skipped_count: int
    other_refs: tuple[str, ...]
    is_exact: bool


def import_git(
    repository: str | os.PathLike[str],
    session: Session,
    *,
    branch: str | None = None,
    max_file_size: int | None = Limits().max_file_size,
) -> ImportReport:
    """Record the history of a branch of a git repository in a new session: one call for each commit.

    The call has the commit's id, message, author and committer as its arguments, and the author's name as its caller;
    records have the committer's time. The first parents of the branch become the session's own records. A merge of two
    commits becomes a merged fork if its second parent branched off from an earlier one of these commits; any other
    merge becomes one change. Tags of the session's own commits become snapshots. The default branch is the repository's
    current one.

    An export writes the same commits again, with the same ids, if `ImportReport.is_exact`: every commit changes a file,
    every merge is recorded as a merge, nothing was skipped, ids are SHA-1, and no commit has a signature or an
    encoding.

    No code of the repository runs, its configuration is not used, nothing is fetched, and nothing outside its git
    directory is read. Submodules, files larger than `max_file_size`, and names that are reserved for git or cannot be
    paths are left out and reported.

    Raises `ImportRefused` if `repository` is not a repository, has no such branch, is damaged, or needs the objects of
    another one, `ValueError` if the session is not new, and `OSError` if git is missing. After an exception the session
    may hold a part of the history, so discard it. During the import, a session in storage holds the contents of about
    its last 5,000 records in memory; a session in memory holds all contents.
    """
    if not checked_session(session).is_new:
        raise ValueError(f"cannot import into session {session.session_id!r}: it has records; pass a new session")
    with opened(_git_dir(Path(repository).absolute())) as found:
        return _imported(found, session, branch, max_file_size)


def _imported(
    repository: ForeignRepository, session: Session, branch: str | None, max_file_size: int | None
) -> ImportReport:
    refs = _refs(repository)
    ref = _branch(repository, branch, refs)
    with Objects(repository) as objects, _clock(session) as clock:
        tips = objects.peeled({**refs, ref: refs[ref]})
        if ref not in tips:
            raise ImportRefused(f"cannot import {repository.path!r}: its branch {ref!r} has no commit")
        parents: dict[str, tuple[str, ...] | None] = {}

        def parents_of(object_id: str) -> tuple[str, ...] | None:
            if object_id not in parents:
                commit = objects.commit(object_id)
                parents[object_id] = None if commit is None else commit.parents
            return parents[object_id]

        line = main_line(tips[ref], parents_of)
        tags = {name: tip for name, tip in tips.items() if name.startswith("refs/tags/")}
        work = _Import(objects, clock, max_file_size, _by_commit(tags))
        work.record(session, line, None)
    total = _count(repository, tips[ref])
    done = {*line.commits}
    others = (name for name in refs if name != ref and (name not in tips or not _is_done(name, tips[name], line, done)))
    flattened = max(total - line.size, 0)
    is_exact = work.is_exact and not flattened and not line.is_cut and len(tips[ref]) == 40
    return ImportReport(
        ref.removeprefix("refs/heads/"),
        tips[ref],
        line.size,
        line.size - len(line.commits),
        flattened,
        tuple(work.skipped),
        work.skipped_count,
        tuple(sorted(others)),
        is_exact,
    )


@define(eq=False)
class _Clock:
    """The clock of a session during an import, which shows the time of the commit."""

    at: int = 0

    def __call__(self) -> int:
        return self.at


@contextmanager
def _clock(session: Session) -> Iterator[_Clock]:
    before, clock = session._clock, _Clock()
    session._clock = clock
    try:
        yield clock
    finally:
        session._clock = before


@define(eq=False)
class _Import:
    """One import, and what it has seen so far."""

    objects: Objects
    clock: _Clock
    max_file_size: int | None
    tags: dict[str, list[str]]
    is_exact: bool = True
    skipped: list[SkippedEntry] = field(factory=list[SkippedEntry])
    skipped_count: int = 0
    _commit: str = ""
    # The number of bytes of contents since the last checkpoint.
    _size: int = 0
    _changes: Changes = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._changes = Changes(self.objects, self.max_file_size, self._skip)

    def _skip(self, path: str, reason: str) -> None:
        self.is_exact = False
        self.skipped_count += 1
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append(SkippedEntry(self._commit, path, reason))

    def record(self, session: Session, line: Line, tree: str | None) -> None:
        """Record the commits of a line in the session or a fork; `tree` is the tree of the commit before the first."""
        forks: dict[str, Session] = {}
        bases: dict[str, list[str]] = {}
        for merge, side in line.sides.items():
            bases.setdefault(side.base or "", []).append(merge)
        self._fork(session, line, bases.pop(line.base or "", []), forks, tree)
        for object_id in line.commits:
            commit = self._read(object_id)
            self._record(session, commit, tree, forks.pop(object_id, None))
            tree = commit.tree
            for tag in self.tags.pop(object_id, ()) if session._base is None else ():
                session.snapshot(tag)
            if self._size > CHECKPOINT and session._base is None:
                self._size = 0
                session.checkpoint()
            self._fork(session, line, bases.pop(object_id, []), forks, tree)

    def _fork(
        self, session: Session, line: Line, merges: list[str], forks: dict[str, Session], tree: str | None
    ) -> None:
        """Record the lines that branch off here, each in a fork that will be merged later."""
        for merge in merges:
            forks[merge] = session.fork(f"merge-{merge[:12]}-")
            self.record(forks[merge], line.sides[merge], tree)

    def _record(self, session: Session, commit: GitCommit, before: str | None, fork: Session | None) -> None:
        self.clock.at, self._commit = commit.at, commit.object_id
        changes = self._changes.between(before, commit.tree)
        cause = commit.object_id
        with session.transaction(cause=cause):
            first = last = None
            if fork is not None:
                first = last = session.merge(fork, cause=cause, on_conflict="theirs").seq
                fork.close()
                changes |= self._changes.between(self._read(commit.parents[1]).tree, commit.tree)
            elif len(commit.parents) > 1:
                self.is_exact = False
            start = session.seq
            tree = session[FileTree].latest() or FileTree()
            for event in self._changes.events(tree, changes, commit.at):
                session.dispatch(event, cause=cause)
                self._size += len(event.content) if isinstance(event, FileWritten) else 0
            if session.seq > start:
                first, last = start + 1, session.seq
            self.is_exact = self.is_exact and first is not None and commit.can_be_written
            session.dispatch(call_of(commit, first, last), cause=cause)

    def _read(self, object_id: str) -> GitCommit:
        commit = self.objects.commit(object_id)
        if commit is None:
            raise ImportRefused(f"cannot import {self.objects.git_dir!r}: its commit {object_id} is missing")
        return commit


def _git_dir(folder: Path) -> str:
    for place in (folder, folder / ".git"):
        if (place / "objects").is_dir() and (place / "HEAD").exists():
            return str(place)
    if (folder / ".git").is_file():
        # This file could name any directory, so it is not followed.
        raise ImportRefused(
            f"cannot import {str(folder)!r}: it is a work tree whose repository is elsewhere; name that"
        )
    raise ImportRefused(f"cannot import {str(folder)!r}: it is not a git repository; name its folder")


def _refs(repository: ForeignRepository) -> dict[str, str]:
    form = "%(objectname) %(refname)"
    found = repository.run("for-each-ref", f"--format={form}", "refs/heads", "refs/tags")
    rows = (line.partition(" ") for line in found.decode("utf-8", "backslashreplace").splitlines())
    return {name: object_id for object_id, _, name in rows}


def _branch(repository: ForeignRepository, wanted: str | None, refs: dict[str, str]) -> str:
    """Return the ref of the branch."""
    known = [name.removeprefix("refs/heads/") for name in refs if name.startswith("refs/heads/")]
    if wanted is None:
        marked = repository.run("for-each-ref", "--format=%(HEAD)%(refname)", "refs/heads")
        for line in marked.decode("utf-8", "backslashreplace").splitlines():
            if line.startswith("*"):
                return line[1:]
        raise ImportRefused(f"cannot import {repository.path!r}: its HEAD is not on a branch; name one of {known[:10]}")
    if f"refs/heads/{wanted}" not in refs:
        raise ImportRefused(f"cannot import {repository.path!r}: there is no branch {wanted!r}; it has {known[:10]}")
    return f"refs/heads/{wanted}"


def _count(repository: ForeignRepository, tip: str) -> int:
    return int(repository.run("rev-list", "--count", tip))


def _by_commit(tags: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, tip in sorted(tags.items()):
        text = name.removeprefix("refs/tags/")
        plain = unquote(text, errors="surrogateescape")
        # An export writes characters that git does not allow in refs as %XX.
        is_ours = re.search("%[0-9A-F]{2}", text) and plain.isprintable() and ref_part(plain) == text
        found.setdefault(tip, []).append(plain if is_ours else text)
    return found


def _is_done(name: str, tip: str, line: Line, own: set[str]) -> bool:
    """Return whether a ref is in the session: a tag of its own commits, or a branch that was merged."""
    if name.startswith("refs/tags/"):
        return tip in own
    return tip in own or _is_in(line, tip)


def _is_in(line: Line, commit: str) -> bool:
    return any(commit in side.commits or _is_in(side, commit) for side in line.sides.values())
