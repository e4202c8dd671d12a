"""Forgetting in a stored session while other processes change it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest

from tests.history.forgetting.files import files_with
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.history import forget
from weakfs.history.forgetting import forget as forgetting
from weakfs.session import SessionError
from weakfs.session.durable import stream_replacement
from weakfs.session.durable.commits import log_state
from weakfs.storage import StorageError

SECRET = "sk-live-9f8e7d6c"


@pytest.fixture(params=["folder:{}/store", "sqlite:{}/sessions.db"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Store a session with the secret in a file."""
    url: str = request.param.format(tmp_path)
    with Session.open(url, "mine") as session:
        InMemoryFilesystem(session).write("/a.txt", f"key={SECRET}")
    return url


class Writer:
    """Another process that writes the secret to one more file before each rewriting of the history."""

    def __init__(self, where: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session = Session.open(where, "mine", on_conflict="merge")
        self.left = most
        self.written: list[str] = []
        real = forgetting._rewritten

        def rewritten(*values: Any) -> Any:
            if self.left:
                self.write()
            return real(*values)

        monkeypatch.setattr(forgetting, "_rewritten", rewritten)

    def write(self) -> None:
        self.left -= 1
        self.written.append(f"/{len(self.written)}.txt")
        InMemoryFilesystem(self.session).write(self.written[-1], f"also {SECRET}")


def close_replaced(session: Session) -> None:
    """Close a session whose stored history may have been replaced."""
    with suppress(StorageError):
        session.close()


@pytest.fixture
def writer(where: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    writer = Writer(where, 1, monkeypatch)
    yield writer
    close_replaced(writer.session)


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_what_others_stored_before_is_forgotten_too(
    where: str, tmp_path: Path, writer: Writer, on_conflict: Literal["raise", "merge"]
) -> None:
    session = Session.open(where, "mine", on_conflict=on_conflict)
    writer.write()

    report = forget(session, text=SECRET)

    assert len(report.records) == 2
    assert files_with(SECRET, tmp_path) == ()
    with Session.open(where, "mine") as again:
        assert InMemoryFilesystem(again).read("/0.txt").content == "also [forgotten.....]"


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_what_others_store_meanwhile_is_forgotten_too(
    where: str, tmp_path: Path, writer: Writer, on_conflict: Literal["raise", "merge"]
) -> None:
    session = Session.open(where, "mine", on_conflict=on_conflict)

    report = forget(session, text=SECRET)

    assert writer.written == ["/0.txt"]
    assert len(report.records) == 2
    assert files_with(SECRET, tmp_path) == ()
    with Session.open(where, "mine") as again:
        assert InMemoryFilesystem(again).read("/0.txt").content == "also [forgotten.....]"


def test_nothing_is_lost_if_others_write_during_every_attempt(
    where: str, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if rewriting the history took longer than the longest lease.
    monkeypatch.setattr(log_state, "compaction_seconds", lambda *_: 0.0)
    writer.left = 100

    with Session.open(where, "mine", on_conflict="merge") as session:
        with pytest.raises(SessionError, match=r"during each of 5 attempts.*exclusive=True"):
            forget(session, text=SECRET)

        InMemoryFilesystem(session).write("/mine.txt", "still works")
    assert len(writer.written) == 5
    with Session.open(where, "mine") as again:
        files = InMemoryFilesystem(again)
        assert all(SECRET in files.read(path).content for path in ("/a.txt", *writer.written))


def test_a_writer_that_waits_meanwhile_learns_that_the_history_was_replaced(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Session.open(where, "mine", on_conflict="merge")
    errors: list[BaseException] = []

    def write() -> None:
        try:
            InMemoryFilesystem(other).write("/late.txt", f"late {SECRET}")
        except StorageError as error:
            errors.append(error)

    thread = Thread(target=write)
    name = "_exchange" if where.startswith("folder:") else "_exchange_rows"
    real = getattr(stream_replacement, name)

    def exchange(*values: Any) -> None:
        thread.start()
        real(*values)

    monkeypatch.setattr(stream_replacement, name, exchange)
    forget(Session.open(where, "mine"), text=SECRET)
    thread.join()
    close_replaced(other)

    (error,) = errors
    assert "open it again" in str(error)
    assert files_with(SECRET, tmp_path) == ()


def test_nothing_is_stored_in_the_old_history_while_its_files_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"folder:{tmp_path}/store"
    with Session.open(where, "mine") as session:
        InMemoryFilesystem(session).write("/a.txt", f"key={SECRET}")
    other = Session.open(where, "mine", on_conflict="merge")
    real = shutil.rmtree
    removed: list[str] = []

    def remove(path: str) -> None:
        # The files are removed in any order.
        for lease in Path(path).rglob("lease"):
            lease.unlink()
        with pytest.raises(StorageError, match="open it again"):
            InMemoryFilesystem(other).write("/late.txt", "late")
        removed.append(path)
        real(path)

    monkeypatch.setattr(shutil, "rmtree", remove)
    forget(Session.open(where, "mine"), text=SECRET)

    assert len(removed) == 1
    close_replaced(other)


def test_a_session_that_is_opened_exclusively_can_forget(where: str, tmp_path: Path) -> None:
    session = Session.open(where, "mine", exclusive=True)
    Toolset(session).call("write_file", {"path": "/b.txt", "content": SECRET})

    forget(session, text=SECRET)

    assert files_with(SECRET, tmp_path) == ()
    with Session.open(where, "mine", exclusive=True) as again:
        InMemoryFilesystem(again).write("/later.txt", "still works")
