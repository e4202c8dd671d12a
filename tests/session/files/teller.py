"""A session that performs a script of acts; with `reloads`, it is saved and loaded at each act `reload`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field
from hypothesis import strategies as st

from fixtures.sessions.kinds import Counted, Note, Person, Step, Total, registry
from fixtures.sessions.story import Clock, opened, prepare
from weakfs import InMemoryFilesystem, MergeConflict, Session, SessionError
from weakfs.filesystem import FilesystemSnapshot
from weakfs.reducers.events import TreeMounted
from weakfs.reducers.tree.leaf import file, link
from weakfs.reducers.tree.node import tree_of
from weakfs.session import UnknownSnapshot

# The name of a method of `Teller`, and its arguments.
Act = tuple[Any, ...]


@define
class Teller:
    """A session at work, with the clock that it keeps when it is loaded."""

    path: Path
    reloads: bool
    clock: Clock = field(factory=Clock)
    session: Session = field(init=False)
    kept: FilesystemSnapshot | None = None

    def __attrs_post_init__(self) -> None:
        self.session = opened(self.clock)

    def do(self, acts: Sequence[Act]) -> None:
        """Perform one act after another; acts that the session refuses are skipped."""
        for name, *arguments in acts:
            if name == "reload":
                self.reload()
                continue
            with suppress(OSError, ValueError, UnknownSnapshot):
                getattr(self, name)(*arguments)

    @property
    def files(self) -> InMemoryFilesystem:
        """The session's files."""
        return InMemoryFilesystem(self.session)

    def file(self, method: str, *arguments: Any) -> None:
        """Call a method of the filesystem."""
        getattr(self.files, method)(*arguments)

    def append(self, path: str, data: bytes) -> None:
        """Add to a file."""
        self.files.write_bytes(path, data, mode="append")

    def delete(self, path: str) -> None:
        """Delete whatever is at a path."""
        self.files.delete(path, recursive=True)

    def mount(self, path: str, name: str, data: bytes) -> None:
        """Put a tree of two directories, one and the same, at a path."""
        inner = tree_of({name: file(data, at=1), "link": link(name, at=2)}, mode=0o711, modified_at=3)
        tree = tree_of({"one": inner, "two": inner})
        self.session.dispatch(TreeMounted(path, "outside", tree, ((name, "odd"),), self.clock()))

    def keep(self) -> None:
        """Take a snapshot of the files."""
        self.kept = self.files.snapshot("kept")

    def restore(self) -> None:
        """Restore the files from this snapshot."""
        if self.kept is not None:
            self.files.restore(self.kept, foreign=True)

    def count(self, by: int, cause: str) -> None:
        """Dispatch an event that changes two slices; it is refused if the total was cleared."""
        with suppress(SessionError):
            self.session.dispatch(Counted(by), cause=cause)

    def note(self, text: str, data: bytes) -> None:
        """Dispatch an event that is a value of a slice."""
        self.session.dispatch(Note(text, Person(text, badge=data), extra=(data, [text])))

    def total(self, value: int) -> None:
        """Seed a slice."""
        self.session[Total].seed(Total(value, (value / 3,)))

    def step(self, text: str, data: bytes) -> None:
        """Append to a LOG slice by hand."""
        self.session[Step].append(Step(text, output=data))

    def person(self, text: str) -> None:
        """Append to a STATE slice by hand."""
        self.session[Person].append(Person(text))

    def clear(self, kind: type) -> None:
        """Empty a slice."""
        self.session[kind].clear()

    def snapshot(self, tag: str | None) -> None:
        """Take a snapshot."""
        self.session.snapshot(tag)

    def drop(self, tag: str) -> None:
        """Drop a snapshot."""
        self.session.drop_snapshot(tag)

    def rollback(self, tag: str) -> None:
        """Go back to a snapshot."""
        self.session.rollback(tag)

    def back(self, share: float) -> None:
        """Roll back to any record that is left."""
        first = self.session.seq - len(self.session.records)
        self.session.rollback(first + round(share * len(self.session.records)))

    def compact(self, keep: int) -> None:
        """Drop old records."""
        self.session.compact(keep=keep)

    def fail(self, acts: Sequence[Act]) -> None:
        """Do something in a transaction that fails."""
        with suppress(KeyError), self.session.transaction(cause="fails"):
            self.do(acts)
            raise KeyError

    def hold(self, acts: Sequence[Act]) -> None:
        """Do something in a transaction that succeeds."""
        with self.session.transaction(cause="holds"):
            self.do(acts)

    def merge(self, ours: Sequence[Act], theirs: Sequence[Act]) -> None:
        """Do something here and something on a fork, and merge them."""
        trunk = self.session
        fork = trunk.fork("side")
        self.do(ours)
        self.session = fork
        self.do(theirs)
        self.session = trunk
        with suppress(MergeConflict):
            trunk.merge(fork, cause="merge")

    def reload(self) -> None:
        """Save and load, if this session does."""
        if self.reloads:
            self.session.save(self.path)
            self.session = Session.load(self.path, registry=registry(), clock=self.clock)
            prepare(self.session)


NAMES = st.sampled_from(["a", "b", "c.txt", "\n", "\U0001f642", "\uf75c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
DATA = st.binary(max_size=6) | st.sampled_from([b"x" * 70, b"x" * 70 + b"y", b"x" * 70 + b"yz\xff", b"\xfe" * 80])
TAGS = st.sampled_from(["one", "two"])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=4)
SMALL = st.integers(-9, 9)


def act(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Act]:
    """Return a strategy for acts of one name."""
    return st.tuples(st.just(name), *arguments)


CHANGES: st.SearchStrategy[Act] = st.one_of(
    act("file", st.just("write_bytes"), PATHS, DATA),
    act("file", st.just("splice"), PATHS, st.just([(1, 2, b"-")])),
    act("file", st.just("mkdir"), PATHS),
    act("file", st.sampled_from(["move", "copy", "symlink"]), PATHS, PATHS),
    act("file", st.just("chmod"), PATHS, st.integers(0, 0o7777)),
    act("append", PATHS, DATA),
    act("delete", PATHS),
    act("mount", PATHS, NAMES, DATA),
    act("keep"),
    act("restore"),
    act("count", SMALL, TEXTS),
    act("note", TEXTS, DATA),
    act("total", SMALL),
    act("step", TEXTS, DATA),
    act("person", TEXTS),
    act("clear", st.sampled_from([Total, Person, Step, Note])),
)
WITHIN = st.one_of(
    CHANGES,
    CHANGES,
    act("snapshot", TAGS | st.none()),
    act("rollback", TAGS),
    act("back", st.floats(0, 1)),
)
FEW = st.lists(WITHIN, max_size=4)
INNER = st.lists(st.one_of(WITHIN, WITHIN, act("fail", FEW), act("hold", FEW), act("merge", FEW, FEW)), max_size=5)
ACTS: st.SearchStrategy[Act] = st.one_of(
    CHANGES,
    CHANGES,
    CHANGES,
    act("snapshot", TAGS | st.none()),
    act("drop", TAGS),
    act("rollback", TAGS),
    act("back", st.floats(0, 1)),
    act("reload"),
    act("fail", INNER),
    act("hold", INNER),
    act("merge", INNER, INNER),
    act("compact", st.integers(0, 12)),
)
