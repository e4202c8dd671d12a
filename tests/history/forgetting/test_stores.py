"""Forgetting in snapshot stores: snapshots with the text are gone, and all others can be restored."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.history.forgetting.files import files_with
from weakfs import HostFilesystem, Session, SessionClosed, Toolset
from weakfs.history import forget

SECRET = "sk-live-9f8e7d6c"
Kind = Literal["tree", "git", "tar"]


def worked_in(tmp_path: Path, session: Session, kind: Kind = "tree") -> HostFilesystem:
    """Work in a directory whose files temporarily contain the secret."""
    (tmp_path / "root").mkdir()
    fs = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store", snapshots=kind)
    tools = Toolset(session, fs)
    fs.write("/big.txt", "kept\n" * 5_000)
    session.snapshot("before")
    tools.call("write_file", {"path": "/a.txt", "content": f"key={SECRET}\n" * 40})
    session.snapshot("with it")
    (tmp_path / "root" / f"named {SECRET}").write_text("a name")
    fs.snapshot("in a name")
    (tmp_path / "root" / f"named {SECRET}").unlink()
    tools.call("write_file", {"path": "/a.txt", "content": "key=none\n"})
    session.snapshot("after")
    return fs


@pytest.mark.parametrize("kind", ["tree", "git", "tar"])
@pytest.mark.parametrize("where", [None, "folder:{}/s", "sqlite:{}/s.db"])
def test_no_file_of_the_store_contains_the_text_afterwards(tmp_path: Path, kind: Kind, where: str | None) -> None:
    url = where and where.format(tmp_path)
    session = Session(session_id="mine") if url is None else Session.open(url, "mine")
    fs = worked_in(tmp_path, session, kind)
    assert files_with(SECRET, tmp_path / "store")
    preview = forget(session, text=SECRET, stores=[fs], preview=True)
    assert len(fs.store.list()) == 4

    report = forget(session, text=SECRET, stores=[fs])

    assert report.dropped == preview.dropped
    assert len(report.dropped) == 2
    assert report.found_in == ()
    assert files_with(SECRET, tmp_path) == ()
    assert not any("store" in one for one in report.unreached)
    again = session
    if url is not None:
        with pytest.raises(SessionClosed):
            session.snapshot()
        again = Session.open(url, "mine")
        HostFilesystem(tmp_path / "root", session=again, store=tmp_path / "store")
    for tag, content in (("before", None), ("after", "key=none\n")):
        again.rollback(tag)
        file = tmp_path / "root" / "a.txt"
        assert (file.read_text() if file.exists() else None) == content
        assert (tmp_path / "root" / "big.txt").read_text() == "kept\n" * 5_000
    # The session knows the files of its own snapshots, with the placeholder.
    again.rollback("with it")
    assert (tmp_path / "root" / "a.txt").read_text() == "key=[forgotten.....]\n" * 40
    assert files_with(SECRET, tmp_path) == ()
    again.close()


def test_everything_that_a_file_ever_contained_is_dropped_from_a_store(tmp_path: Path) -> None:
    session = Session(session_id="mine")
    fs = worked_in(tmp_path, session)
    fs.delete("/a.txt")
    report = forget(session, "/a.txt", stores=[fs.store])
    assert files_with(SECRET, tmp_path / "store" / "packs") == ()
    assert [one.tag for one in fs.store.list()] == ["before"]
    assert len(report.dropped) == 3


def test_a_store_without_the_text_is_unchanged(tmp_path: Path) -> None:
    session = Session(session_id="mine")
    fs = worked_in(tmp_path, session)
    report = forget(session, text="never written", stores=[fs])
    assert report.is_empty
    assert len(fs.store.list()) == 4
    session.rollback("with it")


def test_a_store_that_was_not_passed_is_named_in_the_report(tmp_path: Path) -> None:
    session = Session(session_id="mine")
    fs = worked_in(tmp_path, session)
    report = forget(session, text=SECRET)
    assert any("pass its store too" in one for one in report.unreached)
    assert len(fs.store.list()) == 4
