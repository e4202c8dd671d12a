"""Power failures of the disk with a store: what was reported before is there and intact, and the store can be used.

The store is on a filesystem in a file. A copy of that file is the disk as the kernel has written it so far: what was
not synced is missing from it. Its filesystem is recovered when the copy is mounted, as after a power failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import define, field, frozen

from tests.faults.syscalls import System
from tests.faults.test_store_crash import make_root, read_whole
from tests.sampling import stride
from weakfs import HostFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.snapshots import Store
from weakfs.snapshots.git import lock_files

# With the default, data is written before the names of new files; with the other one, in any order.
ORDERS = {"ordered": "loop", "writeback": "loop,data=writeback,nodelalloc"}

# The distance between the moments of a whole run: a copy is checked in about half a second.
EVERY = 8

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="there is no mkfs.ext4 on this machine"),
]


@frozen
class Failure:
    """A copy of the disk, and the fingerprints of the snapshots that it has to have, and of those that it may have."""

    disk: Path
    wanted: dict[str, str]
    allowed: dict[str, str | None]


@define(eq=False)
class Disk:
    """A disk in a file, and its copies at many moments of some work."""

    file: Path
    wanted: dict[str, str] = field(factory=dict[str, str])
    allowed: dict[str, str | None] = field(factory=dict[str, "str | None"])
    failures: list[Failure] = field(factory=list[Failure])
    _moments: int = 0
    _is_copying: bool = False

    def copy(self, _: object = None) -> None:
        """Copy the disk, at one of several moments."""
        self._moments += 1
        if self._is_copying or self._moments % (EVERY * stride()):
            return
        self._is_copying = True
        copy = self.file.with_name(f"{len(self.failures)}.disk")
        subprocess.run(["cp", "--sparse=always", str(self.file), str(copy)], check=True)
        self.failures.append(Failure(copy, dict(self.wanted), dict(self.allowed)))
        self._is_copying = False


@contextmanager
def mounted(file: Path, place: Path, options: str = "loop") -> Iterator[None]:
    place.mkdir(exist_ok=True)
    command = ["mount", "-o", options, str(file), str(place)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this needs the right to mount a disk that is in a file")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    file = tmp_path / "disk"
    with file.open("wb") as stream:
        stream.truncate(24 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(file)], check=True)
    return Disk(file)


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["tree", "git", "tar"])
def test_reported_snapshots_survive_a_power_failure_at_any_call(
    tmp_path: Path, disk: Disk, kind: SnapshotKind, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The machine has been off for longer than that.
    monkeypatch.setattr(lock_files, "YOUNG", 0)
    root = make_root(tmp_path / "root")
    with mounted(disk.file, tmp_path / "mounted", ORDERS[order]):
        work(HostFilesystem(root, store=tmp_path / "mounted" / "store", snapshots=kind), root, disk)
    assert len(disk.failures) > 8
    for failure in disk.failures:
        place = failure.disk.with_suffix("")
        with mounted(failure.disk, place):
            check(failure, place / "store", root, kind)
        failure.disk.unlink()


def work(files: HostFilesystem, root: Path, disk: Disk) -> None:
    """Take snapshots, drop one, and compact the store."""
    with System(before=disk.copy).in_force():
        for number in range(3):
            (root / "d0" / "changing").write_bytes(b"%d" % number * 3000)
            disk.allowed[f"t{number}"] = None
            taken = files.snapshot(f"t{number}")
            disk.wanted[f"t{number}"] = disk.allowed[f"t{number}"] = files.store.tree(
                files.store.get(taken.snapshot_id)
            ).fingerprint
            disk.copy()
        del disk.wanted["t1"]
        files.store.drop(next(one.snapshot_id for one in files.store.list() if one.tag == "t1"))
        del disk.allowed["t1"]
        files.store.compact()
        disk.copy()


def check(failure: Failure, folder: Path, root: Path, kind: SnapshotKind) -> None:
    store = Store(folder)
    found = {one.tag or "": store.tree(one) for one in store.list()}
    assert failure.wanted.keys() <= found.keys() <= failure.allowed.keys()
    for tag, tree in found.items():
        assert failure.allowed[tag] in (None, tree.fingerprint)
        read_whole(tree)
    assert store.verify() == {}
    again = HostFilesystem(root, store=store, snapshots=kind)
    read_whole(store.tree(store.get(again.snapshot("later").snapshot_id)))
    store.compact()
    assert store.verify() == {}
