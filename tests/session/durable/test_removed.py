"""A session whose folder is removed while it is open: the next change says so, and nothing is half done."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.session.durable.open_session import OnOthers
from weakfs.storage import StorageError


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
@pytest.mark.parametrize("removed", [".", "s.stream", "s.stream/0000000000000001.journal"])
def test_a_change_after_the_folder_was_removed_is_refused(removed: str, on_conflict: OnOthers, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    session = Session.open(folder, "s", on_conflict=on_conflict)
    fs = InMemoryFilesystem(session)
    fs.write("/a", "a" * 1000)
    before = session.to_bytes()
    gone = folder / removed
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    there = sorted(folder.rglob("*"))

    for _ in range(2):
        with pytest.raises(StorageError, match=r"ends at frame 0.*was removed|there is no journal|No such file"):
            fs.write("/b", "b")
        assert session.to_bytes() == before
    with pytest.raises(StorageError):
        session.compact(keep=0)
    session.checkpoint()
    assert session.to_bytes() == before
    assert sorted(folder.rglob("*")) == there
    with pytest.raises(StorageError):
        session.flush()
    with pytest.raises(StorageError):
        session.close()
    session.close()


def test_a_call_on_host_files_is_undone_when_the_folder_was_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("a")
    session = Session.open(tmp_path / "store", "s")
    tools = Toolset(session, HostFilesystem(root, session=session, store=tmp_path / "snapshots"))
    assert tools.call("write_file", {"path": "a", "content": "b"}).success
    seq = session.seq
    shutil.rmtree(tmp_path / "store")

    with pytest.raises(StorageError, match="was removed"):
        tools.call("write_file", {"path": "a", "content": "c"})

    assert (root / "a").read_text() == "b"
    assert session.seq == seq
    assert not (tmp_path / "store").exists()
    with pytest.raises(StorageError, match=r"cannot flush session 's'.*was removed"):
        session.close()


@pytest.mark.parametrize("location", ["folder:{}/store", "folder:{}/store?durability=power", "sqlite:{}/store/a.db"])
def test_flushing_and_closing_report_that_stored_changes_are_gone(tmp_path: Path, location: str) -> None:
    async def main() -> None:
        session = await Session.aopen(location.format(tmp_path), "s")
        await Toolset(session).acall("write_file", {"path": "a", "content": "a"})
        await session.aflush()
        await Toolset(session).acall("write_file", {"path": "b", "content": "b"})
        Session.delete(location.format(tmp_path), "s")
        for method in (session.aflush, session.aclose):
            with pytest.raises(StorageError, match=r"cannot flush session 's'.*it was deleted"):
                await method()
        await session.aclose()

    (tmp_path / "store").mkdir()
    asyncio.run(main())


def test_closing_a_flushed_session_does_not_check_the_stream(tmp_path: Path) -> None:
    with Session.open(tmp_path / "store", "s") as session:
        InMemoryFilesystem(session).write("/a", "a")
        session.flush()
        shutil.rmtree(tmp_path / "store")


def test_a_session_continues_after_its_folder_was_put_back(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    session = Session.open(folder, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "a")
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(folder)
    with pytest.raises(StorageError):
        fs.write("/b", "b")
    shutil.copytree(tmp_path / "copy", folder)

    fs.write("/b", "b")

    session.close()
    assert InMemoryFilesystem(Session.open(folder, "s")).read("/b").content == "b"
