"""A host tree that changes while it is read: swapped entries are left out, and never followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.descriptors import no_descriptor_left
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits, SymlinkPolicy

Swap = Callable[[], object]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    host = tmp_path / "host"
    (host / "d").mkdir(parents=True)
    (host / "d" / "secret").write_text("public")
    (host / "f").write_text("file")
    (host / "z").write_text("last")
    return host


@pytest.fixture
def swapped(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Swap], None]:
    """Call a function once, just before a name is opened."""
    actual = os.open

    def arrange(name: str, swap: Swap) -> None:
        pending = [swap]

        def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if path == name and pending:
                pending.pop()()
            return actual(path, flags, mode, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", opened)

    return arrange


def mounted(host: Path, follow: SymlinkPolicy = "deny") -> InMemoryFilesystem:
    return InMemoryFilesystem(mounts=[HostMount(str(host), follow_symlinks=follow)])


def everything(fs: InMemoryFilesystem) -> str:
    return "".join(fs.read(entry.path).content for entry in fs.walk() if entry.is_file)


Arrange = Callable[[str, Swap], None]


@pytest.mark.parametrize("follow", ["deny", "within_root_only"])
def test_a_directory_swapped_for_a_link_is_not_followed(host: Path, swapped: Arrange, follow: SymlinkPolicy) -> None:
    def swap() -> None:
        (host / "d").rename(host / "moved")
        (host / "d").symlink_to("../outside")

    swapped("d", swap)
    fs = mounted(host, follow)
    assert "secret" not in everything(fs)
    assert fs.read("/z").content == "last"
    assert [path for path, _ in fs.mounts[0].skipped] == ["/d"]


def test_a_file_swapped_for_a_link_is_not_followed(host: Path, swapped: Arrange) -> None:
    def swap() -> None:
        (host / "f").unlink()
        (host / "f").symlink_to("../outside/secret")

    swapped("f", swap)
    fs = mounted(host)
    assert "secret" not in everything(fs)
    assert [path for path, _ in fs.mounts[0].skipped] == ["/f"]
    assert fs.exists("/z")


def test_a_file_swapped_for_a_fifo_does_not_block(host: Path, swapped: Arrange) -> None:
    def swap() -> None:
        (host / "f").unlink()
        os.mkfifo(host / "f")

    swapped("f", swap)
    assert mounted(host).mounts[0].skipped == (("/f", "is no longer a regular file"),)


@pytest.mark.parametrize("name", ["f", "d"])
def test_an_entry_that_vanishes_before_it_is_opened_is_reported_and_the_rest_is_copied(
    host: Path, swapped: Arrange, name: str
) -> None:
    swapped(name, lambda: (host / name).rename(host.parent / "away"))
    fs = mounted(host)
    assert fs.mounts[0].skipped == ((f"/{name}", "No such file or directory"),)
    assert fs.exists("/z")


def test_a_link_that_replaces_a_directory_within_a_followed_link_is_not_followed(host: Path, swapped: Arrange) -> None:
    (host / "a_link").symlink_to("d/secret")

    def swap() -> None:
        (host / "d").rename(host / "moved")
        (host / "d").symlink_to("../outside")

    swapped("d", swap)
    fs = mounted(host, "within_root_only")
    assert "secret" not in everything(fs)
    assert "/a_link" in [path for path, _ in fs.mounts[0].skipped]


def test_a_directory_swapped_for_a_link_after_listing_is_a_link(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actual = os.scandir
    pending = [True]

    class Listing:
        """A listing after which a directory is swapped."""

        def __init__(self, descriptor: int) -> None:
            with actual(descriptor) as found:
                self.entries = list(found)
            if pending and any(entry.name == "d" for entry in self.entries):
                pending.pop()
                (host / "d").rename(host.parent / "moved")
                (host / "d").symlink_to("../outside")

        def __enter__(self) -> list[os.DirEntry[str]]:
            return self.entries

        def __exit__(self, *error: object) -> None:
            return None

    monkeypatch.setattr(os, "scandir", Listing)
    fs = mounted(host)
    assert fs.readlink("/d") == "../outside"
    assert "secret" not in everything(fs)


def test_a_root_swapped_for_a_link_while_it_is_read_stays_the_directory_that_was_opened(
    host: Path, swapped: Arrange
) -> None:
    def swap() -> None:
        host.rename(host.parent / "moved")
        host.symlink_to("outside")

    swapped("d", swap)
    fs = mounted(host)
    assert fs.read("/d/secret").content == "public"
    assert fs.mounts[0].skipped == ()


def test_a_file_that_grows_is_read_no_further_than_the_limit(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actual = os.read
    sizes: list[int] = []

    def read(descriptor: int, size: int) -> bytes:
        piece = actual(descriptor, min(size, 7))
        sizes.append(len(piece))
        if piece == b"file":
            (host / "f").write_bytes(b"file" + bytes(1000))
        return piece

    monkeypatch.setattr(os, "read", read)
    fs = InMemoryFilesystem(mounts=[HostMount(str(host))], limits=Limits(max_file_size=20))
    assert [path for path, _ in fs.mounts[0].skipped] == ["/f"]
    assert sum(sizes) < 100


def test_a_mount_leaves_no_descriptor_open(host: Path) -> None:
    with no_descriptor_left():
        mounted(host)
