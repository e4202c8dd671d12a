"""Several filesystems over one session, and filesystems of past states."""

from __future__ import annotations

from errno import EFBIG, EROFS
from typing import Any

import pytest

from weakfs import Session
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.reducers import FileTree


def paths(fs: InMemoryFilesystem) -> list[str]:
    return [entry.path for entry in fs.walk()]


def test_filesystems_over_one_session_show_the_same_files() -> None:
    session = Session()
    one, other = InMemoryFilesystem(session), InMemoryFilesystem(session)
    one.write("/a", "x")
    assert other.read("/a").content == "x"
    assert other.tree() is one.tree()
    assert one.session is other.session is session


def test_each_filesystem_has_its_own_limits_permissions_and_link_policy() -> None:
    session = Session()
    wide = InMemoryFilesystem(session)
    wide.write("/large", "x" * 100)
    wide.symlink("large", "/link")
    narrow = InMemoryFilesystem(session, limits=Limits(max_file_size=10), follow_symlinks="within_root_only")
    assert len(narrow.read("/link").content) == 100
    with pytest.raises(OSError, match="the limit for a file is 10") as caught:
        narrow.append("/large", "y")
    assert caught.value.errno == EFBIG
    closed = InMemoryFilesystem(session, read_only=True)
    with pytest.raises(PermissionError):
        closed.write("/b", "")
    with pytest.raises(PermissionError):
        wide.read("/link")


def test_a_filesystem_without_a_session_creates_one() -> None:
    one, other = InMemoryFilesystem(), InMemoryFilesystem()
    one.write("/a", "x")
    assert paths(other) == []
    assert one.session is not other.session


def test_binding_keeps_limits_permissions_and_link_policy() -> None:
    limits = Limits(max_file_size=10)
    fs = InMemoryFilesystem(limits=limits, read_only=True, follow_symlinks="allow")
    bound = fs.bind(Session())
    assert (bound.limits, bound.read_only, bound.follow_symlinks) == (limits, True, "allow")


@pytest.mark.parametrize("policy", ["", "none", "within", None])
def test_an_unknown_link_policy_is_refused(policy: Any) -> None:
    with pytest.raises(ValueError, match="use 'deny', 'within_root_only' or 'allow'"):
        InMemoryFilesystem(follow_symlinks=policy)


def test_a_past_state_is_a_read_only_filesystem() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    for number in range(1, 6):
        fs.write(f"/{number}", str(number))
    past = InMemoryFilesystem(session.at(3))
    fs.delete("/1")
    assert paths(past) == ["/1", "/2", "/3"]
    assert past.grep("2")[0].path == "/2"
    assert past.read_only
    assert past.session is None
    with pytest.raises(PermissionError) as caught:
        past.write("/x", "")
    assert caught.value.errno == EROFS
    restored = fs.restore(past.snapshot(), foreign=True)
    assert restored.written == ("/1",)
    assert restored.removed == ("/4", "/5")
    assert paths(fs) == ["/1", "/2", "/3"]


def test_the_state_before_the_first_record_is_empty() -> None:
    session = Session()
    InMemoryFilesystem(session).write("/a", "x")
    assert paths(InMemoryFilesystem(session.at(0))) == []


def test_a_slice_cleared_or_seeded_by_hand_is_still_a_filesystem() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/a", "x")
    kept = fs.tree()
    session[FileTree].clear()
    assert paths(fs) == []
    assert fs.statistics().node_count == 0
    fs.write("/b/c", "y")
    assert paths(fs) == ["/b", "/b/c"]
    session[FileTree].seed(kept)
    assert paths(fs) == ["/a"]


def test_a_walk_and_a_search_see_one_state_whatever_changes_meanwhile() -> None:
    fs = InMemoryFilesystem()
    for number in range(100):
        fs.write(f"/d{number % 7}/f{number}", "needle")
    wanted = paths(fs)
    seen: list[str] = []
    for entry in fs.walk():
        seen.append(entry.path)
        if len(seen) == 10:
            fs.delete("/d5", recursive=True)
            fs.write("/d6/later", "x")
    assert seen == wanted


def test_a_change_inside_a_transaction_is_seen_inside_and_gone_when_it_fails() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/a", "before")
    before = fs.tree()
    with pytest.raises(KeyError), session.transaction():
        fs.write("/a", "inside")
        fs.write("/b", "inside")
        assert fs.read("/a").content == "inside"
        assert paths(InMemoryFilesystem(session)) == ["/a", "/b"]
        raise KeyError
    assert fs.tree() is before


def test_a_read_only_filesystem_still_copies_its_mounts(tmp_path: Any) -> None:
    (tmp_path / "a").write_text("x")
    fs = InMemoryFilesystem(mounts=[HostMount(str(tmp_path))], read_only=True)
    assert fs.read("/a").content == "x"
    with pytest.raises(PermissionError):
        fs.delete("/a")


def test_snapshots_with_equal_times_are_distinguished() -> None:
    fs = InMemoryFilesystem(Session(session_id="s", clock=lambda: 5))
    taken = [fs.snapshot() for _ in range(10)]
    assert len({snapshot.snapshot_id for snapshot in taken}) == 10
