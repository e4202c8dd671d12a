"""Journals that do not belong where they are found: nothing is undone with them."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.dying import dying
from tests.models.host import exact, record
from weakfs import HostFilesystem
from weakfs.snapshots import Store


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "root" / "d").mkdir(parents=True)
    for name in ("file", "other", "d/inner"):
        (tmp_path / "root" / name).write_text("before\n")
    return tmp_path


def change(files: HostFilesystem) -> None:
    files.write("/file", "after\n")
    files.delete("/d", recursive=True)
    files.move("/other", "/moved")
    files.write("/new", "new\n")


def leave_unfinished(place: Path) -> None:
    """Let a process be killed in a transaction."""

    def work(_: Callable[[str], None]) -> None:
        files = HostFilesystem(place / "root", store=place / "store")
        with files.session.transaction():
            change(files)
            os.kill(os.getpid(), signal.SIGKILL)

    _, was_killed = dying(work)
    assert was_killed


def check_set_aside(place: Path, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = exact(record(place / "root"))
    caplog.clear()
    HostFilesystem(place / "root", store=store, read_only=True)
    assert "unfinished" not in caplog.text
    HostFilesystem(place / "root", store=store)
    assert exact(record(place / "root")) == before
    (aside,) = (store / "journals").iterdir()
    assert f"not undone in '{place / 'root'}'" in caplog.text
    assert f"remove '{aside}'" in caplog.text

    # It is neither reported again, nor does it keep anything in the store.
    caplog.clear()
    HostFilesystem(place / "root", store=store).write("/more", "more\n")
    assert caplog.text == ""
    Store(store).compact()


@pytest.mark.parametrize("is_in_its_place", [False, True])
def test_a_copy_of_a_store_undoes_no_work_that_was_committed_after_the_copy(
    place: Path, is_in_its_place: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store, copy = place / "store", place / "copy"
    files = HostFilesystem(place / "root", store=store)
    with files.session.transaction():
        change(files)
        shutil.copytree(store, copy)
    if is_in_its_place:
        shutil.rmtree(store)
        copy.rename(store)
        copy = store
    check_set_aside(place, copy, caplog)
    assert (place / "root" / "file").read_text() == "after\n"


def test_a_copy_of_a_store_undoes_no_command_that_was_committed_after_the_copy(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = HostFilesystem(place / "root", store=place / "store")
    with files.checkout() as checkout:
        (Path(checkout.directory) / "file").write_text("by a command\n")
        shutil.copytree(place / "store", place / "copy")
    check_set_aside(place, place / "copy", caplog)
    assert (place / "root" / "file").read_text() == "by a command\n"


def test_unfinished_work_is_not_undone_in_a_directory_that_took_the_place_of_another(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leave_unfinished(place)
    # The inode number of the old one stays in use.
    (place / "root").rename(place / "old")
    (place / "root").mkdir()
    (place / "root" / "new").write_text("of a new clone\n")
    check_set_aside(place, place / "store", caplog)


def test_unfinished_work_is_undone_although_store_and_directory_were_moved_and_back(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = exact(record(place / "root"))
    leave_unfinished(place)
    HostFilesystem(place / "root", store=place / "store", read_only=True)
    assert "unfinished" in caplog.text
    for name in ("root", "store"):
        (place / name).rename(place / "elsewhere")
        (place / "elsewhere").rename(place / name)
    (place / "store").rename(place / "moved store")
    HostFilesystem(place / "root", store=place / "moved store")
    assert exact(record(place / "root")) == before
    assert list((place / "moved store" / "journals").iterdir()) == []


def test_unfinished_work_of_an_earlier_version_is_undone(place: Path) -> None:
    before = exact(record(place / "root"))
    leave_unfinished(place)
    (log,) = (place / "store" / "journals").rglob("log")
    # Without checksums, and without a first line that says where the log belongs.
    lines = [line[9:] for line in log.read_bytes().splitlines(keepends=True)]
    assert lines[0].startswith(b'{"op":"begun"')
    log.write_bytes(b"".join(lines[1:]))
    HostFilesystem(place / "root", store=place / "store")
    assert exact(record(place / "root")) == before
