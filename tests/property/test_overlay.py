"""A layer over random files and random operations: it shows what a dictionary holds, with the times of memory."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.plainfs import PlainFilesystem, Refused
from tests.models.programs import FIRST, Operation, operations
from tests.models.trees import flatten
from tests.sampling import share
from weakfs import MergeConflict, Session
from weakfs.backends import InMemoryFilesystem, OverlayFilesystem
from weakfs.filesystem import FileStat


class Clock:
    """Gives every reading within one step the same time."""

    def __init__(self) -> None:
        self.now = 1000

    def __call__(self) -> int:
        return self.now


def outcome(operation: Operation, fs: object) -> object:
    try:
        return operation.on(cast(Any, fs))
    except Refused:
        return "refused"
    except (OSError, ValueError):
        return "refused"


def portrait(fs: InMemoryFilesystem | OverlayFilesystem) -> dict[str, FileStat]:
    return {"/": fs.stat("/"), **{entry.path: fs.stat(entry.path) for entry in fs.walk()}}


class Both:
    """A layer over files, and memory and a dictionary that hold what it should show."""

    def __init__(self, below: list[Operation]) -> None:
        self.clock = Clock()
        self.model = PlainFilesystem()
        self.memory = InMemoryFilesystem(Session(clock=self.clock))
        self.lower = InMemoryFilesystem(Session(clock=self.clock))
        for operation in (*FIRST, *below):
            self.clock.now += 1
            placed = operation.placed(self.model.files)
            assert outcome(placed, self.model) == outcome(placed, self.memory) == outcome(placed, self.lower)
        self.untouched = self.lower.tree()
        self.layer = OverlayFilesystem(self.lower, Session(clock=self.clock))

    def step(self, operation: Operation) -> None:
        self.clock.now += 1
        placed = operation.placed(self.model.files)
        assert outcome(placed, self.model) == outcome(placed, self.layer)
        outcome(placed, self.memory)

    def check(self) -> None:
        layer, memory = self.layer, self.memory
        assert flatten(layer.tree()) == self.model.files
        assert layer.tree().fingerprint == memory.tree().fingerprint
        assert layer.statistics() == memory.statistics()
        assert portrait(layer) == portrait(memory)
        assert layer.export_bytes() == memory.export_bytes()


steps = st.lists(operations(), min_size=1, max_size=12)


@settings(max_examples=share(150), deadline=None)
@given(steps, steps)
def test_a_layer_shows_what_memory_would_hold(below: list[Operation], above: list[Operation]) -> None:
    both = Both(below)
    for operation in above:
        both.step(operation)
        both.check()
    assert both.lower.tree() is both.untouched


@settings(max_examples=share(100), deadline=None)
@given(steps, steps, steps)
def test_a_commit_makes_the_lower_files_equal_to_the_layer(
    below: list[Operation], above: list[Operation], more: list[Operation]
) -> None:
    both = Both(below)
    for operation in above:
        both.step(operation)
    shown = both.layer.tree().fingerprint
    both.layer.commit()
    assert both.lower.tree().fingerprint == both.layer.tree().fingerprint == shown
    assert not both.layer.diff()
    for operation in more:
        both.step(operation)
    assert both.layer.tree().fingerprint == both.memory.tree().fingerprint


@settings(max_examples=share(100), deadline=None)
@given(steps, steps, steps)
def test_snapshots_and_discards_of_a_layer(
    below: list[Operation], above: list[Operation], more: list[Operation]
) -> None:
    both = Both(below)
    for operation in above:
        both.step(operation)
    kept, moment, seq = both.layer.snapshot(), portrait(both.layer), both.layer.snapshot()
    session = both.layer.session
    assert session is not None
    before = session.seq
    for operation in more:
        both.step(operation)
    after = portrait(both.layer)
    both.layer.restore(kept)
    assert portrait(both.layer) == moment
    session.rollback(session.seq - 2)
    assert portrait(both.layer) == after
    both.layer.discard()
    assert both.layer.tree() is both.untouched
    session.rollback(before)
    assert portrait(both.layer) == moment
    assert seq.tree is kept.tree


@settings(max_examples=share(150), deadline=None)
@given(steps, steps, steps)
def test_forks_of_a_layer_merge_like_forks_in_memory_or_conflict(
    below: list[Operation], ours: list[Operation], theirs: list[Operation]
) -> None:
    both = Both(below)
    merged: list[str | None] = []
    for whole in (both.layer, both.memory):
        session = whole.session
        assert session is not None
        forks = session.fork(), session.fork()
        for fork, program in zip(forks, (ours, theirs), strict=True):
            bound = whole.bind(fork)
            for operation in program:
                outcome(operation.placed(flatten(bound.tree())), bound)
        try:
            for fork in forks:
                session.merge(fork)
            merged.append(whole.tree().fingerprint)
        except MergeConflict:
            merged.append(None)
    layer, memory = merged
    # A layer does not know the entries that it merely hides: it may report more conflicts, but never merges wrongly.
    assert layer is None or layer == memory
