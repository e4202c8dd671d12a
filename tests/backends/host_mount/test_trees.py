"""Host trees copied into memory: everything is copied exactly."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from random import Random

import pytest

from tests.models.trees import ODD_NAMES, Plain, flatten, grow, lay, random_tree, write_out
from weakfs import Session
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.reducers import TreeMounted
from weakfs.reducers.tree import name_escaping as names

D = ("d", 0o755)


def f(content: bytes = b"x\n", mode: int = 0o644) -> tuple[str, bytes, int]:
    return ("f", content, mode)


def mounted(root: Path, **options: object) -> InMemoryFilesystem:
    return InMemoryFilesystem(mounts=[HostMount(str(root), **options)])  # type: ignore[arg-type]  # passed through


@pytest.mark.parametrize("seed", range(25))
def test_a_mounted_tree_equals_the_tree_on_the_host(seed: int, tmp_path: Path) -> None:
    tree = random_tree(Random(seed), names=ODD_NAMES, width=8)
    write_out(tree, tmp_path)
    fs = mounted(tmp_path)
    assert flatten(fs.tree()) == flatten(tree)
    assert fs.tree().fingerprint == tree.fingerprint
    assert fs.mounts[0].skipped == ()


def test_times_of_files_links_and_directories_are_kept_to_the_nanosecond(tmp_path: Path) -> None:
    lay(tmp_path, {"/d": D, "/d/f": f(), "/d/l": ("l", "f"), "/empty": D})
    times = {"d/f": 1_111_111_111_222_333_444, "d/l": 5, "d": 1_000_000_000_000_000_001, "empty": -1_500_000_000}
    for path, at in times.items():
        os.utime(tmp_path / path, ns=(at, at), follow_symlinks=False)
    fs = mounted(tmp_path)
    assert {path: fs.stat(path).modified_ns for path in times} == times
    assert {path: fs.stat(path).created_ns for path in times} == times


@pytest.mark.parametrize("at", [2**63 + 5, 10**20, -(2**63) - 1])
def test_a_time_in_a_distant_century_does_not_prevent_saving(at: int, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "f").write_text("x")
    try:
        os.utime(tmp_path / "host" / "f", ns=(at, at))
    except OverflowError:
        pytest.skip("this filesystem keeps no such time")
    session = Session()
    fs = InMemoryFilesystem(session, mounts=[HostMount(str(tmp_path / "host"))])
    session.save(tmp_path / "session.json")
    loaded = InMemoryFilesystem(Session.load(tmp_path / "session.json"))
    assert loaded.stat("/f") == fs.stat("/f")


def test_permission_bits_are_kept_including_special_ones(tmp_path: Path) -> None:
    flat: Plain = {"/": ("d", 0o711), "/d": ("d", 0o1777), "/a": f(mode=0o4755), "/b": f(mode=0o400), "/c": f(mode=0)}
    write_out(grow(flat), tmp_path)
    if os.geteuid():
        del flat["/c"]  # nobody but root may read it
    assert {path: entry for path, entry in flatten(mounted(tmp_path).tree()).items() if path in flat} == flat


def test_names_that_are_not_text_are_reached_by_their_escaped_form(tmp_path: Path) -> None:
    for raw in (b"caf\xe9", b"back\\slash", "\uf741".encode(), b"line\nbreak", b"-rf"):
        with open(os.fsencode(tmp_path) + b"/" + raw, "wb") as stream:
            stream.write(raw)
    fs = mounted(tmp_path)
    assert [entry.name for entry in fs.list()] == [
        "-rf",
        "back\uf75cslash",
        "caf\uf7e9",
        "line\nbreak",
        "\uf7ef\uf79d\uf781",
    ]
    for entry in fs.list():
        assert names.to_bytes(entry.name) == fs.read_bytes(entry.path).content


def test_the_longest_names_on_a_host_are_reachable_whatever_their_bytes(tmp_path: Path) -> None:
    for raw in (b"\xff" * 255, b"\\" * 255, "\u00e9".encode() * 127, b"n" * 255):
        with open(os.fsencode(tmp_path) + b"/" + raw, "wb") as stream:
            stream.write(raw)
    fs = mounted(tmp_path)
    assert fs.mounts[0].skipped == ()
    assert len(fs.list()) == 4
    again = InMemoryFilesystem()
    again.import_bytes(fs.export_bytes())
    assert again.tree().fingerprint == fs.tree().fingerprint


def test_a_link_is_copied_as_a_link_wherever_it_points(tmp_path: Path) -> None:
    targets = {"a": "b", "dangling": "gone/x", "out": "../../etc/passwd", "absolute": "/etc/passwd", "loop": "loop"}
    for name, target in targets.items():
        (tmp_path / name).symlink_to(target)
    os.symlink(b"\xff\\", tmp_path / "bytes")
    fs = mounted(tmp_path)
    assert {name: fs.readlink(name) for name in targets} == targets
    assert fs.readlink("bytes") == "\uf7ff\uf75c"
    assert fs.mounts[0].skipped == ()


def test_special_files_are_skipped_unopened_and_reported(tmp_path: Path) -> None:
    lay(tmp_path, {"/d": D, "/f": f()})
    os.mkfifo(tmp_path / "d" / "fifo")
    opened = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        opened.bind("socket")
    finally:
        os.chdir(here)
        opened.close()
    fs = mounted(tmp_path)
    assert fs.mounts[0].skipped == (("/d/fifo", "is a FIFO"), ("/socket", "is a socket"))
    assert [entry.path for entry in fs.walk()] == ["/d", "/f"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_is_skipped_and_reported(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this root may not make device nodes")
    assert mounted(tmp_path).mounts[0].skipped == (("/zero", "is a device"),)


def test_a_mount_below_the_root_creates_its_parents_and_prefixes_reported_paths(tmp_path: Path) -> None:
    lay(tmp_path, {"/a": f()})
    os.mkfifo(tmp_path / "fifo")
    fs = mounted(tmp_path, mount_path="deep\\down/./here/")
    assert [entry.path for entry in fs.walk()] == ["/deep", "/deep/down", "/deep/down/here", "/deep/down/here/a"]
    assert fs.mounts[0].path == "/deep/down/here"
    assert fs.mounts[0].skipped == (("/deep/down/here/fifo", "is a FIFO"),)


def test_a_mount_is_one_event_whose_report_says_what_was_copied(tmp_path: Path) -> None:
    lay(tmp_path, {"/d": D, "/d/a": f(b"12345"), "/l": ("l", "d"), "/e": D})
    session = Session(clock=lambda: 77)
    fs = InMemoryFilesystem(session, mounts=[HostMount(tmp_path)])
    (record,) = session.records
    assert isinstance(record.event, TreeMounted)
    (report,) = fs.mounts
    assert (report.file_count, report.directory_count, report.total_size, report.at) == (2, 2, 5, 77)
    assert report.source == str(tmp_path.resolve())


def test_hard_links_are_two_files_and_an_empty_directory_is_a_directory(tmp_path: Path) -> None:
    lay(tmp_path, {"/a": f(b"same"), "/empty": D})
    os.link(tmp_path / "a", tmp_path / "b")
    fs = mounted(tmp_path)
    fs.write("/a", "other")
    assert fs.read("/b").content == "same"
    assert fs.list("/empty") == ()


def test_a_mount_reads_the_host_once_and_never_writes_to_it(tmp_path: Path) -> None:
    lay(tmp_path, {"/a": f(b"host")})
    fs = mounted(tmp_path)
    (tmp_path / "a").write_text("changed on the host")
    assert fs.read("/a").content == "host"
    fs.write("/a", "changed in memory")
    fs.delete("/a")
    assert (tmp_path / "a").read_text() == "changed on the host"


def test_a_tree_hundreds_of_directories_deep_is_mounted_or_reported(tmp_path: Path) -> None:
    from weakfs.filesystem import Limits

    deep = tmp_path.joinpath(*["d"] * 500)
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path))], limits=Limits(max_path_depth=None))
    assert fs.statistics().node_count == 501 or fs.mounts[0].skipped
    for descriptor in range(3, 40):
        assert not _is_directory_below(descriptor, tmp_path)


def _is_directory_below(descriptor: int, root: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(root))
    except OSError:
        return False
