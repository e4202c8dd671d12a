"""Concurrent calls, sessions and processes on one directory, and states that none of them may snapshot or undo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from weakfs import Session, SessionError
from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.filesystem import Limits
from weakfs.session import Missing
from weakfs.snapshots import Store

BUSY = "another call"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a").write_text("old")
    (tmp_path / "root/b").write_text("old")
    return tmp_path / "root"


@pytest.fixture
def fs(root: Path, tmp_path: Path) -> HostFilesystem:
    return HostFilesystem(root, session=Session(), store=tmp_path / "store")


def killed_with_a_call_open(root: Path, store: Path) -> subprocess.Popen[bytes]:
    """Start a process that changes /a in a transaction, and is killed while the transaction is open."""
    program = (
        "import sys\n"
        "from weakfs import HostFilesystem, Session\n"
        "fs = HostFilesystem(sys.argv[1], session=Session(), store=sys.argv[2])\n"
        "with fs.session.transaction():\n"
        "    fs.write('/a', 'unfinished')\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, root, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


def ended(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def test_a_path_in_unfinished_work_of_another_process_is_refused(fs: HostFilesystem, root: Path) -> None:
    child = killed_with_a_call_open(root, Path(fs.store.path))
    try:
        with pytest.raises(OSError, match=BUSY):
            fs.write("/a", "ours")
        with pytest.raises(OSError, match=BUSY):
            fs.snapshot()
        fs.write("/b", "ours")
        assert (root / "a").read_text() == "unfinished"
    finally:
        ended(child)


def test_the_work_of_a_killed_process_is_undone_before_new_work_begins(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    ended(killed_with_a_call_open(root, Path(fs.store.path)))
    assert (root / "a").read_text() == "unfinished"
    fs.write("/b", "ours")
    assert (root / "a").read_text() == "old"
    fs.write("/a", "ours")
    HostFilesystem(root, store=tmp_path / "store")
    assert (root / "a").read_text() == (root / "b").read_text() == "ours"


def test_separate_sessions_over_the_same_root_are_independent(fs: HostFilesystem, root: Path, tmp_path: Path) -> None:
    other = HostFilesystem(root, session=Session(), store=tmp_path / "store")
    with pytest.raises(LookupError), fs.session.transaction():
        fs.write("/a", "new")
        with pytest.raises(OSError, match=BUSY):
            other.write("/a", "theirs")
        other.write("/b", "theirs")
        raise LookupError
    assert (root / "a").read_text() == "old"
    assert (root / "b").read_text() == "theirs"


def test_no_snapshot_is_taken_during_unfinished_work_of_another_call(fs: HostFilesystem) -> None:
    begun, finish = threading.Event(), threading.Event()

    def call() -> None:
        with suppress(LookupError), fs.session.transaction():
            fs.write("/a", "unfinished")
            begun.set()
            finish.wait()
            raise LookupError

    other = threading.Thread(target=call)
    fs.session.snapshot("start")
    other.start()
    begun.wait()
    with pytest.raises(OSError, match=BUSY):
        fs.session.snapshot("between")
    with pytest.raises(OSError, match=BUSY):
        fs.session.rollback("start")
    finish.set()
    other.join()
    assert fs.read("/a").content == "old"
    fs.session.rollback("start")
    fs.write("/a", "the session goes on")


def test_a_transaction_may_take_a_snapshot_of_its_own_work(fs: HostFilesystem, root: Path) -> None:
    with fs.session.transaction():
        fs.write("/a", "new")
        fs.session.snapshot("inside")
        fs.write("/a", "newer")
        fs.session.rollback("inside")
    assert (root / "a").read_text() == "new"


def test_a_rollback_leaves_an_unchanged_read_only_filesystem_alone(root: Path, tmp_path: Path) -> None:
    session = Session()
    memory = InMemoryFilesystem(session)
    HostFilesystem(root, session=session, read_only=True, store=tmp_path / "store")
    session.snapshot("start")
    memory.write("/x", "x")
    session.rollback("start")
    assert not memory.exists("/x")


def test_a_rollback_that_would_change_a_read_only_filesystem_is_refused_with_nothing_changed(
    root: Path, tmp_path: Path
) -> None:
    session = Session()
    memory = InMemoryFilesystem(session)
    HostFilesystem(root, session=session, read_only=True, store=tmp_path / "store")
    session.snapshot("start")
    memory.write("/x", "x")
    (root / "a").write_text("by others")
    with pytest.raises(PermissionError, match="read-only"):
        session.rollback("start")
    memory.write("/y", "the session goes on")
    assert memory.exists("/x")
    assert (root / "a").read_text() == "by others"


@pytest.mark.parametrize("kind", ["tree", "tar"])
def test_a_program_that_fails_is_undone_even_if_the_store_may_not_grow(root: Path, tmp_path: Path, kind: str) -> None:
    store = Store(tmp_path / "store", max_bytes=60_000)
    fs = HostFilesystem(root, store=store, snapshots="tar" if kind == "tar" else "tree")
    before = fs.tree().fingerprint
    with pytest.raises(LookupError), fs.checkout() as work:
        Path(work.directory, "large").write_bytes(os.urandom(200_000))
        Path(work.directory, "a").unlink()
        raise LookupError
    assert fs.tree().fingerprint == before
    fs.write("/c", "the session goes on")


def test_files_that_a_program_creates_must_keep_to_the_limits(root: Path, tmp_path: Path) -> None:
    (root / "large").write_bytes(b"x" * 5000)
    fs = HostFilesystem(root, limits=Limits(max_file_size=1000, max_path_depth=3), store=tmp_path / "store")
    before = fs.tree().fingerprint
    for made in ("two", "d/e/f/g"):
        with pytest.raises(OSError, match=r"allowed|the limit"), fs.checkout() as work:
            target = Path(work.directory, made)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"x" * (2000 if made == "two" else 1))
        assert fs.tree().fingerprint == before
    with fs.checkout() as work:
        Path(work.directory, "small").write_text("what was too large before is not its fault")
    assert work.changed == ("/small",)


def test_nested_roots_cannot_share_a_session(fs: HostFilesystem, root: Path) -> None:
    (root / "sub").mkdir()
    with pytest.raises(ValueError, match="one contains the other"):
        HostFilesystem(root / "sub", session=fs.session)


def test_a_layer_is_not_committed_if_it_could_not_be_undone(fs: HostFilesystem) -> None:
    layer = OverlayFilesystem(fs, Session())
    layer.write("/a", "new")
    assert layer.session is not None
    with pytest.raises(SessionError, match="commit after it"), layer.session.transaction():
        layer.commit()
    assert fs.read("/a").content == "old"
    layer.commit()
    assert fs.read("/a").content == "new"


def test_a_session_moved_without_its_sidecar_reads_contents_from_the_store(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    fs.session.snapshot("start")
    fs.write("/a", "new")
    fs.session.save(tmp_path / "s.json")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s.json").rename(tmp_path / "elsewhere/s.json")
    session = Session.load(tmp_path / "elsewhere/s.json")
    assert session.missing_blobs
    HostFilesystem(root, session=session, store=tmp_path / "store")
    session.rollback("start")
    assert (root / "a").read_text() == "old"
    session.save(tmp_path / "elsewhere/again.json")


def test_contents_missing_from_the_sidecar_are_saved_again_from_the_store(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    fs.session.snapshot("start")
    fs.write("/a", "new")
    fs.session.save(tmp_path / "s.json")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s.json").rename(tmp_path / "elsewhere/s.json")
    for embed in (False, True):
        session = Session.load(tmp_path / "elsewhere/s.json")
        HostFilesystem(root, session=session, store=tmp_path / "store")
        session.save(tmp_path / f"again{embed}.json", embed=embed)
        assert Session.load(tmp_path / f"again{embed}.json").missing_blobs == ()


def test_a_save_names_snapshots_and_contents_that_were_lost_with_the_store(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    first = fs.snapshot()
    assert fs.session.save(tmp_path / "s.json").missing == ()
    shutil.rmtree(tmp_path / "s.json.blobs")
    session = Session.load(tmp_path / "s.json")
    HostFilesystem(root, session=session, store=tmp_path / "lost")

    report = session.save(tmp_path / "again.json")
    assert {one.kind for one in report.missing} == {"content"}
    assert sorted(one.id for one in report.missing) == sorted(session.missing_blobs) != []

    session.compact(keep=0)
    report = session.save(tmp_path / "compacted.json")
    assert Missing("snapshot", first.snapshot_id) in report.missing


def test_a_snapshot_in_the_store_is_not_missing_when_its_records_are_dropped(
    fs: HostFilesystem, tmp_path: Path
) -> None:
    fs.snapshot()
    fs.session.compact(keep=0)
    assert fs.session.save(tmp_path / "s.json").missing == ()


def test_a_moved_workspace_is_opened_under_the_name_that_its_session_knows(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    fs.session.snapshot("start")
    fs.write("/a", "new")
    fs.session.save(tmp_path / "s.json")
    root.rename(tmp_path / "moved")
    session = Session.load(tmp_path / "s.json")
    HostFilesystem(tmp_path / "moved", session=session, store=tmp_path / "other", filesystem_id=fs.filesystem_id)
    session.rollback("start")
    assert (tmp_path / "moved/a").read_text() == "old"


def test_a_session_that_is_resumed_repeatedly_keeps_its_snapshots(root: Path, tmp_path: Path) -> None:
    first = HostFilesystem(root, session=Session(), store=tmp_path / "store")
    first.session.save(tmp_path / "s.json")
    for _ in range(120):
        again = HostFilesystem(root, session=Session.load(tmp_path / "s.json"), store=tmp_path / "store")
        again.snapshot()
    assert len(first.store.list()) == 120


def test_work_does_not_continue_on_a_root_that_was_removed_or_replaced(
    fs: HostFilesystem, root: Path, tmp_path: Path
) -> None:
    fs.session.snapshot("start")
    root.rename(tmp_path / "moved")
    for _ in range(2):
        for work in (fs.snapshot, fs.tree, lambda: fs.write("/a", "x"), lambda: fs.session.rollback("start")):
            with pytest.raises(FileNotFoundError, match="no longer there"):
                work()
        root.mkdir(exist_ok=True)
    assert os.listdir(root) == []
    root.rmdir()
    (tmp_path / "moved").rename(root)
    fs.write("/a", "x")
    fs.session.rollback("start")
    assert (root / "a").read_text() == "old"


@pytest.mark.parametrize("given", ["", "nowhere"])
def test_a_root_that_is_not_a_directory_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match="cannot open"):
        HostFilesystem(given and tmp_path / given)


def test_another_store_for_the_same_root_and_session_is_refused(fs: HostFilesystem, root: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="already"):
        HostFilesystem(root, session=fs.session, store=tmp_path / "other")


def test_snapshots_use_another_place_if_the_users_state_directory_is_not_writable(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert HostFilesystem(root).store.path.startswith(str(tmp_path / "state/weakfs/root-"))
    (tmp_path / "state").write_text("a file, where no directory can be made")
    assert HostFilesystem(root).store.path.startswith(f"/var/tmp/weakfs-{os.getuid()}/root-")


@pytest.mark.parametrize(("mine", "other", "is_busy"), [("/d/x", "/d/y", False), ("/new/x", "/new/y", True)])
def test_an_unfinished_call_claims_what_it_creates_but_no_parent_directory(
    fs: HostFilesystem, root: Path, mine: str, other: str, is_busy: bool
) -> None:
    (root / "d").mkdir()
    elsewhere = HostFilesystem(root, session=Session(), store=fs.store.path)
    with fs.session.transaction():
        fs.write(mine, "mine")
        if is_busy:
            with pytest.raises(OSError, match=BUSY):
                elsewhere.write(other, "other")
        else:
            elsewhere.write(other, "other")
    assert (root / mine[1:]).read_text() == "mine"


def test_work_undone_within_a_call_is_removed_from_its_journal(fs: HostFilesystem) -> None:
    journals = Path(fs.store.path, "journals")
    with fs.session.transaction():
        fs.write("/a", "new")
        sizes = [log.stat().st_size for log in journals.rglob("log")]
        with suppress(KeyError), fs.session.transaction():
            fs.write("/b", "new")
            raise KeyError
        assert [log.stat().st_size for log in journals.rglob("log")] == sizes != []
