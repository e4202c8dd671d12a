"""Mounts and sessions: mounts are made once, stored in a session file, undone and repeated."""

from __future__ import annotations

import os
from errno import EEXIST
from pathlib import Path

import pytest

from tests.models.trees import flatten
from weakfs import Session
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.reducers import TreeMounted


@pytest.fixture
def host(tmp_path: Path) -> Path:
    directory = tmp_path / "host"
    (directory / "d").mkdir(parents=True)
    (directory / "d" / "a.txt").write_text("from the host")
    return directory


def opened(session: Session, host: Path, path: str = "/") -> InMemoryFilesystem:
    return InMemoryFilesystem(session, mounts=[HostMount(str(host), path)])


def test_reopening_on_the_same_session_repeats_no_mount(host: Path) -> None:
    session = Session()
    opened(session, host).write("/d/a.txt", "changed")
    (host / "new.txt").write_text("new on the host")
    fs = opened(session, host)
    assert fs.read("/d/a.txt").content == "changed"
    assert not fs.exists("/new.txt")
    assert len(fs.mounts) == 1
    assert session.seq == 2


def test_a_loaded_session_keeps_its_tree(host: Path, tmp_path: Path) -> None:
    session = Session()
    opened(session, host).write("/d/b.txt", "by us")
    session.save(tmp_path / "session.json")
    (host / "d" / "a.txt").unlink()
    loaded = Session.load(tmp_path / "session.json")
    fs = opened(loaded, host)
    assert flatten(fs.tree()) == flatten(InMemoryFilesystem(session).tree())
    assert fs.read("/d/a.txt").content == "from the host"
    assert loaded.seq == session.seq
    assert fs.mounts == InMemoryFilesystem(session).mounts


def test_a_mount_whose_files_were_deleted_is_not_repeated(host: Path) -> None:
    session = Session()
    opened(session, host).delete("/d", recursive=True)
    assert opened(session, host).list() == ()


def test_a_mount_that_was_rolled_back_is_repeated(host: Path) -> None:
    session = Session()
    opened(session, host)
    session.rollback(0)
    assert InMemoryFilesystem(session).list() == ()
    assert opened(session, host).read("/d/a.txt").content == "from the host"
    session.rollback(0)
    session.rollback(session.seq - 1)
    assert opened(session, host).read("/d/a.txt").content == "from the host"


def test_a_mount_in_a_failed_transaction_is_repeated(host: Path) -> None:
    session = Session()
    with pytest.raises(KeyError), session.transaction():
        opened(session, host)
        raise KeyError
    assert InMemoryFilesystem(session).list() == ()
    assert opened(session, host).read("/d/a.txt").content == "from the host"


def test_a_mount_that_was_undone_is_repeated_after_loading_too(host: Path, tmp_path: Path) -> None:
    session = Session()
    opened(session, host)
    session.rollback(0)
    session.save(tmp_path / "session.json")
    loaded = Session.load(tmp_path / "session.json")
    assert opened(loaded, host).read("/d/a.txt").content == "from the host"


def test_the_record_of_a_mount_outlives_its_rollback(host: Path) -> None:
    session = Session()
    fs = opened(session, host)
    session.rollback(0)
    assert fs.mounts == ()
    assert isinstance(session.records[0].event, TreeMounted)


def test_mounts_of_both_sides_of_a_fork_are_merged(host: Path) -> None:
    session = Session()
    fs = opened(session, host)
    fork = session.fork()
    opened(fork, host, "/theirs")
    opened(session, host, "/ours")
    session.merge(fork)
    assert sorted(report.path for report in fs.mounts) == ["/", "/ours", "/theirs"]
    assert fs.read("/ours/d/a.txt").content == fs.read("/theirs/d/a.txt").content == "from the host"


