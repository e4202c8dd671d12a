"""Ways out of a root by archives, swapped roots, hard links and special files: none leads anywhere."""

from __future__ import annotations

import io
import os
import socket
import stat
import tarfile
from pathlib import Path

import attrs
import pytest

from tests.models.host import exact, record
from tests.models.house import SECRET, TRIED, House, assert_no_secret
from weakfs.backends import HostFilesystem
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import Node, tree_of

FORGED = ("..", ".", "", "../secret", "../new", "dir/../../new", "dir/new", "{folder}/new", "a\0b")

MEMBERS: dict[str, list[tuple[str, bytes, str]]] = {
    "a name that leads upwards": [("../secret", tarfile.REGTYPE, "")],
    "a name that leads upwards from inside": [("dir/../../secret", tarfile.REGTYPE, "")],
    "an absolute name": [("/{beside}/secret", tarfile.REGTYPE, "")],
    "a file through a link": [("l", tarfile.SYMTYPE, "../beside"), ("l/secret", tarfile.REGTYPE, "")],
    "a directory through a link": [("l", tarfile.SYMTYPE, "../beside"), ("l/new", tarfile.DIRTYPE, "")],
    "a file over a link": [("l", tarfile.SYMTYPE, "../beside/secret"), ("l", tarfile.REGTYPE, "")],
    "a hard link to the outside": [("h", tarfile.LNKTYPE, "../beside/secret")],
    "an absolute hard link": [("h", tarfile.LNKTYPE, "{beside}/secret")],
    "a hard link to a link": [("l", tarfile.SYMTYPE, "../secret"), ("h", tarfile.LNKTYPE, "l")],
    "a device": [("null", tarfile.CHRTYPE, "")],
    "a block device": [("disk", tarfile.BLKTYPE, "")],
    "the root as a link": [(".", tarfile.SYMTYPE, "../beside")],
    "a directory that already exists as a link": [
        ("dir", tarfile.SYMTYPE, "../beside"),
        ("dir/file", tarfile.REGTYPE, ""),
    ],
}


@pytest.mark.parametrize("case", MEMBERS)
def test_no_member_of_an_archive_is_written_outside(house: House, case: str) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind, target in MEMBERS[case]:
            member = tarfile.TarInfo(name.format(beside=house.beside))
            member.type, member.linkname, member.mode = kind, target.format(beside=house.beside), 0o777
            member.size = 7 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"spoiled"))
    fs = house.open("within_root_only")
    before = record(house.root)

    try:
        fs.import_bytes(stream.getvalue())
    except (ValueError, OSError):
        assert record(house.root) == before
    assert_no_secret(house)
    assert not any(stat.S_IFMT(os.lstat(path).st_mode) in (stat.S_IFCHR, stat.S_IFBLK) for path in house.root.iterdir())


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("is_directory", [True, False])
def test_a_forged_tree_with_names_that_lead_elsewhere_is_refused(
    house: House, name: str, depth: int, is_directory: bool
) -> None:
    fs = house.open("within_root_only")
    snapshot = fs.snapshot()
    before = record(house.root)
    node: Node = leaf.file(b"spoiled", mode=0o644, at=5)
    if is_directory:
        node = tree_of({"new": node, "secret": node})
    tree = tree_of({name.format(folder=house.folder): node})
    for above in ("dir", "new")[:depth]:
        tree = tree_of({above: tree})

    with pytest.raises(ValueError, match="cannot use"):
        fs.restore(attrs.evolve(snapshot, tree=tree))

    assert exact(record(house.root)) == exact(before)
    assert_no_secret(house)
    fs.write("/dir/file", "works")


def test_a_root_that_is_a_link_stays_the_directory_that_it_pointed_to(house: House) -> None:
    link = house.folder / "root" / "dir" / "to root"
    link.symlink_to(house.root)
    fs = HostFilesystem(link, store=house.store)
    assert fs.root == str(house.root)
    with pytest.raises(PermissionError):
        fs.read(f"{link}/../../beside/secret")

    link.unlink()
    link.symlink_to(house.beside)

    assert fs.read("/dir/file").content == "inside"
    fs.write("/dir/file", "changed")
    assert (house.root / "dir" / "file").read_text() == "changed"


def test_a_root_that_is_swapped_for_a_link_leads_nowhere_else(house: House, tmp_path: Path) -> None:
    fs = house.open()
    snapshot = fs.snapshot()
    house.root.rename(tmp_path / "moved")
    house.root.symlink_to(house.beside)

    for change in (
        lambda: fs.write("/secret", "mine"),
        lambda: fs.write("/sub/secret", "mine"),
        lambda: fs.delete("/dir", recursive=True),
        lambda: fs.restore(snapshot),
        lambda: fs.snapshot(),
        lambda: fs.tree(),
        lambda: fs.read("/dir/file"),
        lambda: fs.read("/secret"),
    ):
        with pytest.raises(FileNotFoundError, match="no longer there"):
            change()

    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["dir"]
    house.root.unlink()
    (tmp_path / "moved").rename(house.root)


def test_writing_to_a_file_with_a_hard_link_outside_leaves_the_outside_unchanged(house: House) -> None:
    outside = house.beside / "secret"
    for name in ("one", "two", "three", "four", "five"):
        os.link(outside, house.root / name)
    status = os.stat(outside)
    fs = house.open()
    snapshot = fs.snapshot()

    fs.write("/one", "spoiled")
    fs.append("/two", "spoiled")
    fs.chmod("/three", 0o777)
    fs.delete("/four")
    with fs.open("/five", "a") as stream:
        stream.write("spoiled")
    fs.restore(snapshot)
    with pytest.raises(RuntimeError), fs.session.transaction():
        fs.chmod("/one", 0o600)
        raise RuntimeError

    now = os.stat(outside)
    assert outside.read_text() == SECRET
    assert (now.st_mode, now.st_mtime_ns, now.st_ino) == (status.st_mode, status.st_mtime_ns, status.st_ino)
    for name in ("one", "two", "three", "four", "five"):
        (house.root / name).unlink()
    # Adding and removing hard links changes only the time of the last status change.
    assert {path: seen.exact for path, seen in house.outside().items()} == {
        path: seen.exact for path, seen in house.before.items()
    }
    house.before = house.outside()


def test_special_entries_are_listed_but_never_opened(house: House) -> None:
    os.mkfifo(house.root / "fifo")
    os.mknod(house.root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3)) if os.getuid() == 0 else None
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(house.root, os.O_PATH)
        server.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    names = sorted(path.name for path in house.root.iterdir() if path.name != "dir")
    fs = house.open("within_root_only")

    assert [entry.name for entry in fs.list("/") if not entry.is_directory] == names
    for name in names:
        for what in (
            "read",
            "read_bytes",
            "open to read",
            "write",
            "append",
            "open to write",
            "open to append",
            "list",
        ):
            with pytest.raises(OSError, match="cannot"):
                TRIED[what](fs, f"/{name}")
        assert not fs.stat(f"/{name}").is_file
    assert list(fs.grep("x")) == []
    assert fs.statistics().total_size == len("inside")


def test_a_message_never_shows_the_target_of_a_link_to_the_outside(house: House) -> None:
    (house.root / "away").symlink_to(house.beside)
    fs = house.open("allow")
    with pytest.raises(FileNotFoundError) as caught:
        fs.read("/away/none/deep")
    assert str(house.root.parent) not in str(caught.value)
    with pytest.raises(FileNotFoundError) as caught:
        fs.write("/away/none/deep/file", "", create_parents=False)
    assert str(house.root.parent) not in str(caught.value)
