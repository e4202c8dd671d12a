"""Scans that are refused: the unreadable entry is named, and nothing is changed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from tests.descriptors import no_descriptor_left
from tests.snapshots.hosts import look
from weakfs.session.interruption import interruptible
from weakfs.snapshots import HashOnlySink, scan, scan_entry

TOP = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "file").write_bytes(b"content")
    return root


@contextmanager
def opened(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def bits_below(descriptor: int) -> list[int]:
    """Return the permission bits of the directory and of those above the file, as far as they are accessible."""
    found = [stat.S_IMODE(os.fstat(descriptor).st_mode)]
    for path in ("d", "d/e", "d/e/file"):
        with suppress(PermissionError):
            found.append(stat.S_IMODE(os.stat(path, dir_fd=descriptor).st_mode))
    return found


def scan_as_nobody(root: Path) -> str:
    """Scan in another process, as an unprivileged user, and return the error."""
    if os.getuid():
        pytest.skip("only root can become somebody without rights")
    root.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.storing", "scan", "-", str(root)],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize(
    ("path", "mode", "named"),
    [
        ("d/e/file", 0o000, "/d/e/file"),
        ("d/e", 0o000, "/d/e"),
        ("d/e", 0o311, "/d/e"),
        # Its names can be read, and nothing else.
        ("d/e", 0o744, "/d/e"),
    ],
)
def test_an_unreadable_entry_is_named_and_refuses_the_scan(root: Path, path: str, mode: int, named: str) -> None:
    (root / path).chmod(mode)
    assert scan_as_nobody(root) == (
        f"PermissionError: cannot scan {named!r}: Permission denied; make it readable, or move it out of the directory"
    )


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("d/e/file", 0o000),
        ("d/e/file", 0o044),
        ("d/e", 0o000),
        ("d/e", 0o311),
        ("d/e", 0o644),
        ("d", 0o000),
        (".", 0o000),
    ],
)
def test_an_owner_reads_what_permission_bits_forbid_and_leaves_them_as_they_were(
    root: Path, path: str, mode: int
) -> None:
    with opened(root) as descriptor:
        (root / path).chmod(mode)
        before = bits_below(descriptor)
        first = scan(descriptor, HashOnlySink())
        again = scan(descriptor, HashOnlySink(), first)
        assert bits_below(descriptor) == before

    assert first.tree.fingerprint == again.tree.fingerprint
    (root / path).chmod(0o600 if path == "d/e/file" else 0o700)
    assert look(root).tree.digest == first.tree.digest


@pytest.mark.parametrize("path", ["d", "d/e", "d/e/file"])
def test_permission_bits_are_restored_after_an_interrupt(root: Path, path: str) -> None:
    def stop(path: str, size: int) -> None:
        raise KeyboardInterrupt

    with opened(root) as descriptor:
        (root / path).chmod(0o000)
        before = bits_below(descriptor)
        with pytest.raises(KeyboardInterrupt):
            scan(descriptor, HashOnlySink(), on_file=stop)
        assert bits_below(descriptor) == before


def test_a_scan_succeeds_if_everything_is_readable(root: Path) -> None:
    assert scan_as_nobody(root) == ""


def test_no_descriptor_is_left_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_descriptor_left():
        known = look(root)
        look(root, known)

    def stop(path: str, size: int) -> None:
        raise KeyboardInterrupt

    descriptor = os.open(root, os.O_RDONLY)
    with no_descriptor_left():
        with pytest.raises(KeyboardInterrupt):
            scan(descriptor, HashOnlySink(), on_file=stop)
        with pytest.raises(KeyboardInterrupt):
            scan_entry(descriptor, "d", HashOnlySink(), on_file=stop)
    os.close(descriptor)


def test_every_file_that_is_read_is_reported(root: Path) -> None:
    (root / "top").write_bytes(b"on top")
    told: list[tuple[str, int]] = []
    descriptor = os.open(root, os.O_RDONLY)
    scan(descriptor, HashOnlySink(), on_file=lambda path, size: told.append((path, size)))
    scan_entry(descriptor, "e", HashOnlySink(), directory="/d", on_file=lambda path, size: told.append((path, size)))
    os.close(descriptor)
    assert sorted(told) == [("/d/e/file", 7), ("/top", 6)]


def test_a_scan_that_is_stopped_at_any_moment_leaves_no_descriptor_open(root: Path) -> None:
    descriptor = os.open(root, os.O_RDONLY)
    stopped = 0
    for left in count():
        moments = iter(range(left))

        def check(moments: Iterator[int] = moments) -> None:
            if next(moments, None) is None:
                raise TimeoutError

        with no_descriptor_left(), suppress(TimeoutError), interruptible(check):
            scan(descriptor, HashOnlySink())
            break
        stopped += 1
    os.close(descriptor)
    assert stopped