def test_the_same_host_tree_can_be_mounted_at_two_places(host: Path) -> None:
    session = Session()
    fs = InMemoryFilesystem(session, mounts=[HostMount(str(host), "/one"), HostMount(str(host), "/two")])
    assert fs.read("/one/d/a.txt") == fs.read("/one/d/a.txt")
    assert fs.read("/two/d/a.txt").content == "from the host"


def test_one_host_path_written_in_two_ways_is_one_mount(host: Path) -> None:
    session = Session()
    opened(session, host)
    (host.parent / "link").symlink_to(host)
    opened(session, host / "d" / "..", "/.")
    opened(session, host.parent / "link", "")
    assert session.seq == 1


@pytest.mark.parametrize("taken", ["/m", "/m/below", "/m/file/x"])
def test_an_occupied_mount_path_is_refused_and_nothing_changes(host: Path, taken: str) -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    if taken == "/m/below":
        fs.symlink("elsewhere", "/m")
    else:
        fs.write("/m/file", "mine")
    before = fs.tree()
    with pytest.raises(FileExistsError, match="mount at an unused path") as caught:
        opened(session, host, taken)
    assert caught.value.errno == EEXIST
    assert fs.tree() is before
    assert fs.mounts == ()


def test_a_session_resumed_where_the_host_tree_is_elsewhere_repeats_no_mount(host: Path, tmp_path: Path) -> None:
    session = Session()
    opened(session, host, "/m").write("/m/d/a.txt", "changed")
    session.save(tmp_path / "session.json")
    elsewhere = host.rename(host.parent / "elsewhere")
    loaded = Session.load(tmp_path / "session.json")
    for resumed in (loaded, loaded.fork()):
        assert opened(resumed, elsewhere, "/m").read("/m/d/a.txt").content == "changed"
        assert resumed.seq == 2


def test_two_host_trees_at_one_path_are_refused(host: Path) -> None:
    other = host.parent / "other"
    other.mkdir()
    with pytest.raises((FileExistsError, ValueError)):
        InMemoryFilesystem(mounts=[HostMount(str(host), "/m"), HostMount(str(other), "/m/.")])


def test_the_root_is_occupied_once_there_is_a_file(host: Path) -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a", "mine")
    with pytest.raises(FileExistsError):
        opened(session, host)


def test_an_empty_directory_is_not_occupied(host: Path) -> None:
    session = Session()
    InMemoryFilesystem(session).mkdir("/m/n")
    assert opened(session, host, "/m/n").exists("/m/n/d/a.txt")


def test_a_host_directory_that_is_missing_or_a_file_is_refused(host: Path) -> None:
    session = Session()
    with pytest.raises(FileNotFoundError):
        opened(session, host / "gone")
    with pytest.raises(NotADirectoryError):
        opened(session, host / "d" / "a.txt")
    with pytest.raises(PermissionError):
        opened(session, host, "../up")
    assert session.seq == 0


def test_a_mount_is_rolled_back_and_forked_like_any_change(host: Path) -> None:
    session = Session()
    fs = opened(session, host)
    before = session.snapshot()
    fork = session.fork()
    fork_fs = opened(fork, host, "/fork")
    fork_fs.write("/fork/d/a.txt", "in the fork")
    assert not fs.exists("/fork")
    session.merge(fork)
    assert fs.read("/fork/d/a.txt").content == "in the fork"
    assert [report.path for report in fs.mounts] == ["/", "/fork"]
    session.rollback(before)
    assert not fs.exists("/fork")


def test_a_session_is_saved_and_loaded_with_a_host_path_that_is_not_text(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(raw)
    with open(raw + b"/\xff", "wb") as stream:
        stream.write(b"odd")
    host = Path(os.fsdecode(raw))
    session = Session()
    fs = opened(session, host)
    session.save(tmp_path / "session.json")
    loaded = Session.load(tmp_path / "session.json")
    again = opened(loaded, host)
    assert loaded.seq == session.seq == 1
    assert again.mounts == fs.mounts
    assert again.read("/\uf7ff").content == "odd"
