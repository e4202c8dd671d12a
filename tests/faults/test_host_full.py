"""A disk that is really full: a clear error, the old state intact, and work continues once there is space."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.host import exact, left_in_journals, record
from weakfs import Session
from weakfs.backends import HostFilesystem
from weakfs.filesystem import FilesystemSnapshot

PAGE = 4096
# How many pages each attempt leaves to an operation. With the largest number, every operation succeeds.
LEFT = (*range(12), 14, 17, 20, 25, 60, 150)


class Place:
    """A filesystem whose root, store or both are on a small disk."""

    def __init__(self, which: str, disk: Path, tmp_path: Path) -> None:
        self.disk = disk
        self.root = (disk if which in ("root", "both") else tmp_path) / "root"
        self.store = (disk if which in ("store", "both") else tmp_path) / "store"
        (self.root / "dir" / "sub").mkdir(parents=True)
        for number in range(4):
            (self.root / "dir" / f"{number}").write_bytes(os.urandom(20_000))
        (self.root / "big").write_bytes(b"big" * 30_000)
        (self.root / "link").symlink_to("big")
        self.session = Session()
        self.fs = HostFilesystem(self.root, session=self.session, store=self.store)
        self.first = self.fs.snapshot("first")
        (self.root / "big").write_bytes(b"changed" * 10_000)
        (self.root / "dir" / "0").unlink()
        (self.root / "dir" / "1").rename(self.root / "one")
        (self.root / "dir" / "2").write_bytes(os.urandom(20_000))
        (self.root / "dir" / "2").chmod(0o600)
        self.second = self.fs.snapshot("second")

    def fill(self, left: int) -> None:
        """Fill the disk except for this many pages."""
        with open(self.disk / "ballast", "wb") as stream:
            stream.write(bytes(PAGE * max(os.statvfs(self.disk).f_bavail - left, 0)))

    def make_room(self) -> None:
        (self.disk / "ballast").unlink()


def in_transaction(place: Place) -> None:
    with place.session.transaction():
        place.fs.write("/big", b"1".decode() * 30_000)
        place.fs.delete("/dir", recursive=True)
        place.fs.write("/dir/new", "2" * 30_000)
        place.fs.move("/dir/new", "/one")
        place.fs.copy("/one", "/two")


OPERATIONS: dict[str, Callable[[Place], object]] = {
    "write a new file": lambda place: place.fs.write("/new", "n" * 40_000),
    "write below new directories": lambda place: place.fs.write("/n/e/w", "n" * 40_000),
    "write over a file": lambda place: place.fs.write("/big", "n" * 40_000),
    "append": lambda place: place.fs.append("/big", "n" * 40_000),
    "write through a stream": lambda place: _streamed(place),
    "mkdir": lambda place: place.fs.mkdir("/a/b/c"),
    "symlink": lambda place: place.fs.symlink("x" * 3000, "/l"),
    "move": lambda place: place.fs.move("/dir", "/moved"),
    "move over a file": lambda place: place.fs.move("/one", "/big"),
    "copy": lambda place: place.fs.copy("/dir", "/copied"),
    "delete": lambda place: place.fs.delete("/dir", recursive=True),
    "delete a file": lambda place: place.fs.delete("/big"),
    "chmod": lambda place: place.fs.chmod("/dir/2", 0o644),
    "restore": lambda place: place.fs.restore(place.first),
    "rollback": lambda place: place.session.rollback("kept"),
    "import": lambda place: place.fs.import_bytes(place.fs.export_bytes()),
    "snapshot": lambda place: place.fs.snapshot(),
    "transaction": in_transaction,
}


# Operations that take up no space in the root itself.
FREE = ("mkdir", "move", "move over a file", "delete", "delete a file", "chmod", "import", "snapshot")


def _streamed(place: Place) -> None:
    with place.fs.open("/new", "w") as stream:
        stream.write("n" * 40_000)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("which", ["root", "store", "both"])
@pytest.mark.parametrize("what", OPERATIONS)
def test_an_operation_on_a_full_disk_is_complete_or_absent(
    tmp_path: Path, small_disk: Path, what: str, which: str
) -> None:
    place = Place(which, small_disk, tmp_path)
    place.session.snapshot("kept")
    before = place.fs.snapshot("before")
    came_through = refused = 0

    for left in LEFT:
        (place.root / "dir" / "3").write_bytes(os.urandom(10_000))
        os.utime(place.root / "dir" / "3", ns=(left, left))
        expected = exact(record(place.root))
        place.fill(left)
        refusal: OSError | None = None
        try:
            OPERATIONS[what](place)
        except OSError as error:
            refusal = error
        if refusal is not None:
            refused += 1
            assert refusal.errno == errno.ENOSPC, refusal
            assert "cannot" in str(refusal)
            assert any(remedy in str(refusal) for remedy in ("free some disk space", "free some space"))
            assert exact(record(place.root)) == expected, f"with {left} pages left"
        place.make_room()
        if refusal is None:
            came_through += 1
            place.fs.restore(before)
        assert not [path for path in record(place.root) if b".weakfs-" in path]
        assert not left_in_journals(place.store, after_interrupt=True)

    assert came_through
    assert refused or (which == "root" and what in FREE)
    assert_all_is_well(place, before)


def assert_all_is_well(place: Place, before: FilesystemSnapshot) -> None:
    """Old snapshots restore, and files can be written."""
    for snapshot in (place.first, place.second, before):
        place.fs.restore(snapshot)
        assert place.fs.tree().fingerprint == place.fs.store.tree(place.fs.store.get(snapshot.snapshot_id)).fingerprint
    place.fs.write("/after", "works")
    assert (place.root / "after").read_text() == "works"


def test_saving_on_a_full_disk_keeps_the_old_file(tmp_path: Path, small_disk: Path) -> None:
    place = Place("root", small_disk, tmp_path)
    path = small_disk / "session.json"
    place.session.save(path)
    before = path.read_bytes()
    place.fs.write("/more", "m" * 100_000)
    place.fill(3)

    with pytest.raises(OSError, match=r"session\.json") as caught:
        place.session.save(path)

    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    place.make_room()
    place.session.save(path)
    assert Session.load(path).records[-1] == place.session.records[-1]
