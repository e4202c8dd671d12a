"""A mount whose disk is full: programs see that there is no space, and everything that they stored stays."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integrations.mount.conftest import fuse, place
from weakfs import Filesystem, HostFilesystem, InMemoryFilesystem, Session

__all__ = ["fuse", "place"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fuse")]


def write(path: Path, content: bytes, flags: int = os.O_TRUNC) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fill(disk: Path) -> Path:
    """Fill a disk to the last byte."""
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as stream:
        for piece in (bytes(1 << 16), b"x"):
            try:
                while stream.write(piece):
                    pass
            except OSError:
                continue
    return ballast


def in_folder(disk: Path) -> tuple[Session, Filesystem]:
    session = Session.open(str(disk / "sessions"), "one")
    return session, InMemoryFilesystem(session)


def in_sqlite(disk: Path) -> tuple[Session, Filesystem]:
    session = Session.open(f"sqlite:{disk}/sessions.db", "one")
    return session, InMemoryFilesystem(session)


def on_host(disk: Path) -> tuple[Session, Filesystem]:
    (disk / "root").mkdir(exist_ok=True)
    session = Session.open(str(disk / "sessions"), "one")
    return session, HostFilesystem(disk / "root", session=session, store=disk / "store")


def steps(place: Path, number: int) -> Iterator[tuple[str, bytes | None, Callable[[], object]]]:
    """The name that each step changes, its content afterwards, and the step."""
    old, new, content = f"a{number}", f"b{number}", os.urandom(30_000)
    yield old, content, lambda: write(place / old, content)
    yield new, content, lambda: write(place / new, content)
    yield old, None, lambda: os.rename(place / old, place / f"c{number}")


@pytest.mark.parametrize("opened", [in_folder, in_sqlite, on_host])
def test_programs_see_a_full_disk_and_nothing_that_they_stored_is_lost(
    small_disk: Path, place: Path, opened: Callable[[Path], tuple[Session, Filesystem]]
) -> None:
    from weakfs.integrations.mount import mount

    stored: dict[str, bytes] = {}
    session, files = opened(small_disk)
    with closing(session), mount(files, place):
        for number in range(8):
            stored[f"a{number}"] = os.urandom(20_000)
            write(place / f"a{number}", stored[f"a{number}"])
        ballast, refused = fill(small_disk), list[int | None]()
        for number in range(8):
            for name, content, step in steps(place, number):
                try:
                    step()
                except OSError as error:
                    refused.append(error.errno)
                else:
                    if content is None:
                        content, name = stored.pop(name), f"c{number}"
                    stored[name] = content
                assert {one: (place / one).read_bytes() for one in stored} == stored
        assert len(refused) >= 8
        assert set(refused) == {errno.ENOSPC}
        ballast.unlink()
        write(place / "later", b"later")
        stored["later"] = b"later"
    session, files = opened(small_disk)
    with closing(session):
        assert {one: files.read_bytes(f"/{one}").content for one in stored} == stored
