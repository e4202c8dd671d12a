"""A session with files and a fork of it, both changed, and the result of their merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from weakfs import InMemoryFilesystem, MergeConflict, Session
from weakfs.filesystem import Filesystem
from weakfs.session import ConflictEntry, OnConflict
from weakfs.session.files.session_file import load_session
from weakfs.session.replay.verification import Rebuilding

Change = Callable[[Filesystem], object]

LINES = "".join(f"line {number}\n" for number in range(1, 10))
EDITED = LINES.replace("line 2\n", "LINE TWO\n")


@frozen
class TwoSides:
    """A session and its fork, each with its files."""

    session: Session
    fork: Session
    ours: InMemoryFilesystem
    theirs: Filesystem

    def merged(self, on_conflict: OnConflict = "raise") -> dict[str, str]:
        """Merge, and return the texts by path."""
        self.session.merge(self.fork, on_conflict=on_conflict)
        return texts(self.ours)

    def conflicts(self) -> tuple[ConflictEntry, ...]:
        """Return the conflicts of a merge, which must change nothing."""
        before = (self.ours.tree(), self.session.seq, self.theirs.tree(), self.fork.seq)
        try:
            self.session.merge(self.fork)
        except MergeConflict as conflict:
            assert (self.ours.tree(), self.session.seq, self.theirs.tree(), self.fork.seq) == before
            return conflict.conflicts
        raise AssertionError("the merge found no conflict")


def two_sides(files: Mapping[str, str], ours: Change, theirs: Change, *, session_id: str = "s") -> TwoSides:
    """Make a session with files, fork it, and change both sides."""
    session = Session(session_id=session_id, clock=lambda: 0)
    own = InMemoryFilesystem(session)
    for path, content in files.items():
        own.write(path, content)
    fork = session.fork()
    other = own.bind(fork)
    with session.transaction(cause="our call"):
        ours(own)
    with fork.transaction(cause="their call"):
        theirs(other)
    return TwoSides(session, fork, own, other)


def texts(fs: Filesystem) -> dict[str, str]:
    """Return the text of every file by path."""
    return {entry.path: fs.read(entry.path).content for entry in fs.walk() if not entry.is_directory}


def move(*paths: str) -> Change:
    """Return a change that moves entries: `source destination` each."""

    def change(fs: Filesystem) -> None:
        for pair in paths:
            fs.move(*pair.split(" "))

    return change


def write(path: str, content: str) -> Change:
    """Return a change that writes a file."""
    return lambda fs: fs.write(path, content)


def delete(path: str) -> Change:
    """Return a change that deletes an entry with everything in it."""
    return lambda fs: fs.delete(path, recursive=True)


def also(*changes: Change) -> Change:
    """Return all changes as one."""

    def change(fs: Filesystem) -> None:
        for each in changes:
            each(fs)

    return change


def check_history(session: Session, path: Path) -> None:
    """Save a session, and check that its records lead to the states in the file."""
    session.save(path)
    again = Session(session_id="x")
    load_session(again, path)
    rules, line, own = again._parts()
    wrong = [
        moment
        for moment in Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments()
        if not moment.is_same
    ]
    assert not wrong, wrong
