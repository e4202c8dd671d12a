"""A session's history as a graph of commits: one for each call or turn, with branches for forks, and merges."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from typing import Literal

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.history.calls import NumberedCall, calls_of
from weakfs.history.record_states import Step, fork_points, steps_of
from weakfs.history.trees import Trees
from weakfs.reducers import FileTree
from weakfs.reducers.tree.diff import equal
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.session import Merged, Record, Session, SessionView

Per = Literal["call", "turn"]


@frozen(eq=False)
class Commit:
    """One state of the files, after records `first` to `last`, which `calls` made.

    `parents` are the commits before it. `fork` is the fork that made the records, `None` for the session itself. `tree`
    has `parents[0]` as its base.
    """

    first: int
    last: int
    at: int
    tree: FileTree
    parents: tuple[Commit, ...]
    fork: str | None
    records: tuple[Record, ...]
    calls: tuple[NumberedCall, ...]


@define(eq=False)
class _Line:
    """The commits of the session, or of one merge, whose records are `start` to `end`; they follow `origin`."""

    fork: str | None
    start: int
    end: float
    origin: Commit | None
    commits: list[Commit] = field(factory=list[Commit])

    @property
    def tip(self) -> Commit | None:
        return self.commits[-1] if self.commits else self.origin

    def commit_at(self, seq: int) -> Commit | None:
        """Return the commit with the files after a record; `None` if there was no commit yet."""
        place = bisect_right(self.commits, seq, key=lambda commit: commit.last)
        return self.commits[place - 1] if place else self.origin


@define(eq=False)
class _Work:
    """Consecutive records that changed files and become one commit.

    If they begin with a merge, `merged` is the fork's line, and `last` is the last record of that line.
    """

    group: object
    last: int = 0
    merged: _Line | None = None
    records: list[Record] = field(factory=list[Record])
    calls: dict[int, NumberedCall] = field(factory=dict[int, NumberedCall])
    after: SessionView | None = None


def commits_of(
    session: Session, filesystem: str | None = None, *, per: Per = "call", ends: Collection[int] = ()
) -> Iterator[Commit]:
    """Yield the commits of a session, parents first; only those whose files differ from their parent's.

    `filesystem` is an external filesystem, `None` for the session's own files. With `per="turn"`, consecutive calls of
    one caller become one commit. A commit ends at each record in `ends`, and at each snapshot.
    """
    return _Graph(session, filesystem, per, frozenset(ends)).walk()


class _Graph:
    def __init__(self, session: Session, filesystem: str | None, per: Per, ends: frozenset[int]) -> None:
        self._session = session
        self._filesystem = filesystem
        self._per = per
        self._ends = ends | {snapshot.seq for snapshot in session.snapshots} | set(fork_points(session))
        self._trees = Trees(session)
        self._calls = {seq: call for call in calls_of(session) for seq in call.records}
        self._by_id = {call.call.call_id: call for call in self._calls.values()}
        self._line = _Line(None, 0, float("inf"), None)
        self._lines = [self._line]
        # The merges whose fork's records are being read, each with the line that the fork is merged into.
        self._open: list[tuple[_Line, Step]] = []
        self._work: _Work | None = None

    def walk(self) -> Iterator[Commit]:
        first = True
        for step in steps_of(self._session):
            if first and step.before is not None:
                yield from self._beginning(step)
                first = False
            if step.base is not None:
                yield from self._finish()
                self._open.append((self._line, step))
                assert isinstance(step.record.event, Merged)
                self._enter(step.record.event, step.record.seq, step.base)
            else:
                yield from self._add(step)
            while self._open and self._line.end == step.record.seq:
                yield from self._finish()
                self._leave()
                if step.record.seq in self._ends:
                    yield from self._finish()
        yield from self._finish()

    def _beginning(self, step: Step) -> Iterator[Commit]:
        """Yield a commit with the files before the first record, because older records may have been compacted away."""
        assert step.before is not None
        tree = self._trees.at(step.before, self._filesystem)
        if tree.node_count:
            seq = step.record.seq - 1
            yield self._committed(Commit(seq, seq, step.record.at, tree, (), None, (), ()))

    def _enter(self, event: Merged, seq: int, base: int) -> None:
        # The fork branched off from its own records that were merged earlier, or from the line around it.
        own = (one for one in self._lines if one.fork == event.fork and one.start <= base <= one.end)
        around = (one for one in (self._line, *(line for line, _ in reversed(self._open))) if one.start <= base)
        left = next(own, None) or next(around)
        # A transaction that was merged with concurrent changes has the name of the session or fork to which it belongs.
        fork = None if event.fork == self._session.session_id else event.fork
        self._line = _Line(fork, seq + 1, seq + event.count, left.commit_at(base))
        self._lines.append(self._line)

    def _leave(self) -> None:
        """Begin a commit with a merge; later changes of the same call belong to it."""
        side, (self._line, merge) = self._line, self._open.pop()
        if merge.after is None:
            return
        record = merge.record
        call = self._calls.get(record.seq)
        if call is None and record.cause is not None:
            call = self._by_id.get(record.cause)
        group = ("merge", record.seq) if record.cause is None else self._group(record, None)
        self._work = _Work(
            group, int(side.end), side, [record], {} if call is None else {call.number: call}, merge.after
        )

    def _add(self, step: Step) -> Iterator[Commit]:
        record = step.record
        if step.before is None or step.after is None:
            return
        if self._trees.changed(step.before, step.after):
            call = self._calls.get(record.seq)
            group = self._group(record, call)
            if self._work is not None and self._work.merged is not None and record.cause is not None:
                group = ("cause", record.cause)
            if self._work is None or self._work.group != group:
                yield from self._finish()
                self._work = _Work(group)
            self._work.records.append(record)
            self._work.after = step.after
            if call is not None:
                self._work.calls[call.number] = call
        if record.seq in self._ends:
            yield from self._finish()

    def _group(self, record: Record, call: NumberedCall | None) -> object:
        """Return a key that the records of one commit have in common."""
        if call is None and record.cause is None:
            return record.seq
        if self._per == "turn" and call is not None:
            return ("caller", call.call.caller)
        return ("cause", record.cause)

    def _finish(self) -> Iterator[Commit]:
        work, self._work = self._work, None
        if work is None or work.after is None:
            return
        tree = self._trees.at(work.after, self._filesystem)
        tip = self._line.tip
        side = work.merged if work.merged is not None and work.merged.commits else None
        if side is not None or not _is_same(tree, tip):
            first, last = work.records[0], work.records[-1]
            parents = tuple(head for head in (tip, None if side is None else side.tip) if head is not None)
            calls = tuple(work.calls.values())
            end = max(last.seq, work.last)
            yield self._committed(
                Commit(first.seq, end, last.at, tree, parents, self._line.fork, tuple(work.records), calls)
            )

    def _committed(self, commit: Commit) -> Commit:
        self._line.commits.append(commit)
        return commit


def _is_same(tree: FileTree, commit: Commit | None) -> bool:
    return equal(tree, EMPTY_TREE if commit is None else commit.tree)
