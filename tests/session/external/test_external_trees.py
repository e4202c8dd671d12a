"""Trees of external filesystems in a session: known only in part, and separate from its own files."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import (
    DirectoryMade,
    EntryDeleted,
    EntryFound,
    EntryMoved,
    ExternalFsSnapshot,
    ExternalTrees,
    FileAppended,
    FileSpliced,
    FileTree,
    FileWritten,
    ModeChanged,
    MountReport,
    TreeMounted,
    TreeRestored,
)
from weakfs.reducers.events import TreeSeen
from weakfs.reducers.tree.leaf import Leaf, content_of, file
from weakfs.reducers.tree.node import EMPTY_TREE, Node, find, put, tree_of, walk

HOST = "host:/w"
FIXTURE = Path(__file__).parents[3] / "fixtures/sessions/v1.json"


def new_session() -> Session:
    ticks = count(1000)
    return Session(session_id="s", clock=lambda: next(ticks))


def found(path: str, content: bytes | None, at: int = 1, filesystem: str = HOST) -> EntryFound:
    name = path.rpartition("/")[2]
    return EntryFound(path, tree_of({} if content is None else {name: file(content, at=at)}), at, filesystem)


def contents(tree: FileTree | None) -> dict[str, bytes]:
    assert tree is not None
    return {path: content_of(node) for path, node in walk(tree) if type(node) is tuple}


def known(session: Session, filesystem: str = HOST) -> dict[str, bytes]:
    trees = session[ExternalTrees].latest()
    assert trees is not None
    return contents(trees.tree(filesystem))


def completed(session: Session, early: int, late: int) -> dict[str, bytes]:
    first, last = session.at(early)[ExternalTrees].latest(), session.at(late)[ExternalTrees].latest()
    assert first is not None
    assert last is not None
    return contents(first.known(HOST).completed(last.known(HOST)))


def test_external_events_do_not_change_the_sessions_own_files() -> None:
    session = new_session()
    InMemoryFilesystem(session).write("/a", "own")
    own = session[FileTree].latest()
    session.dispatch(found("/a", b"theirs"))
    session.dispatch(FileWritten("/a", b"outside", 2, filesystem=HOST))
    session.dispatch(DirectoryMade("/d", 3, filesystem=HOST))
    session.dispatch(EntryDeleted("/a", 4, filesystem=HOST))
    assert session[FileTree].latest() is own
    assert known(session) == {}


def test_the_sessions_own_events_do_not_change_external_trees() -> None:
    session = new_session()
    session.dispatch(found("/a", b"theirs"))
    before = session[ExternalTrees].latest()
    InMemoryFilesystem(session).write("/a", "own")
    assert session[ExternalTrees].latest() is before


def test_events_of_an_external_filesystem_are_reduced_like_the_sessions_own() -> None:
    session = new_session()
    session.dispatch(found("/src/a.py", b"one\ntwo\n"))
    session.dispatch(FileSpliced("/src/a.py", ((0, 3, b"ONE"),), 2, HOST))
    session.dispatch(FileAppended("/src/a.py", b"three\n", 3, HOST))
    session.dispatch(EntryMoved("/src/a.py", "/lib/b.py", 4, HOST))
    session.dispatch(ModeChanged("/lib/b.py", 0o755, 5, HOST))
    trees = session[ExternalTrees].latest()
    assert trees is not None
    node = find(trees.tree(HOST), ("lib", "b.py"))
    assert type(node) is tuple
    assert (content_of(node), node[1]) == (b"ONE\ntwo\nthree\n", 0o755)


def test_each_external_filesystem_has_its_own_tree() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    session.dispatch(found("/a", b"2", filesystem="host:/other"))
    assert (known(session), known(session, "host:/other"), known(session, "host:/none")) == (
        {"/a": b"1"},
        {"/a": b"2"},
        {},
    )


def test_an_external_mount_is_not_reported_as_one_into_the_sessions_files() -> None:
    session = new_session()
    session.dispatch(TreeMounted("/", "/host", tree_of({"a": file(b"x", at=1)}), (), 1, HOST))
    assert session[MountReport].all() == ()
    assert known(session) == {"/a": b"x"}


def test_entries_found_missing_are_removed() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    session.dispatch(found("/a", None))
    assert known(session) == {}


def test_a_directory_found_without_entries_keeps_its_known_entries() -> None:
    session = new_session()
    session.dispatch(found("/d/a", b"1"))
    session.dispatch(EntryFound("/d", tree_of({"d": FileTree({}, (), 0o700, 5, 5)}), 9, HOST))
    trees = session[ExternalTrees].latest()
    assert trees is not None
    directory = find(trees.tree(HOST), ("d",))
    assert type(directory) is FileTree
    assert (directory.mode, directory.modified_at, trees.tree(HOST).file_count) == (0o700, 5, 1)


def test_a_rollback_also_restores_external_trees() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    snapshot = session.snapshot()
    session.dispatch(FileWritten("/a", b"2", 2, filesystem=HOST))
    session.rollback(snapshot)
    assert known(session) == {"/a": b"1"}


def test_forks_that_changed_different_external_files_merge() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    fork = session.fork()
    fork.dispatch(found("/b", b"b"))
    fork.dispatch(FileWritten("/b", b"B", 3, filesystem=HOST))
    fork.dispatch(EntryDeleted("/a", 4, HOST))
    session.dispatch(found("/d/c", b"c"))
    session.merge(fork)
    assert known(session) == {"/b": b"B", "/d/c": b"c"}
    assert completed(session, 0, session.seq) == {"/a": b"1", "/b": b"b", "/d/c": b"c"}


def test_the_side_that_ends_later_determines_an_external_file() -> None:
    session = new_session()
    session.dispatch(found("/a", b"one\ntwo\nthree\n"))
    fork = session.fork()
    session.dispatch(FileWritten("/a", b"ONE\ntwo\nthree\n", 2, filesystem=HOST))
    fork.dispatch(FileWritten("/a", b"one\ntwo\nTHREE\n", 3, filesystem=HOST))
    session.merge(fork)
    assert known(session) == {"/a": b"one\ntwo\nTHREE\n"}


def test_an_external_filesystem_first_seen_in_a_fork_is_merged() -> None:
    session = new_session()
    one, other = session.fork(), session.fork()
    one.dispatch(found("/d/a", b"a"))
    other.dispatch(found("/d/b", b"b"))
    session.merge(one)
    session.merge(other)
    assert known(session) == {"/d/a": b"a", "/d/b": b"b"}


def test_a_replay_of_the_records_gives_the_same_external_trees() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    fork = session.fork()
    fork.dispatch(FileWritten("/a", b"2", 2, filesystem=HOST))
    session.dispatch(found("/b", b"b"))
    session.merge(fork)
    session.rollback(1)
    session.dispatch(FileWritten("/c", b"3", 3, filesystem=HOST))
    again = new_session()
    again.replay(session.records)
    assert known(again) == known(session) == {"/a": b"1", "/c": b"3"}


def test_external_trees_are_saved_and_loaded(tmp_path: Path) -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    session.dispatch(FileWritten("/a", b"2", 2, filesystem=HOST))
    snapshot = ExternalFsSnapshot("x1", HOST, 7, "tar", "r", "/w", tag="t", data=b"archive")
    session.dispatch(snapshot)
    session.save(tmp_path / "s.json")
    loaded = Session.load(tmp_path / "s.json")
    assert known(loaded) == {"/a": b"2"}
    assert completed(loaded, 0, loaded.seq) == {"/a": b"1"}
    assert loaded[ExternalFsSnapshot].all() == (snapshot,)
    assert (snapshot.created_ns, snapshot.created_at) == (7, datetime(1970, 1, 1, tzinfo=UTC))
    assert '"created_at"' in (tmp_path / "s.json").read_text()
    assert [type(one.event) for one in loaded.records] == [type(one.event) for one in session.records]
    assert loaded.records[1] == session.records[1]
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "s.json").read_bytes()


def test_a_session_saved_before_there_were_external_files_has_none() -> None:
    from fixtures.sessions.kinds import registry

    session = Session.load(FIXTURE, registry=registry())
    trees = session[ExternalTrees].latest()
    assert trees is not None
    assert trees.trees == {}
    assert session[ExternalFsSnapshot].all() == ()
    session.dispatch(found("/a", b"1"))
    assert known(session) == {"/a": b"1"}


def test_snapshots_of_external_filesystems_outlast_a_rollback_and_a_merge() -> None:
    session = new_session()
    start = session.snapshot()
    fork = session.fork()
    mine = ExternalFsSnapshot("x1", HOST, 1, "tree", "r1", "/w")
    other = ExternalFsSnapshot("x2", HOST, 2, "git", "r2", "/w", git_dir="/g")
    session.dispatch(mine)
    fork.dispatch(other)
    session.merge(fork)
    session.rollback(start)
    assert session[ExternalFsSnapshot].all() == (mine, other)


def test_a_past_moment_includes_files_that_were_found_later() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    early = session.seq
    session.dispatch(found("/a", b"edited by another"))
    session.dispatch(found("/d/b", b"b"))
    session.dispatch(FileWritten("/d/b", b"B", 3, filesystem=HOST))
    session.dispatch(found("/new", None))
    session.dispatch(FileWritten("/new", b"n", 4, filesystem=HOST))
    assert completed(session, early, session.seq) == {"/a": b"1", "/d/b": b"b"}


def test_a_past_moment_does_not_include_files_deleted_before_it() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    session.dispatch(EntryDeleted("/a", 2, HOST))
    assert completed(session, session.seq, session.seq) == {}


def test_found_files_that_were_rolled_back_are_as_they_were_found() -> None:
    session = new_session()
    session.dispatch(DirectoryMade("/d", 1, HOST))
    session.dispatch(found("/a", b"1"))
    session.dispatch(FileWritten("/a", b"2", 2, filesystem=HOST))
    edited = session.seq
    session.rollback(1)
    assert completed(session, session.seq, edited) == {"/a": b"1"}
    assert completed(session, edited, session.seq) == {"/a": b"2"}


def test_the_first_scan_also_completes_earlier_moments() -> None:
    session = new_session()
    session.dispatch(found("/d/a", b"1"))
    session.dispatch(FileWritten("/d/a", b"2", 2, filesystem=HOST))
    inner: dict[str, Node] = {"a": file(b"2", at=3), "b": file(b"b", at=3)}
    scan = tree_of({"d": tree_of(inner), "c": file(b"c", at=3)})
    session.dispatch(TreeSeen(scan, "scan", 4, HOST))
    whole = session.seq
    session.dispatch(TreeRestored(put(scan, ("late",), _leaf(b"l"), 5), "snapshot", 5, HOST))
    assert known(session) == {"/d/a": b"2", "/d/b": b"b", "/c": b"c", "/late": b"l"}
    assert completed(session, 0, session.seq) == {"/d/a": b"1", "/d/b": b"b", "/c": b"c"}
    assert "/late" not in completed(session, whole, session.seq)


def test_a_scan_of_an_unknown_filesystem_keeps_its_tree_as_it_is() -> None:
    session = new_session()
    scan = tree_of({"a": _leaf(b"a")})
    session.dispatch(TreeRestored(scan, "scan", 1, HOST))
    trees = session[ExternalTrees].latest()
    assert trees is not None
    assert trees.tree(HOST) is scan
    assert trees.known(HOST).completed(trees.known(HOST)) is scan


@pytest.mark.parametrize("path", ["/a/b", "/a"])
def test_nothing_is_completed_below_a_file(path: str) -> None:
    session = new_session()
    session.dispatch(FileWritten("/a", b"file", 1, filesystem=HOST))
    early = session.seq
    session.rollback(0)
    session.dispatch(found(path, b"x"))
    assert completed(session, early, session.seq) == {"/a": b"file"}


def test_an_event_that_changes_nothing_leaves_the_same_value() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    before = session[ExternalTrees].latest()
    session.dispatch(DirectoryMade("/", 5, HOST))
    session.dispatch(found("/missing", None))
    assert session[ExternalTrees].latest() is before
    assert EMPTY_TREE.node_count == 0


def _leaf(content: bytes) -> Leaf:
    return file(content, at=1)


def test_the_trees_of_external_filesystems_cannot_be_changed_from_outside() -> None:
    session = new_session()
    session.dispatch(found("/a", b"1"))
    known_trees = session[ExternalTrees].latest()
    assert known_trees is not None

    with pytest.raises(TypeError):
        known_trees.trees["host:/other"] = known_trees.known(HOST)  # type: ignore[index]  # the test
    with pytest.raises(AttributeError):
        known_trees.trees.clear()  # type: ignore[attr-defined]  # the test
    assert list(known_trees.trees) == [HOST]


def test_changing_the_source_mapping_does_not_change_external_trees() -> None:
    given = {HOST: ExternalTrees().known(HOST)}
    trees = ExternalTrees(given)

    given.clear()

    assert list(trees.trees) == [HOST]


def test_external_trees_can_be_copied_and_pickled() -> None:
    trees = ExternalTrees({HOST: ExternalTrees().known(HOST)})

    for again in (copy.deepcopy(trees), pickle.loads(pickle.dumps(trees))):
        assert isinstance(again, ExternalTrees)
        assert list(again.trees) == [HOST]
