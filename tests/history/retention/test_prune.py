"""Pruning sessions and stores: the limits, the size of each snapshot, and the space that is freed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from weakfs import HostFilesystem, InMemoryFilesystem, Session, SessionError, Toolset
from weakfs.history import PruneReport, Retention, prune
from weakfs.reducers.tree.node import walk
from weakfs.session import UnknownSnapshot
from weakfs.snapshots import Store
from weakfs.tools import ToolCall

KILO = 1_000


def session_of(versions: int, where: str | None = None) -> Session:
    """Return a session with a file of 1,000 bytes rewritten `versions` times, and a snapshot of every second one."""
    session = Session(session_id="mine") if where is None else Session.open(where, "mine")
    fs = InMemoryFilesystem(session)
    for version in range(versions):
        fs.write("/a", f"{version:04}" * 250)
        if version % 2:
            session.snapshot("release" if version == 1 else None)
    return session


def size_on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def names(report: PruneReport) -> list[str]:
    return [one.name for one in report.dropped]


def test_the_oldest_are_dropped_until_the_rest_fits() -> None:
    session = session_of(10)

    report = prune(session, Retention(max_bytes=4 * KILO))

    assert (report.bytes_before, report.bytes_after, report.excess) == (10 * KILO, 4 * KILO, 0)
    # The tagged snapshot holds one version, and the state before the first remaining record another.
    assert report.records == 8
    assert [one.tag for one in session.snapshots] == ["release", None]
    session.rollback("release")
    assert InMemoryFilesystem(session).read("/a").content == "0001" * 250


def test_a_limit_that_tags_exceed_is_reported() -> None:
    session = session_of(10)

    report = prune(session, Retention(max_bytes=KILO))

    assert (report.records, report.bytes_after, report.excess) == (10, 2 * KILO, KILO)
    assert [(one.tag, one.exclusive) for one in report.kept if one.kind == "snapshot"] == [("release", KILO)]


def test_tagged_snapshots_are_dropped_on_request() -> None:
    session = session_of(10)

    report = prune(session, Retention(max_bytes=KILO, keep_tags=False))

    assert (report.bytes_after, report.excess, session.snapshots) == (KILO, 0, ())


def test_a_holder_reports_its_exclusive_and_shared_size() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/same", "s" * 300)
    fs.write("/own", "1" * 50)
    session.snapshot("first")
    fs.write("/own", "2" * 70)
    session.snapshot("second")
    fs.write("/own", "3" * 90)
    report = prune(session, Retention(max_records=0))

    by_name = {one.tag or one.kind: (one.bytes, one.exclusive, one.shared) for one in report.kept}
    assert by_name["files"] == (390, 90, 300)
    assert by_name["first"] == (350, 50, 300)
    assert by_name["second"] == (370, 70, 300)
    assert report.bytes_after == 300 + 50 + 70 + 90


def test_everything_that_is_too_old_is_dropped() -> None:
    now = [0]
    session = Session(clock=lambda: now[0])
    fs = InMemoryFilesystem(session)
    for day in range(5):
        now[0] = day * 86_400 * 10**9
        fs.write("/a", str(day))
        session.snapshot()

    report = prune(session, Retention(max_age=timedelta(days=2)))

    assert report.records == 2
    assert [one.at // (86_400 * 10**9) for one in session.snapshots] == [2, 3, 4]


def test_the_newest_snapshots_stay() -> None:
    session = session_of(10)
    report = prune(session, Retention(max_snapshots=2))
    assert len(names(report)) == 2
    assert [one.tag for one in session.snapshots] == ["release", None, None]


def test_calls_are_dropped_with_their_records_unless_kept() -> None:
    counts = []
    for keep_calls in (False, True):
        session = Session()
        for number in range(5):
            Toolset(session).call("write_file", {"path": "/a", "content": "x" * (2_000 + number)})
        report = prune(session, Retention(max_records=0, keep_calls=keep_calls))
        counts.append((len(session[ToolCall].all()), report.calls))
    assert counts == [(0, 5), (5, 0)]


@pytest.mark.parametrize(
    "options", [{}, {"max_bytes": -1}, {"max_snapshots": -2}, {"max_age": timedelta(days=-1)}], ids=str
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="cannot"):
        Retention(**options)  # type: ignore[arg-type]  # that is what is tested


def test_a_fork_and_a_transaction_are_refused_and_lose_nothing() -> None:
    session = session_of(4)
    with pytest.raises(SessionError, match="prune a fork"):
        prune(session.fork(), Retention(max_records=0))
    with session.transaction(), pytest.raises(SessionError, match="transaction"):
        prune(session, Retention(max_records=0))
    assert len(session.records) == 4


def test_an_open_fork_can_still_be_merged() -> None:
    session = session_of(6)
    fork = session.fork()
    InMemoryFilesystem(fork).write("/b", "in the fork")
    prune(session, Retention(max_records=0, max_snapshots=0))
    session.merge(fork)
    assert InMemoryFilesystem(session).read("/b").content == "in the fork"


@pytest.mark.parametrize("drops_records", [True, False])
def test_pruning_a_stored_session_frees_its_space(tmp_path: Path, drops_records: bool) -> None:
    where = f"folder:{tmp_path}/s"
    session = Session.open(where, "mine")
    fs = InMemoryFilesystem(session)
    for _ in range(10):
        fs.write_bytes("/a", os.urandom(50 * KILO))
        session.snapshot()
    if not drops_records:
        prune(session, Retention(max_records=0))
    before = size_on_disk(tmp_path)
    report = prune(session, Retention(max_records=0, max_snapshots=0) if drops_records else Retention(max_snapshots=0))

    assert report.freed == 9 * 50 * KILO
    assert before - size_on_disk(tmp_path) > 8.5 * 50 * KILO
    session.close()
    with Session.open(where, "mine") as again:
        assert len(InMemoryFilesystem(again).read_bytes("/a").content) == 50 * KILO
        assert prune(again, Retention(max_records=0), preview=True).bytes_before == report.bytes_after


def test_a_preview_of_a_session_opened_elsewhere_sees_what_others_stored(tmp_path: Path) -> None:
    where = f"folder:{tmp_path}/s"
    session = session_of(4, where)
    with Session.open(where, "mine", on_conflict="merge") as other:
        InMemoryFilesystem(session).write("/late", "late")
        report = prune(other, Retention(max_records=1))
        assert (report.records, len(other.records)) == (4, 1)
        assert InMemoryFilesystem(other).read("/late").content == "late"
    session.close()


KILLED = """
import os, signal, sys
from weakfs import Session
from weakfs.history import Retention, prune
from weakfs.session.durable.checkpoints import checkpoints, trim_stream
from weakfs.session.durable.commits import reset
where, place = sys.argv[1:]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if place == "append":
    reset.append = die
