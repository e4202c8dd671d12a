"""Changes that are refused, because of modes, quotas, depths or pieces; and how subscribers are notified."""

from __future__ import annotations

from collections.abc import Callable
from errno import EDQUOT, ENAMETOOLONG
from pathlib import Path

import pytest

from weakfs import Record, Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.filesystem import Filesystem, Limits


@pytest.mark.parametrize("mode", [-1, 0o10000, True, "0644", 0.0, None])
def test_a_mode_that_is_not_permission_bits_is_refused(mode: int) -> None:
    fs = InMemoryFilesystem()
    fs.write("/a", "x")
    before = fs.tree().fingerprint
    with pytest.raises(ValueError, match=r"cannot set the mode of '/a' .* use permission bits from 0 to 0o7777"):
        fs.chmod("/a", mode)
    assert fs.tree().fingerprint == before


@pytest.mark.parametrize("mode", [0, 0o644, 0o7777])
def test_every_mode_of_permission_bits_is_kept(mode: int) -> None:
    fs = InMemoryFilesystem()
    fs.write("/a", "x")
    fs.chmod("/a", mode)
    assert fs.stat("/a").mode == mode


def test_a_copy_of_a_file_keeps_to_the_exact_quotas() -> None:
    for limits in (Limits(max_total_size=15), Limits(max_node_count=3)):
        fs = InMemoryFilesystem(limits=limits)
        fs.write("/a", "12345")
        for name in ("/b", "/c"):
            fs.copy("/a", name)
        before = fs.tree().fingerprint
        with pytest.raises(OSError, match="are allowed; delete something first") as refused:
            fs.copy("/a", "/d")
        assert refused.value.errno == EDQUOT
        assert fs.tree().fingerprint == before
        fs.copy("/a", "/b")


def test_a_splice_keeps_to_the_exact_quota() -> None:
    fs = InMemoryFilesystem(limits=Limits(max_total_size=15))
    fs.write("/a", "0123456789")
    with pytest.raises(OSError, match="all files would take 16 bytes and 15 are allowed") as caught:
        fs.splice("/a", [(2, 4, b"x" * 8)])
    assert caught.value.errno == EDQUOT
    assert fs.read("/a").content == "0123456789"
    fs.splice("/a", [(2, 4, b"x" * 7)])
    assert fs.read("/a").content == "01xxxxxxx456789"
    fs.splice("/a", [(0, 15, b"")])
    assert fs.stat("/a").size_bytes == 0


def test_a_directory_moves_only_to_a_depth_that_its_contents_allow() -> None:
    fs = InMemoryFilesystem(limits=Limits(max_path_depth=4))
    fs.write("/a/b/c", "x")
    with pytest.raises(OSError, match="it is 5 segments deep and 4 are allowed") as caught:
        fs.move("/a", "/x/y/z")
    assert caught.value.errno == ENAMETOOLONG
    assert fs.exists("/a/b/c")
    assert not fs.exists("/x")
    fs.move("/a", "/x/y")
    assert fs.read("/x/y/b/c").content == "x"
    # A move upwards is never too deep, even if the entry is still deeper than is now allowed.
    strict = InMemoryFilesystem(fs.session, limits=Limits(max_path_depth=2))
    strict.move("/x/y", "/z")
    assert strict.read("/z/b/c").content == "x"


@pytest.mark.parametrize("piece", [(-1, 0, b""), (-1, 1, b"x"), (0, 4, b""), (2, 1, b"")])
def test_a_piece_outside_the_file_is_refused(piece: tuple[int, int, bytes]) -> None:
    fs = InMemoryFilesystem()
    fs.write("/a", "abc")
    with pytest.raises(ValueError, match="out of order or outside its 3 bytes"):
        fs.splice("/a", [piece])
    assert fs.read("/a").content == "abc"


CHANGES: dict[str, Callable[[Filesystem], object]] = {
    "write": lambda fs: fs.write("/a", "x"),
    "append": lambda fs: fs.append("/a", "x"),
    "splice": lambda fs: fs.splice("/a", [(0, 1, b"x")]),
    "mkdir": lambda fs: fs.mkdir("/new"),
    "delete": lambda fs: fs.delete("/a"),
    "move": lambda fs: fs.move("/a", "/b"),
    "copy": lambda fs: fs.copy("/a", "/b"),
    "chmod": lambda fs: fs.chmod("/a", 0o600),
    "symlink": lambda fs: fs.symlink("a", "/b"),
}


@pytest.mark.parametrize("place", ["memory", "host"])
@pytest.mark.parametrize("change", CHANGES)
def test_subscribers_are_notified_before_the_method_of_a_change_returns(
    tmp_path: Path, place: str, change: str
) -> None:
    session = Session()
    (tmp_path / "root").mkdir()
    fs: Filesystem = InMemoryFilesystem(session)
    if place == "host":
        fs = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
    fs.write("/a", "abc")
    heard: list[Record] = []
    session.subscribe(object, heard.append)
    CHANGES[change](fs)
    assert heard
    assert heard[-1] == session.records[-1]
