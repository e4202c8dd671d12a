"""Replacing a stored history while others want to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionConflict
from weakfs.session.durable import replacement
from weakfs.storage import LeaseLost


@pytest.fixture(params=["folder", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:{tmp_path}/store"


def test_nothing_is_replaced_when_another_process_took_the_lease_that_expired_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before the copy is complete, as if that took longer than the lease lasts.
    monkeypatch.setattr(replacement, "LEASE", 0.0)
    with Session.open(url, "s") as session:
        InMemoryFilesystem(session).write("/a", "1")
        head = session._log.head if session._log is not None else 0

    def copy_to(where: str) -> None:
        session.copy_to(where)
        others.append(Session.open(url, "s", exclusive=True))

    others: list[Session] = []
    with Session.open(url, "s") as session, pytest.raises(LeaseLost):
        replacement.replace_stream(url, "s", head, copy_to)

    InMemoryFilesystem(others[0]).write("/a", "2")
    others[0].close()
    with Session.open(url, "s") as again:
        assert InMemoryFilesystem(again).read("/a").content == "2"


def test_what_was_appended_after_the_lease_expired_is_not_replaced(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "LEASE", 0.0)
    with Session.open(url, "s") as session:
        InMemoryFilesystem(session).write("/a", "1")
        head = session._log.head if session._log is not None else 0

    def copy_to(where: str) -> None:
        session.copy_to(where)
        with Session.open(url, "s") as other:
            InMemoryFilesystem(other).write("/a", "2")

    with Session.open(url, "s") as session, pytest.raises(SessionConflict):
        replacement.replace_stream(url, "s", head, copy_to)

    with Session.open(url, "s") as again:
        assert InMemoryFilesystem(again).read("/a").content == "2"