elif place == "checkpoint":
    checkpoints.Checkpointing._put_checkpoint = die
else:
    trim_stream.trim = die
prune(Session.open(where, "mine"), Retention(max_records=1, max_snapshots=1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "sqlite"])
@pytest.mark.parametrize(("place", "is_done"), [("append", False), ("checkpoint", True), ("trim", True)])
def test_a_killed_pruning_is_complete_or_absent(tmp_path: Path, kind: str, place: str, is_done: bool) -> None:
    where = f"folder:{tmp_path}/s" if kind == "folder" else f"sqlite:{tmp_path}/s.db"
    session_of(6, where).close()

    killed = subprocess.run([sys.executable, "-c", KILLED, where, place], check=False)

    assert killed.returncode == -signal.SIGKILL
    with Session.open(where, "mine") as session:
        assert (len(session.records), len(session.snapshots)) == ((1, 2) if is_done else (6, 3))
        prune(session, Retention(max_records=1, max_snapshots=1))
        assert (len(session.records), len(session.snapshots)) == (1, 2)
        assert InMemoryFilesystem(session).read("/a").content == "0005" * 250
        session.rollback("release")


def snapshots_in(root: Path, store: Path, kind: str = "tree") -> HostFilesystem:
    root.mkdir()
    fs = HostFilesystem(root, session=Session(session_id="host"), store=store, snapshots=kind)  # type: ignore[arg-type]
    fs.write("/same", "s" * 400)
    for number in range(6):
        fs.write_bytes("/own", bytes([65 + number]) * 1_000)
        fs.snapshot("release" if number == 1 else None)
    return fs


