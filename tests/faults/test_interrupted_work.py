"""Long work of a call ends when the call is cancelled or its deadline has passed, and leaves everything as it was."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.backends import HostMount
from weakfs.filesystem import Limits
from weakfs.session import Cancellation, TransactionCancelled
from weakfs.session.interruption import check_interrupted, interruptible, is_interruptible, uninterrupted
from weakfs.snapshots.scan import stat_cache
from weakfs.tools.errors import DeadlineExceeded

MIB = 1 << 20
LARGE = 6 * MIB


class Stop:
    """A check that counts how often it is called, and raises from the `at`-th time on."""

    def __init__(self, at: int | None = None, error: type[Exception] = DeadlineExceeded) -> None:
        self.asked = 0
        self._at, self._error = at, error

    def __call__(self) -> None:
        self.asked += 1
        if self._at is not None and self.asked >= self._at:
            raise self._error("the time of the test is over")


pytestmark = pytest.mark.usefixtures("never_hung")


def fill(root: Path) -> None:
    for directory in ("a", "a/b", "c"):
        (root / directory).mkdir(parents=True)
        for number in range(3):
            (root / directory / f"f{number}").write_text(f"{directory} {number}\n")
    (root / "large").write_bytes((b"x" * 99 + b"\n") * (LARGE // 100))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path / "root")
    return tmp_path / "root"


def files_of(root: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for path in sorted(root.rglob("*")):
        found[str(path.relative_to(root))] = path.read_bytes() if path.is_file() else None
    return found


def opened(root: Path, kind: str = "tree", store: str = "store") -> HostFilesystem:
    limits = Limits(max_file_size=None)
    return HostFilesystem(root, store=root.parent / store, snapshots=kind, limits=limits)  # type: ignore[arg-type]


def restored(fs: HostFilesystem) -> None:
    kept = fs.snapshot()
    with uninterrupted():
        fs.delete("/a", recursive=True)
        fs.write("/large", "small")
    try:
        fs.restore(kept)
    finally:
        with uninterrupted():
            fs.restore(kept)


def imported(fs: HostFilesystem) -> None:
    with uninterrupted():
        data = fs.export_bytes()
        empty = InMemoryFilesystem().export_bytes()
        kept = fs.snapshot()
        fs.import_bytes(empty)
    try:
        fs.import_bytes(data)
    finally:
        with uninterrupted():
            fs.restore(kept)


def mounted(fs: HostFilesystem) -> None:
    InMemoryFilesystem(mounts=[HostMount(fs.root)])


def copied(fs: HostFilesystem) -> None:
    with fs.session.transaction():
        fs.copy("/a", "/d")
        fs.copy("/large", "/e")
    with uninterrupted():
        fs.delete("/d", recursive=True)
        fs.delete("/e")


# Each piece of work and the minimum number of its checks: one per directory, and one per MiB of the large file.
WORK: dict[str, tuple[Callable[[HostFilesystem], object], int]] = {
    "tree": (lambda fs: fs.tree(), 10),
    "snapshot": (lambda fs: fs.snapshot(), 10),
    "restore": (restored, 15),
    "statistics": (lambda fs: fs.statistics(), 4),
    "export_bytes": (lambda fs: fs.export_bytes(), 10),
    "import_bytes": (imported, 10),
    "mount": (mounted, 16),
    "walk": (lambda fs: list(fs.walk()), 4),
    "glob": (lambda fs: fs.glob("**/f1"), 4),
    "grep": (lambda fs: fs.grep("nowhere"), 15),
    "read": (lambda fs: fs.read("/large"), 6),
    "read_bytes": (lambda fs: fs.read_bytes("/large"), 6),
    "a part of a file": (lambda fs: fs.read_bytes("/large", offset=10, limit=5 * MIB), 5),
    "copy": (copied, 8),
}


@pytest.fixture
def nothing_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every scan read every file, so that the same work makes the same number of checks each time.

    Otherwise a file is read again if it was written within a tick of the clock before the scan.
    """
    monkeypatch.setattr(stat_cache, "TICK", 1 << 62)
    monkeypatch.setattr(stat_cache, "COARSE_TICK", 1 << 62)


