"""Commits, notes, branches and tags as the input of `git fast-import`."""

from __future__ import annotations

import io
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Collection
from contextlib import suppress
from typing import IO, NoReturn, cast

from weakfs.history.commit_graph import Commit
from weakfs.history.git_export.commit_text import COMMITTER, LAST_SECOND, description_of, imported_commit
from weakfs.history.git_export.repository import ExportedRepository, ExportRefused
from weakfs.history.git_notes import AUTHORSHIP_REF, TRACE_REF, added_lines, authorship_log, trace_record
from weakfs.history.ref_names import ref_part
from weakfs.reducers.tree.leaf import CONTENT, Leaf, blob_digest, content_of, size_of
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.session import Session
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.sparse import PIECE
from weakfs.snapshots.git import command
from weakfs.snapshots.git.fast_import_commands import changes


class CommitStream:
    """One run of `git fast-import`: nothing is visible in the repository before it ends."""

    def __init__(
        self, session: Session, target: ExportedRepository, known: dict[tuple[int, int], str], imported: Collection[str]
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
        original = imported_commit(commit)
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
        author, committer, message = description_of(self._session, commit, original)
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


def _fork_ref(fork: str) -> str:
    return f"refs/heads/forks/{ref_part(fork)}"
