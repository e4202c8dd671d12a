"""A layer and its session: rollback, transactions, forks that merge, saving and loading."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from weakfs import MergeConflict, Session
from weakfs.backends import InMemoryFilesystem, OverlayFilesystem


def memory() -> InMemoryFilesystem:
    lower = InMemoryFilesystem(Session(session_id="lower", clock=count(1000).__next__))
    lower.write("/a", "one\ntwo\nthree\nfour\nfive\n")
    lower.write("/d/b", "b")
    lower.write("/d/e/c", "c")
    return lower


def over(lower: InMemoryFilesystem) -> tuple[OverlayFilesystem, Session]:
    session = Session(session_id="upper", clock=count(5000).__next__)
    return OverlayFilesystem(lower, session), session


def test_a_rollback_goes_back_in_the_layer() -> None:
    layer, session = over(memory())
    layer.write("/a", "x")
    snapshot = session.snapshot("early")
    layer.delete("/a")
    layer.delete("/d", recursive=True)
    session.rollback(snapshot)
    assert (layer.read("/a").content, layer.read("/d/b").content) == ("x", "b")
    session.rollback(0)
    assert layer.tree() is layer.lower.tree()


def test_a_transaction_that_fails_leaves_the_layer_as_it_was() -> None:
    layer, session = over(memory())
    layer.write("/n", "n")
    before = layer.tree().fingerprint
    with pytest.raises(KeyError), session.transaction(cause="call"):
        layer.delete("/d", recursive=True)
        layer.move("/a", "/z")
        raise KeyError
    assert layer.tree().fingerprint == before


def test_forks_that_change_different_lines_of_a_file_below_merge() -> None:
    lower = memory()
    layer, session = over(lower)
    one, other = session.fork(), session.fork()
    layer.bind(one).splice("/a", [(0, 3, b"ONE")])
    layer.bind(other).splice("/a", [(19, 23, b"FIVE")])
    layer.bind(other).delete("/d/b")
    session.merge(one)
    session.merge(other)
    assert layer.read("/a").content == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert not layer.exists("/d/b")
    shown = layer.tree().fingerprint
    layer.commit()
    assert lower.tree().fingerprint == shown


def test_forks_that_change_the_same_line_of_a_file_below_conflict() -> None:
    layer, session = over(memory())
    one, other = session.fork(), session.fork()
    layer.bind(one).splice("/a", [(0, 3, b"ONE")])
    layer.bind(other).splice("/a", [(0, 3, b"uno")])
    session.merge(one)
    with pytest.raises(MergeConflict, match="/a"):
        session.merge(other)
    assert layer.read("/a").content.startswith("ONE")


def test_deleting_on_one_side_and_changing_on_the_other_conflicts() -> None:
    layer, session = over(memory())
    one, other = session.fork(), session.fork()
    layer.bind(one).delete("/a")
    layer.bind(other).append("/a", "six\n")
    session.merge(one)
    with pytest.raises(MergeConflict, match="/a"):
        session.merge(other)


def test_reads_of_a_fork_count_after_the_merge() -> None:
    lower = memory()
    layer, session = over(lower)
    fork = session.fork()
    layer.bind(fork).read("/a")
    layer.bind(fork).write("/n", "n")
    layer.read("/d/b")
    session.merge(fork)
    lower.write("/a", "by another")
    lower.write("/d/b", "by another")
    with pytest.raises(OSError, match="'/a', '/d/b' changed in the lower filesystem"):
        layer.commit()


def test_a_closed_fork_can_still_be_read() -> None:
    layer, session = over(memory())
    fork = session.fork()
    bound = layer.bind(fork)
    fork.close()
    assert bound.read("/d/b").content == "b"


def test_a_loaded_session_continues_over_the_same_files(tmp_path: Path) -> None:
    lower = memory()
    layer, session = over(lower)
    layer.read("/d/b")
    layer.delete("/d/e", recursive=True)
    layer.append("/a", "six\n")
    layer.mkdir("/d/e")
    snapshot = session.snapshot()
    layer.write("/later", "x")
    session.save(tmp_path / "s.json")
    loaded = Session.load(tmp_path / "s.json", clock=count(9000).__next__)
    again = OverlayFilesystem(lower, loaded)
    assert again.tree().fingerprint == layer.tree().fingerprint
    assert again.list("/d/e") == ()
    loaded.rollback(snapshot.snapshot_id)
    assert not again.exists("/later")
    lower.write("/d/b", "by another")
    with pytest.raises(OSError, match="'/d/b' changed in the lower filesystem"):
        again.commit()
    lower.write("/d/b", "b")
    shown = again.tree().fingerprint
    again.commit()
    assert lower.tree().fingerprint == shown


def test_a_commit_in_a_fork_counts_for_its_session_once_merged() -> None:
    lower = memory()
    layer, session = over(lower)
    layer.write("/n", "n")
    fork = session.fork()
    layer.bind(fork).commit()
    session.merge(fork)
    assert layer.tree() is lower.tree()
    assert lower.read("/n").content == "n"


def test_a_replay_of_the_records_shows_the_same_over_the_same_files() -> None:
    layer, session = over(memory())
    layer.delete("/d", recursive=True)
    layer.write("/d/e/new", "x")
    layer.move("/a", "/d/a")
    again = Session(session_id="again")
    again.replay(session.records)
    assert OverlayFilesystem(layer.lower, again).tree().fingerprint == layer.tree().fingerprint
