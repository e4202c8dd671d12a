"""Saving a session file with a sidecar, ended at every call: the old file or the new one has all of its contents."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.crashing import in_a_child
from tests.faults.syscalls import Call, System, raising
from tests.sampling import stride
from tests.session.files.contents import blobs, elsewhere, holding, load, tree_with
from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.session.blobs.blob import Held, digest_of
from weakfs.session.files.sidecar import BlobFolder

KEPT, OLD, NEW = b"kept " * 300, b"old " * 300, b"new " * 300


def old_session() -> Session:
    return elsewhere(KEPT, OLD)


def new_session() -> Session:
    return elsewhere(KEPT, NEW, b"another " * 100)


def readable(path: Path) -> dict[str, bytes]:
    """Load a session file and read all contents that it names."""
    session = load(path)
    assert not session.missing_blobs
    fs = InMemoryFilesystem(session)
    return {entry.path: fs.read_bytes(entry.path).content for entry in fs.walk() if entry.is_file}


def saved(session: Session, path: Path) -> dict[str, bytes]:
    session.save(path)
    return readable(path)


@pytest.fixture
def states(tmp_path: Path) -> list[dict[str, bytes]]:
    return [saved(old_session(), tmp_path / "old.json"), saved(new_session(), tmp_path / "new.json")]


def after_each_end(folder: Path, end: Callable[[System, Callable[[], object], int], bool]) -> list[dict[str, bytes]]:
    """Save over an old file, ended at one call after another; return what could be read after each."""
    found: list[dict[str, bytes]] = []
    number, ended = 0, True
    while ended:
        place = folder / str(number)
        place.mkdir()
        path = place / "s.json"
        old_session().save(path)
        new = new_session()
        ended = end(System(at_once=1000), lambda path=path, new=new: new.save(path), number)  # type: ignore[misc]
        found.append(readable(path))
        # The next save removes what a dead process left behind.
        new_session().save(path)
        assert sorted(blobs(path)) == sorted(digest_of(content).hex() for content in (KEPT, NEW, b"another " * 100))
        assert sorted(os.listdir(place)) == ["s.json", "s.json.blobs"]
        assert all(len(entry) == 2 for entry in os.listdir(place / "s.json.blobs"))
        number += stride()
    return found


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_leaves_the_old_contents_or_the_new(
    when: str, tmp_path: Path, states: list[dict[str, bytes]]
) -> None:
    def kill(system: System, save: Callable[[], object], number: int) -> bool:
        def die(call: Call) -> None:
            if call.number == number:
                os.kill(os.getpid(), signal.SIGKILL)

        def work() -> None:
            setattr(system, when, die)
            with system.in_force():
                save()

        return in_a_child(work) == signal.SIGKILL

    found = after_each_end(tmp_path, kill)
    assert len(found) > 20 // stride()
    assert all(state in states for state in found)
    turn = found.index(states[1])
    assert found == [states[0]] * turn + [states[1]] * (len(found) - turn)


@pytest.mark.slow
@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_leaves_the_old_contents_or_the_new(
    code: int, tmp_path: Path, states: list[dict[str, bytes]]
) -> None:
    told: list[tuple[int | None, str]] = []

    def fail(system: System, save: Callable[[], object], number: int) -> bool:
        error = raising(number, OSError(code, os.strerror(code)))
        # A descriptor is closed even if closing it fails.
        system.before = lambda call: error(call) if call.name != "close" else None
        system.after = lambda call: error(call) if call.name == "close" else None
        with system.in_force():
            try:
                save()
            except OSError as failed:
                told.append((failed.errno, str(failed)))
        return len(system.calls) > number

    found = after_each_end(tmp_path, fail)
    assert all(state in states for state in found)
    assert len(told) > 20 // stride()
    assert [text for number, text in told if number != code or "s.json" not in text] == []


def test_a_full_disk_leaves_no_new_contents_behind(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    old_session().save(path)
    before, lying = path.read_bytes(), blobs(path)
    with System(at_once=1000).in_force() as system:
        writes = 0

        def fill(call: Call) -> None:
            nonlocal writes
            writes += call.name == "write"
            if call.name == "write" and writes > 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        system.before = fill
        with pytest.raises(OSError, match=r"cannot save to .*No space left.*unchanged") as caught:
            new_session().save(path)
    assert caught.value.errno == errno.ENOSPC
    assert (path.read_bytes(), blobs(path)) == (before, lying)


RENAMING = ("rename", "replace")


def test_contents_are_on_the_disk_before_the_file_that_needs_them(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    old_session().save(path)
    with System().in_force() as system:
        new_session().save(path)
    named = [(call.name, call.arguments) for call in system.calls]
    renamed = [
        number for number, (name, arguments) in enumerate(named) if name in RENAMING and arguments[1] == str(path)
    ]
    assert len(renamed) == 1
    before, after = named[: renamed[0]], named[renamed[0] :]
    placed = [arguments[1] for name, arguments in before if name in RENAMING]
    assert len(placed) == 2
    last = max(number for number, (name, _) in enumerate(before) if name in RENAMING)
    synced = [arguments[0] for name, arguments in before[last:] if name == "open"]
    assert {*map(os.path.dirname, placed), f"{path}.blobs", str(tmp_path)} <= set(synced)
    assert "unlink" not in {name for name, arguments in before if not str(arguments[0]).endswith(".tmp")}
    assert [name for name, _ in after if name == "unlink"]


def test_a_save_without_contents_leaves_the_files_of_a_concurrent_save_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.json"
    written = tmp_path / "s.json.blobs" / ".new" / "content"
    locked = BlobFolder.locked

    @contextmanager
    def then_another_one_begins(folder: BlobFolder, *, make: bool) -> Generator[bool]:
        with locked(folder, make=make) as is_there:
            assert not is_there
            written.parent.mkdir(parents=True)
            written.write_bytes(b"half")
            yield is_there

    monkeypatch.setattr(BlobFolder, "locked", then_another_one_begins)
    holding(tree_with(a=b"none")).save(path)
    assert written.read_bytes() == b"half"


def test_concurrent_saves_leave_a_complete_file(tmp_path: Path) -> None:
    from threading import Thread

    path = tmp_path / "s.json"
    sessions = [elsewhere(KEPT, b"%d" % number) for number in range(4)] + [holding(tree_with(a=b"none"))]

    def work(session: Session) -> None:
        for _ in range(10):
            session.save(path)

    threads = [Thread(target=work, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    readable(path)
    holding(tree_with(a=Held().put(KEPT))).save(path)
    assert list(blobs(path)) == [digest_of(KEPT).hex()]
