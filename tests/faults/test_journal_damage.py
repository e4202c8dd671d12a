"""A journal whose log was damaged: it is named, and nothing is undone, until the log is as it was."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.dying import dying
from tests.models.host import exact, record
from tests.sampling import stride
from weakfs import HostFilesystem


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    for name in ("file", "other", "d/inner"):
        (root / name).write_text("before\n")
    os.link(root / "file", root / "d" / "linked")
    return root


def leave_unfinished(root: Path, store: Path) -> None:
    def work(_: Callable[[str], None]) -> None:
        files = HostFilesystem(root, store=store)
        with files.session.transaction():
            files.write("/file", "after\n")
            files.delete("/d", recursive=True)
            files.move("/other", "/moved")
            files.chmod("/moved", 0o600)
            os.kill(os.getpid(), signal.SIGKILL)

    assert dying(work)[1]


def check_named(root: Path, store: Path, log: Path) -> None:
    left = exact(record(root))
    with pytest.raises(OSError, match=rf"cannot open '{root}': .*'{log.parent}' is damaged: .*; move that directory"):
        HostFilesystem(root, store=store)
    assert exact(record(root)) == left


def check_undone(root: Path, store: Path, before: object) -> None:
    HostFilesystem(root, store=store)
    assert exact(record(root)) == before
    assert list((store / "journals").iterdir()) == []


def test_no_flipped_bit_of_a_log_goes_unnoticed(tmp_path: Path, root: Path) -> None:
    before, store = exact(record(root)), tmp_path / "store"
    leave_unfinished(root, store)
    (log,) = store.rglob("log")
    whole = log.read_bytes()
    places = range(0, len(whole), stride())
    # Above all the end of the last line, and those that separate it from others.
    for place in (*places, len(whole) - 1):
        log.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        check_named(root, store, log)
    log.write_bytes(whole)
    check_undone(root, store, before)


def test_lines_that_are_missing_or_in_another_order_are_noticed(tmp_path: Path, root: Path) -> None:
    before, store = exact(record(root)), tmp_path / "store"
    leave_unfinished(root, store)
    (log,) = store.rglob("log")
    lines = log.read_bytes().splitlines(keepends=True)
    for left in (lines[1:], lines[:2] + lines[3:], [*lines[:-2], lines[-1], lines[-2]], [*lines, lines[-1]]):
        log.write_bytes(b"".join(left))
        check_named(root, store, log)
    log.write_bytes(b"".join(lines))
    check_undone(root, store, before)


def test_a_last_line_that_was_not_written_completely_does_not_count(tmp_path: Path, root: Path) -> None:
    before, store = exact(record(root)), tmp_path / "store"
    leave_unfinished(root, store)
    (log,) = store.rglob("log")
    with log.open("ab") as stream:
        stream.write(b'01234567 {"op":"absent","path":["other"')
    check_undone(root, store, before)


def test_no_flipped_bit_in_the_list_of_copied_files_goes_unnoticed(tmp_path: Path, root: Path) -> None:
    if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other device")
    before = exact(record(root))
    with TemporaryDirectory(dir="/dev/shm") as folder:
        store = Path(folder)
        leave_unfinished(root, store)
        (inodes,) = store.rglob("inodes")
        whole = inodes.read_bytes()
        for place in (*range(0, len(whole), stride()), len(whole) - 1):
            inodes.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
            check_named(root, store, inodes)
        # A process that was killed while it wrote to the list leaves part of a line.
        inodes.write_bytes(whole + b"01234567 disk 12")
        HostFilesystem(root, store=store)
        assert exact(record(root)) == before