@pytest.mark.parametrize("kind", ["tree", "tar"])
def test_the_snapshots_of_a_directory_are_pruned_and_the_rest_restores(tmp_path: Path, kind: str) -> None:
    snapshots_in(tmp_path / "root", tmp_path / "store", kind)
    store = Store(tmp_path / "store")
    preview = prune(store, Retention(max_snapshots=2), preview=True)
    assert len(store.list()) == 6

    report = prune(store, Retention(max_snapshots=2))

    assert (report.dropped, report.kept, report.freed) == (preview.dropped, preview.kept, preview.freed)
    assert report.freed >= sum(one.exclusive for one in report.dropped) > 3_000
    assert [one.tag for one in store.list()] == ["release", None, None]
    fs = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    for stored, letter in zip(store.list(), b"BEF", strict=True):
        fs.restore(_snapshot(fs, stored.snapshot_id), foreign=True)
        assert (tmp_path / "root/own").read_bytes() == bytes([letter]) * 1_000
        assert (tmp_path / "root/same").read_text() == "s" * 400


def _snapshot(fs: HostFilesystem, snapshot_id: str):  # type: ignore[no-untyped-def]
    from weakfs.cli.directories import snapshot_of

    return snapshot_of(fs, fs.store.get(snapshot_id))


def test_a_store_is_pruned_to_a_size(tmp_path: Path) -> None:
    snapshots_in(tmp_path / "root", tmp_path / "store")
    store = Store(tmp_path / "store")
    report = prune(store, Retention(max_bytes=4_000))
    assert report.bytes_after <= 4_000 < report.bytes_before
    assert report.excess == 0
    assert store.list()[0].tag == "release"
    assert prune(store, Retention(max_bytes=10)).excess > 0
    assert [one.tag for one in store.list()] == ["release"]


def test_a_snapshot_that_the_session_can_roll_back_to_stays(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    session = Session(session_id="host")
    fs = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    fs.write("/a", "one")
    session.snapshot("mine")
    session.snapshot()
    fs.write("/a", "two")
    fs.snapshot()

    report = prune(fs, Retention(max_snapshots=0, keep_tags=False))

    assert len(report.dropped) == 1
    session.rollback("mine")
    assert (tmp_path / "root/a").read_text() == "one"


def test_a_store_has_no_records_to_limit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="records"):
        prune(Store(tmp_path / "store"), Retention(max_records=1))


def test_git_snapshots_are_pruned(tmp_path: Path) -> None:
    snapshots_in(tmp_path / "root", tmp_path / "store", "git")
    store = Store(tmp_path / "store")
    report = prune(store, Retention(max_snapshots=1))
    assert len(report.dropped) == 4
    assert report.freed > 0
    assert [one.tag for one in store.list()] == ["release", None]


def test_a_dropped_record_is_refused_by_its_number() -> None:
    session = session_of(6)
    prune(session, Retention(max_records=2))
    with pytest.raises(UnknownSnapshot, match="4 to 6"):
        session.at(2)


