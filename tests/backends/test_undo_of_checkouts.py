"""What a program does in a checkout is one operation, which is undone and redone at once, on every backend."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem, MountedFilesystem, OverlayFilesystem


def memory(session: Session, _: Path) -> InMemoryFilesystem:
    return InMemoryFilesystem(session)


def host(session: Session, place: Path) -> HostFilesystem:
    (place / "root").mkdir()
    return HostFilesystem(place / "root", session=session, store=place / "store")


def overlay(session: Session, _: Path) -> OverlayFilesystem:
    return OverlayFilesystem(InMemoryFilesystem(), session)


def mounted(session: Session, place: Path) -> MountedFilesystem:
    return MountedFilesystem(host(session, place), "/workspace")


Made = InMemoryFilesystem | HostFilesystem | OverlayFilesystem | MountedFilesystem


@pytest.mark.parametrize("make", [memory, host, overlay, mounted])
def test_a_checkout_is_undone_as_one_operation(make: Callable[[Session, Path], Made], tmp_path: Path) -> None:
    session = Session(session_id="s")
    files = make(session, tmp_path)
    top = "/workspace" if isinstance(files, MountedFilesystem) else ""
    files.write(f"{top}/first", "1")
    files.write(f"{top}/gone", "1")
    before = files.tree().fingerprint
    with files.checkout(top or "/") as work:
        os.unlink(f"{work.directory}/gone")
        os.mkdir(f"{work.directory}/d")
        for name in ("first", "second", "d/third"):
            Path(work.directory, name).write_text("2")
    after = files.tree().fingerprint
    session.undo()
    assert files.tree().fingerprint == before
    session.redo()
    assert files.tree().fingerprint == after


@pytest.mark.parametrize("make", [memory, host, overlay])
def test_a_checkout_belongs_to_the_transaction_that_it_is_part_of(
    make: Callable[[Session, Path], Made], tmp_path: Path
) -> None:
    session = Session(session_id="s")
    files = make(session, tmp_path)
    with session.transaction(cause="call"), files.checkout() as work:
        Path(work.directory, "a").write_text("1")
        Path(work.directory, "b").write_text("1")
    session.revert("call")
    assert not files.tree().node_count
