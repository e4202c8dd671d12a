"""A session as a git repository: one commit for each call or turn, written by `git fast-import`.

Each commit has trailers that name the session and its records. A later export continues from them.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn, cast

from weakfs.class_decorators import define, frozen
from weakfs.errors import WeakfsError
from weakfs.history.commit_graph import Commit, Per, commits_of
from weakfs.history.descriptions import target_of_call, target_of_event
from weakfs.history.git_import.commit_calls import GitCommit, commit_of
from weakfs.history.git_notes import AUTHORSHIP_REF, TRACE_REF, added_lines, authorship_log, trace_record
from weakfs.history.ref_names import ref_part
from weakfs.history.trees import chosen_filesystem
from weakfs.messages import clip, one_line
from weakfs.reducers.tree.leaf import CONTENT, Leaf, blob_digest, content_of, size_of
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.session import Merged, RolledBack, Session
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.sparse import PIECE
from weakfs.snapshots.git import command
from weakfs.snapshots.git.fast_import_commands import changes
from weakfs.tools import ToolCall

COMMITTER = b"weakfs <weakfs@localhost>"
LAST_SECOND = 1 << 40
# The maximum length of a subject line, and of the arguments in a message, in characters.
MAX_SUBJECT = 72
MAX_ARGUMENTS = 2_000
RECORDS, SESSION = "Weakfs-Records", "Weakfs-Session"


class ExportRefused(WeakfsError, ValueError):
    """A session cannot be exported to a repository; the repository is unchanged."""


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

    Raises `ExportRefused` if the branch has other commits, and `ValueError` if there is no such filesystem.
    """
    meant = chosen_filesystem(session, filesystem)
    target = _Repository.at(Path(repository).absolute(), branch)
    old = target.head()
    imported = target.those_there(session)
    known = target.known(session.session_id, imported)
    stream = _Stream(session, target, known, imported)
    try:
        for commit in commits_of(session, meant, per=per, ends={last for _, last in known}):
            stream.add(commit)
        stream.finish()
    finally:
        stream.close()
    head = target.head()
    target.check_out(old, head)
    return ExportReport(str(repository), branch, stream.added, head)


@define
class _Repository:
    """The repository, and the branch to which the session itself is exported."""

    folder: Path
    git_dir: str
    branch: str

    @classmethod
    def at(cls, folder: Path, branch: str) -> _Repository:
        if not re.fullmatch(r"[\w][\w./-]*", branch) or re.search(r"\.\.|//|/\.|\.lock(/|$)|[./]$", branch):
            raise ExportRefused(f"cannot export to the branch {branch!r}: git does not allow that name; give another")
        git_dir = folder if (folder / "objects").is_dir() else folder / ".git"
        if not git_dir.is_dir():
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise ExportRefused(f"cannot export to {str(folder)!r}: it is not empty; name another folder")
            is_bare = folder.suffix == ".git"
            git_dir = folder if is_bare else folder / ".git"
            folder.mkdir(parents=True, exist_ok=True)
            command.run(str(git_dir), "init", "--quiet", "--template=", *(["--bare"] if is_bare else []))
            command.run(str(git_dir), "symbolic-ref", "HEAD", f"refs/heads/{branch}")
        return cls(folder, str(git_dir), branch)

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def head(self) -> str | None:
        return self._object_at(self.ref)

    def has(self, ref: str) -> bool:
        return self._object_at(ref) is not None

    def _object_at(self, ref: str) -> str | None:
        found = command.run(self.git_dir, "for-each-ref", "--format=%(objectname)", ref)
        return found.decode().strip() or None

    def those_there(self, session: Session) -> frozenset[str]:
        """Return the commits that the session has imported and that are in the repository."""
        every = (commit_of(call) for call in session[ToolCall].all())
        wanted = [commit.object_id for commit in every if commit is not None]
        if not wanted:
            return frozenset()
        answers = command.run(self.git_dir, "cat-file", "--batch-check", given="\n".join(wanted).encode() + b"\n")
        rows = (line.split() for line in answers.decode("ascii", "replace").splitlines())
        return frozenset(row[0] for row in rows if len(row) == 3 and row[1] == "commit")

    def known(self, session_id: str, imported: Collection[str]) -> dict[tuple[int, int], str]:
        """Return the commits of earlier exports by their first and last record, without imported ones."""
        old = self.head()
        if old is None:
            return {}
        form = (
            f"%H %(trailers:key={RECORDS},valueonly,separator=%x2C) %(trailers:key={SESSION},valueonly,separator=%x2C)"
        )
        found: dict[tuple[int, int], str] = {}
        # Everything before an imported commit belongs to it.
        asked = "".join(f"{name}\n" for name in (old, *(f"^{one}" for one in sorted(imported))))
        log = command.run(self.git_dir, "log", "--stdin", f"--format={form}", given=asked.encode()).decode(
            "utf-8", "replace"
        )
        for line in log.splitlines():
            name, records, owner = [*line.split(" ", 2), "", ""][:3]
            numbers = re.fullmatch(r"(\d+)-(\d+)", records)
            if numbers is None or owner != _trailer(session_id):
                raise ExportRefused(
                    f"cannot export to the branch {self.branch!r}: its commit {name[:12]} does not belong to session "
                    f"{session_id!r}; give another branch or repository"
                )
            found[int(numbers[1]), int(numbers[2])] = name
        return found

    def check_out(self, old: str | None, head: str | None) -> None:
        """Update a work tree that has the branch checked out, from commit `old` to `head`; local changes are kept."""
        if head in (None, old) or self.git_dir == str(self.folder):
            return
        if command.run(self.git_dir, "rev-parse", "--symbolic-full-name", "HEAD").decode().strip() == self.ref:
            ends = [one for one in (old, head) if one is not None]
            command.run(self.git_dir, f"--work-tree={self.folder}", "read-tree", "-m", "-u", *ends)


