"""Replaying sessions that worked on a host directory: they know the same about it, and it is not touched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.host import record
from tests.property.test_host_restores import EXAMPLES, SNAPSHOT_KINDS, Place, a_place, changes
from tests.property.test_host_transactions import Work, seeds
from tests.sampling import share
from weakfs import Session, SessionError, Toolset
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.reducers import ExternalTrees
from weakfs.session.replay.verification import Comparison, Rebuilding


def assert_replayed(session: Session, again: Session) -> None:
    """Compare two sessions at every record and snapshot, and have the past of the first computed again."""
    rules, line, own = session._parts()
    same = Comparison(rules)
    moments: list[int | str] = [*range(line.dropped, session.seq + 1)]
    moments += [snapshot.snapshot_id for snapshot in session.snapshots]
    for moment in moments:
        one, other = session.at(moment), again.at(moment)
        assert same.differing(one._table("state"), other._table("state")) == (), moment
        assert same.differing(one._table("log"), other._table("log")) == (), moment
        assert digests(one[ExternalTrees].latest()) == digests(other[ExternalTrees].latest())
    assert list(again.records) == list(session.records)
    rebuilt = list(Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments())
    assert [one for one in rebuilt if not one.is_same] == []


def digests(known: ExternalTrees | None) -> dict[str, tuple[str, str]]:
    trees = known.trees if known is not None else {}
    return {name: (one.tree.digest, one.tree.fingerprint) for name, one in trees.items()}


@define
class History:
    """A session on a directory to which anything may happen."""

    place: Place
    session: Session
    fs: HostFilesystem
    work: Work = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.work = Work(self.fs, self.fs.snapshot())

    def act(self, random: Random) -> None:
        random.choice(STEPS)(self, random)

    def operate(self, random: Random) -> None:
        self.work.act(random.randrange(1 << 32))

    def disturb(self, random: Random) -> None:
        self.place.change([random.randrange(1 << 32)])

    def snapshot(self, random: Random) -> None:
        self.session.snapshot(random.choice([None, "tag"]))

    def keep_files(self, random: Random) -> None:
        self.work.snapshot = self.fs.snapshot()

    def roll_back(self, random: Random) -> None:
        # Changes by others may be in the way.
        with suppress(SessionError, OSError):
            kept: list[int | str] = [snapshot.snapshot_id for snapshot in self.session.snapshots]
            self.session.rollback(random.choice([*kept, random.randrange(self.session.seq + 1)]))

    def fail(self, random: Random) -> None:
        with suppress(InterruptedError), self.session.transaction(cause="failing"):
            for _ in range(random.randrange(4)):
                self.operate(random)
            if random.random() < 0.7:
                raise InterruptedError

    def call(self, random: Random) -> None:
        toolset = Toolset(self.session, self.fs)
        path = f"/{random.choice('abc')}"
        toolset.call("write_file", {"path": path, "content": str(random.random())})
        toolset.call("edit_file", {"path": path, "old_string": "0.", "new_string": "1."})

    def work_in_memory(self, random: Random) -> None:
        fork = self.session.fork()
        InMemoryFilesystem(fork).write(f"/memory/{random.randrange(9)}", str(random.random()))
        if random.random() < 0.8:
            self.session.merge(fork)


STEPS: tuple[Callable[[History, Random], None], ...] = (
    *(History.operate,) * 6,
    History.disturb,
    History.snapshot,
    History.keep_files,
    History.roll_back,
    History.fail,
    History.call,
    History.work_in_memory,
)


@settings(max_examples=share(EXAMPLES), deadline=None)
@given(first=changes, then=seeds, kind=st.sampled_from(SNAPSHOT_KINDS))
def test_knowledge_of_a_directory_is_replayed_without_touching_it(
    first: list[int], then: list[int], kind: SnapshotKind
) -> None:
    with a_place() as place:
        place.change(first)
        session = Session()
        history = History(place, session, place.open(kind, session))
        for seed in then:
            random = Random(seed)
            for _ in range(3):
                history.act(random)
        before, store = record(place.root), record(place.store)

        assert_replayed(session, session.replayed())

        assert record(place.root) == before
        assert record(place.store) == store
        file = Path(place.root.parent) / "session.json"
        session.save(file)
        loaded = Session.load(file)
        assert_replayed(loaded, loaded.replayed())
        assert record(place.root) == before
