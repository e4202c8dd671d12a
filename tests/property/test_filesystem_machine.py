"""Random programs on files in a session, compared with a filesystem in one plain dictionary.

A step is an operation with valid or invalid arguments, a snapshot, a rollback, a transaction of
other steps that succeeds or fails, a fork that is merged, a save and load, or a compaction. After each step, all
contents, listings and totals are compared, and at the end every record that is still there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]  # untyped in hypothesis
)

from tests.models.merging import merge_plain
from tests.models.plainfs import PlainFilesystem, Refused
from tests.models.programs import FIRST, LIMITS, Operation, Step, operations, programs
from tests.models.trees import Plain, flatten
from tests.sampling import share
from weakfs import MergeConflict, Session, SessionSnapshot
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import FilesystemSnapshot, Limits
from weakfs.reducers import FileTree
from weakfs.session import UnknownSnapshot


class Failure(Exception):
    """What makes a transaction fail."""


def outcome(call: Callable[[], Any]) -> object:
    """Return the result or exception of a call, without its message."""
    try:
        return call()
    except (OSError, ValueError) as error:
        return type(error), getattr(error, "errno", None) or 0


def due(operation: Operation, plain: PlainFilesystem) -> object:
    """Return the result of the model, or its refusal."""
    try:
        return operation.on(plain)
    except Refused as refused:
        return refused


def merge_conflicts(session: Session, fork: Session) -> set[str]:
    """Merge a fork, or return the paths that both sides changed differently."""
    try:
        session.merge(fork)
    except MergeConflict as conflict:
        return set(conflict.paths)
    return set()


def clock_from(start: int) -> Callable[[], int]:
    ticks = count(start)
    return lambda: next(ticks)


def contents(fs: InMemoryFilesystem) -> Plain:
    """Read everything through the methods of a filesystem."""
    found: Plain = {"/": ("d", fs.stat("/").mode)}
    for entry in fs.walk():
        if entry.is_directory:
            found[entry.path] = ("d", fs.stat(entry.path).mode)
        elif entry.is_symlink:
            found[entry.path] = ("l", fs.readlink(entry.path))
        else:
            found[entry.path] = ("f", fs.read_bytes(entry.path).content, fs.stat(entry.path).mode)
    return found


class FilesystemMachine(RuleBasedStateMachine):
    """Two filesystems that must stay the same, and what is remembered of their past."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="weakfs-machine-")
        self.start(Limits())

    @initialize(limits=st.sampled_from(LIMITS), follows=st.booleans())
    def start(self, limits: Limits, follows: bool = False) -> None:
        self.session = Session(session_id="machine", clock=clock_from(1))
        self.fs = InMemoryFilesystem(
            self.session, limits=limits, follow_symlinks="within_root_only" if follows else "deny"
        )
        self.plain = PlainFilesystem(limits=limits, follows=follows)
        self.history: dict[int, Plain] = {0: dict(self.plain.files)}
        self.snapshots: list[tuple[SessionSnapshot, Plain]] = []
        self.moments: list[tuple[FilesystemSnapshot, Plain]] = []
        self.operate(list(FIRST))

    def apply(self, fs: InMemoryFilesystem, plain: PlainFilesystem, operation: Operation) -> None:
        """Perform one operation on both sides: both refuse it for a reason that the model gives, or neither does."""
        operation, before = operation.placed(plain.files), fs.tree()
        got = outcome(lambda: operation.on(fs))
        wanted = due(operation, plain)
        if isinstance(wanted, Refused):
            assert got in wanted.problems, f"{operation}: got {got}, one of {wanted.problems} is due"
            assert fs.tree() is before, f"{operation}: refused, and yet something changed"
        else:
            assert got == wanted, f"{operation}: got {got}, {wanted} is due"

    def remember(self) -> None:
        self.history[self.session.seq] = dict(self.plain.files)

    @rule(some=st.lists(operations(), min_size=1, max_size=6))
    def operate(self, some: list[Operation]) -> None:
        for operation in some:
            self.apply(self.fs, self.plain, operation)
            self.remember()

    @rule(tag=st.sampled_from([None, "tag", "other"]))
    def take_snapshot(self, tag: str | None) -> None:
        self.snapshots.append((self.session.snapshot(tag), dict(self.plain.files)))

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data(), by_id=st.booleans())
    def roll_back(self, data: st.DataObject, by_id: bool) -> None:
        snapshot, files = data.draw(st.sampled_from(self.snapshots))
        self.session.rollback(snapshot.snapshot_id if by_id else snapshot)
        self.plain.files = dict(files)
        self.remember()

    @rule(data=st.data())
    def roll_back_to_a_record(self, data: st.DataObject) -> None:
        seq = data.draw(st.sampled_from(sorted(self.history)))
        self.session.rollback(seq)
        self.plain.files = dict(self.history[seq])
        self.remember()

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def drop_a_snapshot(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, len(self.snapshots) - 1))
        snapshot, _ = self.snapshots.pop(position)
        self.session.drop_snapshot(snapshot)
        with pytest.raises(UnknownSnapshot):
            self.session.rollback(snapshot)

    @rule()
    def take_a_snapshot_of_the_files(self) -> None:
        self.moments.append((self.fs.snapshot(), dict(self.plain.files)))

    @precondition(lambda self: self.moments)
    @rule(data=st.data())
    def restore_the_files(self, data: st.DataObject) -> None:
        moment, files = data.draw(st.sampled_from(self.moments))
        report = self.fs.restore(moment, dry_run=True)
        assert report.changed == 0 or files != self.plain.files
        assert set(report.written) <= files.keys()
        assert self.fs.restore(moment).written == report.written
        self.plain.files = dict(files)
        self.remember()

    @rule(program=programs(), fails=st.booleans())
    def transact(self, program: tuple[Step, ...], fails: bool) -> None:
        outside = self.fs.tree()
        files = dict(self.plain.files)
        try:
            self.run(program, fails)
        except Failure:
            assert self.fs.tree() is outside
            assert self.plain.files == files
        self.remember()

    def run(self, program: tuple[Step, ...], fails: bool) -> None:
        files = dict(self.plain.files)
        try:
            with self.session.transaction(cause="program"):
                for step in program:
                    if isinstance(step, Operation):
                        self.apply(self.fs, self.plain, step)
                    else:
                        inner, inner_fails = step
                        with suppress(Failure):
                            self.run(inner, inner_fails)
                        assert flatten(self.fs.tree()) == self.plain.files
                if fails:
                    raise Failure
        except Failure:
            self.plain.files = files
            raise

    @rule(ours=st.lists(operations(), max_size=4), theirs=st.lists(operations(), max_size=4), again=st.booleans())
    def fork_and_merge(self, ours: list[Operation], theirs: list[Operation], again: bool) -> None:
        fork = self.session.fork()
        fork_fs, fork_plain, base = self.fs.bind(fork), self.plain.copied(), dict(self.plain.files)
        for mine, other in ((ours, theirs), (theirs, ours))[: 1 + again]:
            for operation in mine:
                self.apply(self.fs, self.plain, operation)
            self.remember()
            for operation in other:
                self.apply(fork_fs, fork_plain, operation)
            assert flatten(fork_fs.tree()) == fork_plain.files
            assert flatten(self.fs.tree()) == self.plain.files
            wanted = merge_plain(base, self.plain.files, fork_plain.files)
            before = self.fs.tree(), self.session.seq, fork_fs.tree(), fork.seq
            # A move is followed, so paths alone do not determine what becomes of an entry that both sides changed.
            moved = any(operation.name == "move" for operation in (*ours, *theirs))
            conflicts = merge_conflicts(self.session, fork)
            if conflicts:
                assert moved or (not isinstance(wanted, dict) and wanted <= conflicts)
                assert (self.fs.tree(), self.session.seq, fork_fs.tree(), fork.seq) == before
            else:
                merged = flatten(self.fs.tree())
                assert moved or merged == wanted
                self.plain.files, base = merged, dict(fork_plain.files)
            self.remember()

    @rule()
    def save_and_load(self) -> None:
        file = Path(self.folder.name) / "session.json"
        self.session.save(file)
        saved = file.read_bytes()
        self.session = Session.load(file, clock=clock_from(10**6))
        self.session.save(file)
        assert file.read_bytes() == saved
        self.fs = self.fs.bind(self.session)

    @rule(keep=st.integers(0, 30))
    def compact(self, keep: int) -> None:
        self.session.compact(keep=keep)
        gone = self.session.seq - len(self.session.records)
        self.history = {seq: files for seq, files in self.history.items() if seq >= gone}

    @rule()
    def pack_and_unpack(self) -> None:
        before, archive = self.fs.tree(), self.fs.export_bytes()
        # A merge checks no limits.
        if self.plain.is_within_limits():
            self.fs.import_bytes(archive)
            assert self.fs.tree().fingerprint == before.fingerprint
        else:
            with pytest.raises(OSError, match=r"allowed|the limit"):
                self.fs.import_bytes(archive)
            assert self.fs.tree() is before
        self.remember()

    @invariant()
    def both_hold_the_same(self) -> None:
        files = self.plain.files
        assert contents(self.fs) == flatten(self.fs.tree()) == files
        statistics = self.fs.statistics()
        kinds = [entry[0] for path, entry in files.items() if path != "/"]
        assert statistics.directory_count == kinds.count("d")
        assert statistics.file_count == len(kinds) - kinds.count("d")
        assert statistics.total_size == sum(len(entry[1]) for entry in files.values() if len(entry) == 3)

    def teardown(self) -> None:
        for seq, files in self.history.items():
            assert flatten(self.session.at(seq)[FileTree].latest() or FileTree()) == files
        for snapshot, files in self.snapshots:
            assert flatten(self.session.at(snapshot)[FileTree].latest() or FileTree()) == files
        if len(self.session.records) == self.session.seq:
            again = Session(session_id="again")
            again.replay(self.session.records)
            assert flatten(InMemoryFilesystem(again).tree()) == self.plain.files
        self.folder.cleanup()


def test_random_programs_leave_the_same_files_as_a_plain_dictionary() -> None:
    run_state_machine_as_test(
        FilesystemMachine,
        settings=settings(
            max_examples=share(300),
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            print_blob=True,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