class _Stream:
    """One run of `git fast-import`: nothing is visible in the repository before it ends."""

    def __init__(
        self, session: Session, target: _Repository, known: dict[tuple[int, int], str], imported: Collection[str]
    ) -> None:
        self.added = 0
        self._imported = imported
        self._session = session
        self._target = target
        self._known = known
        self._exported = max((last for _, last in known), default=0)
        self._ids: dict[Commit, bytes] = {}
        self._blobs: dict[bytes, bytes] = {}
        self._marks = 0
        self._forks: dict[str, Commit] = {}
        # The notes of the added commits, by ref.
        self._notes: dict[str, list[tuple[bytes, bytes]]] = {AUTHORSHIP_REF: [], TRACE_REF: []}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        self._process = command.start(
            target.git_dir,
            *("fast-import", "--quiet", "--done", "--date-format=raw"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        assert self._process.stdin is not None
        self._out = io.BufferedWriter(cast("io.RawIOBase", self._process.stdin), PIECE)

    def add(self, commit: Commit) -> None:
        """Write a commit, unless an earlier export did."""
        if commit.fork is not None:
            self._forks[commit.fork] = commit
        original = _imported_commit(commit)
        found = self._known.get((commit.first, commit.last))
        if original is not None and original.object_id in self._imported:
            found = original.object_id
        if found is None and commit.last <= self._exported:
            found = self._beginning(commit)
        if found is not None:
            self._ids[commit] = found.encode()
            return
        base = commit.parents[0].tree if commit.parents else EMPTY_TREE
        # The contents come first, because blobs cannot be inside a commit.
        lines = [*changes(base, commit.tree, self._content)]
        name = self._mark()
        self._ids[commit] = name
        parents = [self._ids[parent] for parent in commit.parents]
        if not parents and self._known:
            # The records in between were compacted away.
            parents, lines = [next(iter(self._known.values())).encode()], [b"deleteall\n", *lines]
        ref = self._target.ref if commit.fork is None else _fork_ref(commit.fork)
        author, committer, message = _description(self._session, commit, original)
        if not parents:
            # Otherwise fast-import would continue an existing branch of that name.
            self._send(b"reset %s\n" % ref.encode())
        self._send(b"commit %s\nmark %s\n" % (ref.encode(), name))
        self._send(b"author %s\ncommitter %s\n" % (author, committer))
        self._send(b"data %d\n%s\n" % (len(message), message))
        for word, parent in zip((b"from", *[b"merge"] * len(parents)), parents, strict=False):
            self._send(b"%s %s\n" % (word, parent))
        for line in lines:
            self._send(line)
        self._send(b"\n")
        if original is None:
            # It is unknown whether a model wrote the lines of an imported commit.
            self._note(commit, name)
        self.added += 1

    def _note(self, commit: Commit, name: bytes) -> None:
        """Write the notes that say which lines the calls of a commit wrote."""
        lines = added_lines(commit)
        if not lines:
            return
        self._send(b"get-mark %s\n" % name)
        self._flush()
        object_id = cast("IO[bytes]", self._process.stdout).readline().decode().strip()
        if not object_id:
            self._fail()
        for ref, write in ((AUTHORSHIP_REF, authorship_log), (TRACE_REF, trace_record)):
            note = write(commit, object_id, self._session.session_id, lines)
            if note is not None:
                self._notes[ref].append((name, note))

    def _beginning(self, commit: Commit) -> str:
        """Return the commit of an earlier export with the files before the first kept record."""
        before = [one for one in self._known if one[1] <= commit.last]
        if commit.records or not before:
            raise ExportRefused(
                f"cannot add to the branch {self._target.branch!r}: records {commit.first} to {commit.last} are not a "
                f"commit there; export with the same options as before, or to another branch"
            )
        return self._known[max(before, key=lambda one: (one[1], -one[0]))]

    def finish(self) -> None:
        """Write branches and tags, and let git make everything visible."""
        for fork, commit in self._forks.items():
            self._reset(_fork_ref(fork), commit)
        lines = sorted((one for one in self._ids if one.fork is None), key=lambda one: one.last)
        for snapshot in self._session.snapshots:
            place = bisect_right(lines, snapshot.seq, key=lambda one: one.last)
            if snapshot.tag is not None and place:
                self._reset(f"refs/tags/{ref_part(snapshot.tag)}", lines[place - 1])
        for ref, notes in self._notes.items():
            self._write_notes(ref, notes)
        self._send(b"done\n")
        self._flush()
        if self._process.wait():
            self._fail()

    def _write_notes(self, ref: str, notes: list[tuple[bytes, bytes]]) -> None:
        if not notes:
            return
        at = max(commit.at for commit in self._ids) // 1_000_000_000
        text = b"Notes of exported calls\n"
        self._send(b"commit %s\ncommitter %s %d +0000\n" % (ref.encode(), COMMITTER, min(max(at, 0), LAST_SECOND)))
        self._send(b"data %d\n%s" % (len(text), text))
        if self._target.has(ref):
            self._send(b"from %s^0\n" % ref.encode())
        for name, note in notes:
            self._send(b"N inline %s\ndata %d\n%s\n" % (name, len(note), note))
        self._send(b"\n")

    def close(self) -> None:
        """Stop git; without `finish`, nothing is added."""
        self._process.kill()
        with suppress(OSError):
            self._out.close()
        cast("IO[bytes]", self._process.stdout).close()
        self._process.wait()
        self._errors.close()

    def _reset(self, ref: str, commit: Commit) -> None:
        self._send(b"reset %s\nfrom %s\n\n" % (ref.encode(), self._ids[commit]))

    def _content(self, leaf: Leaf) -> bytes:
        """Return the mark of a file's contents, and write them if they are new."""
        digest = blob_digest(leaf)
        mark = self._blobs.get(digest)
        if mark is None:
            mark = self._blobs[digest] = self._mark()
            self._send(b"blob\nmark %s\ndata %d\n" % (mark, size_of(leaf)))
            content = leaf[CONTENT]
            for piece in content.pieces() if type(content) is Stored else (content_of(leaf),):
                self._send(piece)
            self._send(b"\n")
        return mark

    def _mark(self) -> bytes:
        self._marks += 1
        return b":%d" % self._marks

    def _send(self, data: bytes) -> None:
        try:
            self._out.write(data)
        except BrokenPipeError:
            self._fail()

    def _flush(self) -> None:
        try:
            self._out.flush()
        except BrokenPipeError:
            self._fail()

    def _fail(self) -> NoReturn:
        self._process.wait()
        self._errors.seek(0)
        raise command.failure(self._target.git_dir, "fast-import", self._errors.read().split(b"\nfast-import: ")[0])


def _imported_commit(commit: Commit) -> GitCommit | None:
    """Return the commit from which this one was imported; `None` if it was not imported."""
    return commit_of(commit.calls[0].call) if len(commit.calls) == 1 else None


def _description(session: Session, commit: Commit, original: GitCommit | None) -> tuple[bytes, bytes, bytes]:
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
    trailers = [f"Weakfs-Call: {_trailer(call.call.call_id)}" for call in commit.calls]
    trailers += [f"{RECORDS}: {commit.first}-{commit.last}", f"{SESSION}: {_trailer(session.session_id)}"]
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


def _trailer(text: str) -> str:
    return one_line(text).strip()


def _fork_ref(fork: str) -> str:
    return f"refs/heads/forks/{ref_part(fork)}"
