"""Times beyond 64-bit nanoseconds, which some filesystems keep: they are changed by no call that is undone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.models.host import exact, record
from weakfs import HostFilesystem, Session
from weakfs.snapshots.undo_journal.journal import Journal

YEAR = 365 * 24 * 3600 * 10**9
FAR = {"year 5000": 3030 * YEAR + 7, "5000 years before": -7000 * YEAR + 7}

LATEST, EARLIEST = (1 << 63) - 1, -(1 << 63)


@pytest.fixture(params=list(FAR))
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A directory with far times, in a filesystem that keeps them."""
    shared = Path("/dev/shm")
    place = shared / f"weakfs-test-{os.getpid()}-{tmp_path.name}" if os.access(shared, os.W_OK) else tmp_path
    root = place / "root"
    (root / "d").mkdir(parents=True)
    try:
        (root / "file").write_text("before\n")
        (root / "d" / "inner").write_text("inner\n")
        os.link(root / "d" / "inner", root / "d" / "other")
        os.symlink("file", root / "link")
        for path in (root / "link", root / "file", root / "d" / "inner", root / "d", root):
            os.utime(path, ns=(0, FAR[request.param]), follow_symlinks=False)
            if path.lstat().st_mtime_ns != FAR[request.param]:
                pytest.skip("the filesystem does not keep such times")
        yield root
    finally:
        shutil.rmtree(place)


CHANGES: dict[str, Callable[[HostFilesystem], object]] = {
    "write": lambda fs: fs.write("/file", "after\n"),
    "write in place": lambda fs: fs.write("/d/inner", "after\n"),
    "create": lambda fs: fs.write("/d/new/file", "new\n"),
    "chmod": lambda fs: fs.chmod("/file", 0o600),
    "chmod of a directory": lambda fs: fs.chmod("/d", 0o700),
    "copy": lambda fs: fs.copy("/d", "/copied"),
    "delete": lambda fs: fs.delete("/d", recursive=True),
    "delete a link": lambda fs: fs.delete("/link"),
    "move": lambda fs: fs.move("/file", "/d/moved"),
    "move a directory": lambda fs: fs.move("/d", "/moved"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_far_times_are_as_before_after_a_rollback_and_after_a_kill(
    root: Path, change: Callable[[HostFilesystem], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = exact(record(root))
    fs = HostFilesystem(root, store=root.parent / "store")
    with pytest.raises(RuntimeError), fs.session.transaction():
        change(fs)
        raise RuntimeError
    assert exact(record(root)) == before

    # The journal is left behind, as by a process that was killed.
    monkeypatch.setattr(Journal, "undo", lambda self, mark=0: self.release() or ())
    with pytest.raises(RuntimeError), fs.session.transaction():
        change(fs)
        raise RuntimeError
    assert exact(record(root)) != before
    monkeypatch.undo()
    HostFilesystem(root, store=root.parent / "store")
    assert exact(record(root)) == before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_session_with_far_times_can_be_saved(
    root: Path, change: Callable[[HostFilesystem], object], tmp_path: Path
) -> None:
    before = {path: seen.essence for path, seen in record(root).items()}
    fs = HostFilesystem(root, store=root.parent / "store")
    change(fs)
    fs.session.undo()
    assert {path: seen.essence for path, seen in record(root).items()} == before
    fs.session.save(tmp_path / "s.json")
    assert Session.load(tmp_path / "s.json").to_bytes() == fs.session.to_bytes()


def test_a_far_time_is_the_nearest_that_can_be_saved(root: Path) -> None:
    fs = HostFilesystem(root, store=root.parent / "store")
    far = os.stat(root / "d").st_mtime_ns
    nearest = min(max(far, EARLIEST), LATEST)
    shown = [fs.stat(path).modified_ns for path in ("/", "/d", "/link", "/file", "/d/inner")]
    assert shown == [nearest] * 5
    assert fs.tree().modified_at == nearest
