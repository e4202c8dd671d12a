"""Watchers: they receive every record that other processes store, until their session is closed."""

from __future__ import annotations

from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionClosed, SessionError


def test_a_session_follows_changes_by_another_process() -> None:
    store = MemoryStreams()
    one, other = Session.open(store, "s"), Session.open(store, "s")
    InMemoryFilesystem(one).write("/a", "1")
    assert [record.seq for record in other.watch(timeout=0)] == [1]
    with pytest.raises(SessionError, match="in memory"):
        Session().watch()


@pytest.mark.parametrize("scheme", ["folder", "sqlite"])
def test_closing_a_session_ends_its_watchers(tmp_path: Path, scheme: str) -> None:
    session = Session.open(f"{scheme}:{tmp_path / 'store'}", "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1")
    seen: Queue[int | None] = Queue()

    def follow() -> None:
        for record in session.watch():
            seen.put(record.seq)
        seen.put(None)

    watcher = Thread(target=follow)
    watcher.start()
    # Written again until the watcher is watching.
    while seen.empty():
        fs.write("/a", "2")
        watcher.join(0.01)
    session.close()
    watcher.join()
    assert [*iter(seen.get, None)][-1] == session.seq


def test_a_watcher_receives_records_made_before_its_session_was_closed(tmp_path: Path) -> None:
    session = Session.open(tmp_path, "s")
    fs = InMemoryFilesystem(session)
    watched = session.watch()
    fs.write("/a", "1")
    assert next(watched).seq == 1
    fs.write("/a", "2")
    session.close()
    assert [record.seq for record in watched] == [2]


def test_a_closed_session_neither_refreshes_nor_writes_checkpoints(tmp_path: Path) -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    session.close()
    InMemoryFilesystem(Session.open(store)).write("/a", "1")
    for forbidden in (session.refresh, session.checkpoint):
        with pytest.raises(SessionClosed):
            forbidden()
    assert session.seq == 0
    assert list(session.watch()) == []