@pytest.mark.sampled
@pytest.mark.usefixtures("nothing_trusted")
@pytest.mark.parametrize("error", [DeadlineExceeded, TransactionCancelled])
@pytest.mark.parametrize("name", WORK)
def test_work_on_host_files_can_be_stopped_at_any_point(name: str, error: type[Exception], root: Path) -> None:
    before = files_of(root)
    work, least = WORK[name]
    asking = Stop()
    with interruptible(asking):
        work(opened(root))
    assert asking.asked >= least
    for at in sorted({1, 2, asking.asked // 2, asking.asked - 1, asking.asked}):
        # A new store, which knows nothing from the previous round.
        fs = opened(root, store=f"store {at}")
        with interruptible(Stop(at, error)), pytest.raises(error):
            work(fs)
        with uninterrupted():
            fs.session._check_writable()
        assert files_of(root) == before
        assert not list(root.glob(".weakfs*"))


@pytest.mark.parametrize("kind", ["git", "tar"])
def test_a_snapshot_of_another_kind_stops_too(kind: str, root: Path) -> None:
    if kind == "git" and subprocess.run(["git", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no git")
    asking = Stop()
    with interruptible(asking):
        opened(root, kind).snapshot()
    fs = opened(root, kind)
    (root / "large").write_bytes(b"y" * LARGE)
    for at in (2, asking.asked // 2):
        with interruptible(Stop(at)), pytest.raises(DeadlineExceeded):
            fs.snapshot()

    kept = fs.snapshot()

    assert len(fs.store.list()) == 2
    assert kept.snapshot_id in {one.snapshot_id for one in fs.store.list()}


def test_a_mount_that_is_stopped_leaves_no_part_of_it(root: Path) -> None:
    session = Session(session_id="s")
    with interruptible(Stop(5)), pytest.raises(DeadlineExceeded):
        InMemoryFilesystem(session, mounts=[HostMount(str(root))])

    assert not InMemoryFilesystem(session).list("/")


def test_work_in_memory_stops_too() -> None:
    fs = InMemoryFilesystem(limits=Limits(max_file_size=None))
    fs.write("/d/large", "word " * (3 * MIB // 5) + "\n" + "line\n" * MIB)
    data = fs.export_bytes()
    for work in (
        lambda: fs.grep("nowhere"),
        lambda: fs.glob("**/x"),
        lambda: list(fs.walk()),
        fs.export_bytes,
        lambda: fs.import_bytes(data),
    ):
        with interruptible(Stop(1)), pytest.raises(DeadlineExceeded):
            work()
    assert fs.is_file("/d/large")


def test_one_large_file_is_searched_part_by_part() -> None:
    fs = InMemoryFilesystem(limits=Limits(max_file_size=None))
    fs.write("/large", "line\n" * (2 * MIB))
    asking = Stop()
    with interruptible(asking):
        found = fs.grep("nowhere")
    assert found.files_searched == 1
    assert asking.asked >= 10


# Calls


def ticking(session_id: str = "s") -> Session:
    """Return a session whose clock advances by a second whenever it is read."""
    ticks = count(0, 10**9)
    return Session(session_id=session_id, clock=lambda: next(ticks))


CALLS: list[tuple[str, dict[str, object]]] = [
    ("grep", {"pattern": "nowhere"}),
    ("glob", {"pattern": "**/nothing"}),
    ("cp", {"source": "/a", "destination": "/copy"}),
    ("read_file", {"path": "/large"}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_a_call_past_its_deadline_ends_within_its_work_and_changes_nothing(
    name: str, arguments: dict[str, object], root: Path
) -> None:
    before = files_of(root)
    session = ticking()
    fs = HostFilesystem(root, session=session, store=root.parent / "store")
    tools = Toolset(session, fs)

    result = tools.call(name, arguments, deadline=session.now() + 6 * 10**9)

    assert result.error_code == "deadline_exceeded"
    assert files_of(root) == before


def test_a_call_within_its_deadline_succeeds(root: Path) -> None:
    session = ticking()
    tools = Toolset(session, HostFilesystem(root, session=session, store=root.parent / "store"))

    assert tools.call("cp", {"source": "/a", "destination": "/copy"}, deadline=session.now() + 10**15).success
    assert (root / "copy/b/f0").is_file()


def test_a_cancelled_transaction_stops_in_its_scan(root: Path) -> None:
    before = files_of(root)
    fs = opened(root)
    cancellation = Cancellation()
    asked = 0
    threads: list[threading.Thread] = []

    def cancel_in_the_middle() -> None:
        nonlocal asked
        asked += 1
        if asked == 6:
            threads.append(threading.Thread(target=cancellation.cancel))
            threads[0].start()
            while not cancellation.is_cancelled:
                pass

    with pytest.raises(TransactionCancelled), fs.session.transaction(cancellation=cancellation):
        fs.write("/new", "1")
        with interruptible(cancel_in_the_middle):
            fs.tree()

    threads[0].join()
    assert asked == 6
    assert files_of(root) == before


# The context


def test_checks_are_not_made_outside_a_call_or_while_it_is_undone() -> None:
    check_interrupted()
    assert not is_interruptible()
    with interruptible(Stop(1)):
        assert is_interruptible()
        with uninterrupted():
            check_interrupted()
            assert not is_interruptible()
        with pytest.raises(DeadlineExceeded):
            check_interrupted()
    check_interrupted()


def test_the_check_of_an_outer_call_also_applies_in_an_inner_one() -> None:
    outer, inner = Stop(), Stop()
    with interruptible(outer), interruptible(inner):
        check_interrupted()
    assert (outer.asked, inner.asked) == (1, 1)
