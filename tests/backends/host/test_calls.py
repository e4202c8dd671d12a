"""How a host directory is accessed: with few system calls, none of which follows a link."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from errno import EFBIG, EINVAL
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from weakfs import HostFilesystem, Session
from weakfs.backends.host import primitives as host_primitives
from weakfs.reducers.tree import leaf as leaves
from weakfs.snapshots.directory import openat2
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.nodes import read_examined

COUNTED = ("open", "stat", "fstat", "mkdir", "scandir")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "a" / "b" / "c").mkdir(parents=True)
    for number in range(10):
        (tmp_path / "root" / "a" / "b" / "c" / f"{number}").write_text(f"line {number}\n")
    return tmp_path / "root"


def counted(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls of some functions of `os`; directories opened with openat2 count as "open"."""
    calls: Counter[str] = Counter()

    def counting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return call(*args, **options)

        return count

    with monkeypatch.context() as patch:
        for name in COUNTED:
            patch.setattr(os, name, counting(name, getattr(os, name)))
        patch.setattr(openat2, "open_directory", counting("open", openat2.open_directory))
        act()
    return calls


def test_a_search_opens_each_directory_twice_and_each_file_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = HostFilesystem(root, store=root.parent / "store")
    fs.grep("line")

    calls = counted(lambda: fs.grep("line"), monkeypatch)

    # One of the four directories contains files, and is opened once more for them.
    assert calls["open"] <= 4 + 1 + 10
    assert calls["fstat"] <= 10 + 4


def test_a_read_opens_its_directory_and_its_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = HostFilesystem(root, store=root.parent / "store")
    fs.read("/a/b/c/1")

    calls = counted(lambda: fs.read("/a/b/c/2"), monkeypatch)

    assert calls == {"open": 2, "stat": 2, "fstat": 1}


def test_a_write_does_not_open_its_directory_for_each_step(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = HostFilesystem(root, session=Session(), store=root.parent / "store")
    fs.write("/a/b/c/1", "one\n")

    calls = counted(lambda: fs.write("/a/b/c/2", "two\n"), monkeypatch)

    assert calls["open"] <= 10
    assert calls["stat"] + calls["fstat"] <= 18
    assert calls["mkdir"] == 0


def test_only_the_thread_that_opened_a_directory_uses_its_descriptor(root: Path) -> None:
    disk = HostDirectory(str(root))
    kept: list[int | None] = []

    with disk.keeping_open(("a", "b")):
        own = disk.kept_open(("a", "b"))
        thread = Thread(target=lambda: kept.append(disk.kept_open(("a", "b"))))
        thread.start()
        thread.join()
        assert disk.kept_open(("a",)) is None

    assert own is not None
    assert kept == [None]
    assert disk.kept_open(("a", "b")) is None


def test_a_link_that_replaces_an_open_directory_is_not_followed(root: Path) -> None:
    disk, outside = HostDirectory(str(root)), root.parent / "outside"
    outside.mkdir()

    with disk.keeping_open(("a", "b")):
        (root / "a" / "b").rename(root / "a" / "moved")
        (root / "a" / "b").symlink_to(outside)
        disk.put_leaf(("a", "b", "new"), leaves.file(b"new", at=1))
        disk.stamp(("a", "b"), 5)

    assert list(outside.iterdir()) == []
    assert outside.stat().st_mtime_ns != 5
    assert (root / "a" / "moved" / "new").read_bytes() == b"new"
    assert (root / "a" / "moved").stat().st_mtime_ns == 5


@pytest.mark.parametrize("has_openat2", [True, False])
@pytest.mark.parametrize("link", ["a", "a/b", "a/b/c"])
def test_a_link_within_a_path_is_not_a_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch, link: str, has_openat2: bool
) -> None:
    if not has_openat2:
        monkeypatch.setattr(openat2, "is_available", lambda: False)
    (root / link).rename(root / "moved")
    (root / link).symlink_to(root / "moved")

    with pytest.raises(NotADirectoryError):
        HostDirectory(str(root)).open_directory(("a", "b", "c"))


def test_a_search_skips_files_that_are_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a" / "large").write_text("line of a large file\n")
    fs = HostFilesystem(root, store=root.parent / "store")
    monkeypatch.setattr(host_primitives, "MOST_SEARCHED", 10)

    found = fs.grep("line")

    assert [match.path for match in found] == [f"/a/b/c/{number}" for number in range(10)]
    assert found.files_searched == 10


def test_an_entry_that_is_no_longer_a_file_is_not_read(root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to("a/b/c/1")
    directory = os.open(root, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="not a regular file") as fifo:
            read_examined(directory, b"fifo")
        with pytest.raises(OSError, match="symbolic links"):
            read_examined(directory, b"link")
        with pytest.raises(OSError, match="too large") as large:
            read_examined(directory, b"a/b/c/1", 3)
    finally:
        os.close(directory)
    assert (fifo.value.errno, large.value.errno) == (EINVAL, EFBIG)


def test_a_file_that_became_a_link_since_it_was_looked_up_is_not_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = HostFilesystem(root, store=root.parent / "store")
    secret = root.parent / "secret"
    secret.write_text("secret")
    limits = type(fs.limits)
    check = limits.check_size

    def check_and_swap(self: Any, path: str, size: int) -> None:
        check(self, path, size)
        (root / "a" / "b" / "c" / "1").unlink()
        (root / "a" / "b" / "c" / "1").symlink_to(secret)

    monkeypatch.setattr(limits, "check_size", check_and_swap)

    with pytest.raises(OSError, match="symbolic link"):
        fs.write("/a/b/c/1", "spoiled")
    assert secret.read_text() == "secret"
    assert (root / "a" / "b" / "c" / "1").is_symlink()
