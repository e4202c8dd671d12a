"""A host directory attached to a durable session that is reopened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import HostFilesystem, Session
from weakfs.reducers import ExternalFsSnapshot, FileWritten
from weakfs.session import RolledBack
from weakfs.storage import OutcomeUnknown


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src/app.py").write_text("port = 80\n")
    return root


@pytest.fixture(params=["folder", "sqlite"])
def where(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    return f"{request.param}:{tmp_path / 'sessions'}"


def opened(where: str, root: Path) -> tuple[Session, HostFilesystem]:
    session = Session.open(where, "s")
    return session, HostFilesystem(root, session=session, store=root.parent / "store")


def files_of(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_snapshot_from_before_reopening_restores_the_directory(where: str, root: Path) -> None:
    session, fs = opened(where, root)
    before = files_of(root)
    session.snapshot("before")
    fs.write("/src/app.py", "port = 81\n")
    fs.write("/new.txt", "new\n" * 1000)
    after = files_of(root)
    session.snapshot("after")
    session.close()

    session, fs = opened(where, root)
    fs.delete("/src", recursive=True)
    session.rollback("before")
    assert files_of(root) == before
    session.checkpoint()
    session.close()

    session, fs = opened(where, root)
    session.rollback("after")
    assert files_of(root) == after
    assert len(session[ExternalFsSnapshot].all()) >= 2
    session.close()


def test_a_transaction_that_writes_a_file_and_takes_a_snapshot_of_it_is_read_again(where: str, root: Path) -> None:
    session, fs = opened(where, root)
    large = "long enough to be stored apart\n" * 1000
    with session.transaction():
        fs.write("/new.txt", large)
        session.snapshot("with it")
    written = [str(record) for record in session.records]
    session.close()

    session, fs = opened(where, root)
    assert [str(record) for record in session.records] == written
    assert [record.event.content for record in session.records if isinstance(record.event, FileWritten)] == [
        large.encode()
    ]
    fs.delete("/new.txt")
    session.rollback("with it")
    assert files_of(root)["new.txt"] == large
    session.close()


def test_undoing_a_rollback_after_reopening_restores_the_directory(where: str, root: Path) -> None:
    session, fs = opened(where, root)
    first = session.snapshot()
    fs.write("/new.txt", "new")
    after = files_of(root)
    session.rollback(first)
    seq = session.seq
    session.close()
    session, _ = opened(where, root)
    session.rollback(seq - 1)
    assert files_of(root) == after
    session.close()


def test_a_transaction_that_fails_after_reopening_restores_the_directory(where: str, root: Path) -> None:
    session, fs = opened(where, root)
    fs.write("/new.txt", "new")
    session.close()
    session, fs = opened(where, root)
    before, seq = files_of(root), session.seq
    with pytest.raises(RuntimeError), session.transaction():
        fs.write("/src/app.py", "gone")
        fs.delete("/new.txt")
        raise RuntimeError
    assert files_of(root) == before
    assert session.seq > seq
    expected = session.to_bytes()
    session.close()
    session, _ = opened(where, root)
    assert session.to_bytes() == expected
    session.close()


def test_snapshots_of_a_host_directory_are_present_after_reopening_a_session(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("before")
    session = Session.open(tmp_path / "store", "s")
    fs = HostFilesystem(root, session=session)
    session.snapshot("first")
    fs.write("/a", "after")
    fs.write("/b", "new")
    again = Session.open(tmp_path / "store")
    assert again.to_bytes() == session.to_bytes()
    session.close()
    HostFilesystem(root, session=again)
    again.rollback("first")
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("a", "before")]
    assert Session.open(tmp_path / "store").to_bytes() == again.to_bytes()


def test_a_host_change_whose_commit_was_stored_after_all_stays_in_files_and_session(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = HostFilesystem(root, session=session)

    def lose_the_answer(moment: str) -> None:
        if moment == "after":
            store.fault = lose_every_request
            raise OutcomeUnknown("the answer was lost")

    def lose_every_request(moment: str) -> None:
        raise OutcomeUnknown("the request was lost")

    store.fault = lose_the_answer
    with session.transaction():
        fs.write("/a", "1")
    store.fault = lambda moment: None
    fs.write("/b", "2")
    session.refresh()
    assert sorted(path.name for path in root.iterdir()) == ["a", "b"]
    assert not [record for record in session.records if isinstance(record.event, RolledBack)]
    assert Session.open(store).to_bytes() == session.to_bytes()