def test_directories_that_share_a_store_keep_their_own_snapshots(tmp_path: Path) -> None:
    snapshots_in(tmp_path / "one", tmp_path / "store")
    (tmp_path / "two").mkdir()
    other = HostFilesystem(tmp_path / "two", session=Session(session_id="other"), store=tmp_path / "store")
    other.write("/a", "a")
    kept = other.snapshot()
    one = HostFilesystem(tmp_path / "one", session=Session(session_id="again"), store=tmp_path / "store")

    report = prune(one, Retention(max_snapshots=0, keep_tags=False))

    assert len(report.dropped) == 6
    other.restore(kept)


KILLED_STORE = """
import os, signal, sys
from weakfs.history import Retention, prune
from weakfs.snapshots import Store
from weakfs.snapshots.store.catalogue import Catalogue
from weakfs.snapshots.store.compaction import Compaction
path, place = sys.argv[1:]
drop, dropped = Catalogue.drop, []
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
def drop_two(self, snapshot_id):
    drop(self, snapshot_id)
    dropped.append(snapshot_id)
    if len(dropped) == 2:
        die()
if place == "drop":
    Catalogue.drop = drop_two
else:
    Compaction._rewrite = die
prune(Store(path), Retention(max_snapshots=1))
"""


@pytest.mark.parametrize("place", ["drop", "compact"])
def test_a_store_whose_pruning_was_killed_is_intact_and_can_be_pruned_again(tmp_path: Path, place: str) -> None:
    snapshots_in(tmp_path / "root", tmp_path / "store")

    killed = subprocess.run([sys.executable, "-c", KILLED_STORE, str(tmp_path / "store"), place], check=False)

    assert killed.returncode == -signal.SIGKILL
    store = Store(tmp_path / "store")
    for stored in store.list():
        assert {path for path, _ in walk(store.tree(stored))} >= {"/own", "/same"}
    report = prune(store, Retention(max_snapshots=1))
    assert [one.tag for one in store.list()] == ["release", None]
    assert prune(store, Retention(max_snapshots=1)).freed == 0 < report.freed
    fs = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    for stored, letter in zip(store.list(), b"BF", strict=True):
        fs.restore(_snapshot(fs, stored.snapshot_id), foreign=True)
        assert (tmp_path / "root/own").read_bytes() == bytes([letter]) * 1_000


@settings(max_examples=share(15))
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 5), max_size=3), st.sampled_from([None, "tag"])
        ),
        min_size=1,
        max_size=6,
    ),
    st.builds(Retention, max_bytes=st.integers(0, 6_000), max_snapshots=st.none() | st.integers(0, 5)),
)
def test_every_snapshot_that_a_store_keeps_restores(
    tmp_path_factory: pytest.TempPathFactory, states: list[tuple[dict[str, int], str | None]], limits: Retention
) -> None:
    folder = tmp_path_factory.mktemp("pruned")
    (folder / "root").mkdir()
    fs = HostFilesystem(folder / "root", session=Session(session_id="host"), store=folder / "store")
    taken = {}
    for files, tag in states:
        for name in "abc":
            if name in files:
                fs.write(f"/{name}", f"{files[name]}" * 700)
            elif fs.exists(f"/{name}"):
                fs.delete(f"/{name}")
        snapshot = fs.snapshot(tag)
        taken[snapshot.snapshot_id] = (snapshot, {name: f"{number}" * 700 for name, number in files.items()})
    preview = prune(fs, limits, preview=True)

    report = prune(fs, limits)

    assert (report.dropped, report.kept, report.freed) == (preview.dropped, preview.kept, preview.freed)
    assert not report.excess or all(one.tag is not None for one in fs.store.list())
    assert sum(one.exclusive for one in report.kept) <= report.bytes_after
    for stored in fs.store.list():
        snapshot, texts = taken[stored.snapshot_id]
        fs.restore(snapshot)
        assert {path.name: path.read_text() for path in (folder / "root").iterdir()} == texts
    assert {one.name for one in report.dropped} == taken.keys() - {one.snapshot_id for one in fs.store.list()}
