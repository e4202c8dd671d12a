"""Saving and loading a session with something of every kind: nothing is lost, nothing changes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from fixtures.sessions import story
from fixtures.sessions.kinds import Counted, Handle, Note, Person, Step, Total, registry
from fixtures.sessions.portrait import portrait
from weakfs import InMemoryFilesystem, Session
from weakfs.reducers import FileTree
from weakfs.reducers.tree.leaf import CONTENT
from weakfs.reducers.tree.node import find

LATER = story.START + 10**15


def loaded(path: Path) -> Session:
    session = Session.load(path, registry=registry(), clock=story.Clock(LATER))
    story.prepare(session)
    return session


def again(session: Session, folder: Path) -> Session:
    path = folder / "session.json"
    session.save(path)
    return loaded(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "session.json"
    story.tell().save(path)
    return path


def node(tree: FileTree | None, *segments: str) -> object:
    assert tree is not None
    return find(tree, segments)


def test_everything_visible_of_a_session_is_loaded(saved: Path) -> None:
    told, back = portrait(story.tell()), portrait(loaded(saved))
    for part, shown in told.items():
        assert back[part] == shown, part


def test_a_loaded_session_saves_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    Session.load(saved, registry=registry()).save(copy)
    assert copy.read_bytes() == saved.read_bytes()


def test_reading_history_does_not_change_what_is_saved(saved: Path, tmp_path: Path) -> None:
    session = story.tell()
    portrait(session)
    session.save(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == saved.read_bytes()


def test_loading_changes_nothing_in_the_file(saved: Path) -> None:
    before = saved.read_bytes()
    loaded(saved)
    assert saved.read_bytes() == before


def test_a_loaded_session_continues_as_the_original_would(saved: Path) -> None:
    clock = story.Clock()
    first, second = story.tell(clock), loaded(saved)
    clock.now = LATER
    for session in (first, second):
        story.ways_back(session, InMemoryFilesystem(session))
        story.side_by_side(session)
        story.transactions(session, InMemoryFilesystem(session))
        story.values_of_every_sort(session)
        InMemoryFilesystem(session).append("/log.txt", "after loading\n")
        story.trees_from_outside(session)
    assert portrait(second) == portrait(first)


def test_every_snapshot_can_be_rolled_back_to_after_loading(saved: Path) -> None:
    first = story.tell()
    assert len(first.snapshots) > 5
    for snapshot in first.snapshots:
        second = loaded(saved)
        was = first.at(snapshot)
        second.rollback(snapshot.tag or snapshot.snapshot_id)
        now, then = second[FileTree].latest(), was[FileTree].latest()
        assert now is not None
        assert then is not None
        assert now.fingerprint == then.fingerprint
        assert second[Total].all() == was[Total].all()
        assert second[Note].all() == was[Note].all()
        assert second[Step].all() == loaded(saved)[Step].all()


@pytest.mark.slow
def test_every_record_can_be_rolled_back_to_after_loading(saved: Path) -> None:
    first, second = story.tell(), loaded(saved)
    last = second.seq
    for seq in range(first.records[0].seq - 1, last + 1):
        first.rollback(seq)
        second.rollback(seq)
    assert portrait(second)["now"] == portrait(first)["now"]
    assert portrait(second)["history"] == portrait(first)["history"]


def test_a_rollback_can_be_undone_after_loading(tmp_path: Path) -> None:
    session = story.opened()
    filesystem = InMemoryFilesystem(session)
    filesystem.write("/a", "one")
    session.snapshot("start")
    filesystem.write("/a", "two")
    session.rollback("start")
    back = again(session, tmp_path)
    back.rollback(2)
    assert InMemoryFilesystem(back).read("/a").content == "two"


@pytest.mark.parametrize("keep", [0, 1, 2, 7, 20, 60, 1000])
def test_a_compacted_session_is_loaded_unchanged(keep: int, tmp_path: Path) -> None:
    session = story.tell()
    session.compact(keep=keep)
    assert portrait(again(session, tmp_path)) == portrait(session)


def test_a_compacted_session_can_be_compacted_again_after_loading(tmp_path: Path) -> None:
    first = story.tell()
    first.compact(keep=50)
    second = again(first, tmp_path)
    assert first.compact(keep=10) == second.compact(keep=10) == 40
    assert portrait(second) == portrait(first)


def test_an_empty_session_is_loaded_unchanged(tmp_path: Path) -> None:
    session = Session(session_id="empty")
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json")
    assert (back.session_id, back.seq, len(back.records), back.snapshots) == ("empty", 0, 0, ())
    assert portrait(back) == portrait(session)


def test_a_fork_is_saved_as_an_independent_session(tmp_path: Path) -> None:
    fork = story.tell().fork("side")
    InMemoryFilesystem(fork).write("/only/here", "x")
    back = again(fork, tmp_path)
    assert (back.session_id, back.origin_id) == (fork.session_id, "story")
    assert portrait(back) == portrait(fork)


def test_a_loaded_session_can_be_forked_and_merged(saved: Path) -> None:
    session = loaded(saved)
    fork = session.fork()
    InMemoryFilesystem(fork).write("/from/fork", "x")
    fork.dispatch(Counted(1000))
    InMemoryFilesystem(session).write("/from/trunk", "y")
    before = session[Total].latest()
    session.merge(fork)
    after = session[Total].latest()
    assert before is not None
    assert after is not None
    assert after.value == before.value + 1000
    assert InMemoryFilesystem(session).exists("/from/fork")


def test_new_snapshots_after_loading_have_new_ids(saved: Path) -> None:
    session = loaded(saved)
    known = {one.snapshot_id for one in session.snapshots}
    assert session.snapshot().snapshot_id not in known
    assert len(session.snapshots) == len(known) + 1


def test_snapshots_keep_sharing_their_subtrees_in_memory(saved: Path) -> None:
    session = loaded(saved)
    trees = [session.at(one)[FileTree].latest() for one in session.snapshots if one.tag in ("mounted", None, "end")]
    assert len(trees) == 3
    for name in ("moved", "empty", "wide", "copy"):
        assert len({id(node(tree, name)) for tree in trees}) == 1, name
    inner = node(trees[-1], "mnt", "a")
    assert inner is node(trees[0], "mnt", "a") is node(trees[0], "mnt", "b")


def test_the_state_shares_its_values_with_the_newest_snapshot(saved: Path) -> None:
    session = loaded(saved)
    newest = session.at("end")
    assert session[FileTree].latest() is newest[FileTree].latest()
    assert session[Note].latest() is newest[Note].latest()


def test_equal_contents_are_one_object_in_memory(tmp_path: Path) -> None:
    session = story.opened()
    filesystem = InMemoryFilesystem(session)
    filesystem.write("/a", "the same words")
    filesystem.write("/b/c", "the same words")
    tree = again(session, tmp_path)[FileTree].latest()
    one, other = node(tree, "a"), node(tree, "b", "c")
    assert isinstance(one, tuple)
    assert isinstance(other, tuple)
    assert one[CONTENT] is other[CONTENT]


def test_snapshots_of_attached_filesystems_are_loaded_and_restored(tmp_path: Path) -> None:
    session, outside = story.opened(), story.Outside()
    session.attach(outside)
    outside.state = "four"
    session.snapshot("four")
    outside.state = "five"
    session.snapshot("five")
    back, other = again(session, tmp_path), story.Outside()
    assert portrait(back)["externals"] == portrait(session)["externals"]
    back.attach(other)
    back.rollback("four")
    assert other.state == "four"


def test_a_slice_that_only_history_holds_can_be_read_after_loading(tmp_path: Path) -> None:
    session = story.opened()
    session.dispatch(Counted(5))
    session.rollback(0)
    back = again(session, tmp_path)
    assert back.at(1)[Total].all() == (Total(5),)
    back.rollback(1)
    assert back[Total].latest() == Total(5)


def test_a_slice_without_values_is_still_known_after_loading(tmp_path: Path) -> None:
    session = story.opened()
    with suppress(KeyError), session.transaction():
        session[Person].append(Person("Eve"))
        raise KeyError
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json", registry=registry())
    assert back.at(1)[Person].all() == session.at(1)[Person].all() == (Person("Eve"),)
    assert back[Person].all() == ()


def test_a_log_slice_without_values_stays_a_log(tmp_path: Path) -> None:
    session = Session(session_id="s", registry=registry())
    session.install(Step, kind="log")
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json", registry=registry())
    back[Step].append(Step("kept"))
    back.rollback(0)
    assert back[Step].all() == (Step("kept"),)


def test_history_read_before_the_program_has_installed_its_types_is_not_kept(tmp_path: Path) -> None:
    session = story.opened()
    for number in range(1100):
        session.dispatch(Counted(1) if number else Note("first"))
    session.rollback(0)
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json", registry=registry())
    back.at(700)
    story.prepare(back)
    assert back.at(700)[Total].all() == session.at(700)[Total].all() == (Total(699),)


def test_an_external_handle_of_an_unregistered_type_is_refused_by_name(tmp_path: Path) -> None:
    session, outside = Session(session_id="s"), story.Outside()
    session.attach(outside)
    session.snapshot()
    with pytest.raises(Exception, match=Handle.__name__):
        session.save(tmp_path / "s.json")
    assert list(tmp_path.iterdir()) == []
