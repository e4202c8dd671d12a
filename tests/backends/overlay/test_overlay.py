"""A layer over other files: what is committed, refused and discarded, and what the lower files hold meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from errno import EBUSY
from itertools import count
from pathlib import Path

import pytest

from tests.models.cost import calls_of
from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem, OverlayFilesystem
from weakfs.filesystem import BaseFilesystem, Limits
from weakfs.reducers import TreeDiff
from weakfs.reducers.events import EntryPut
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import Node, find, tree_of


def memory() -> InMemoryFilesystem:
    lower = InMemoryFilesystem(Session(session_id="lower", clock=count(1000).__next__))
    lower.write("/a", "one\ntwo\nthree\n")
    lower.write("/d/b", "b")
    lower.write("/d/e/c", "c")
    lower.symlink("a", "/link")
    return lower


def over(lower: InMemoryFilesystem) -> OverlayFilesystem:
    return OverlayFilesystem(lower, Session(session_id="upper", clock=count(5000).__next__))


def conflict(layer: OverlayFilesystem) -> str:
    below, shown = layer.lower.tree().fingerprint, layer.tree().fingerprint
    with pytest.raises(OSError, match="changed in the lower filesystem") as caught:
        layer.commit()
    assert caught.value.errno == EBUSY
    assert (layer.lower.tree().fingerprint, layer.tree().fingerprint) == (below, shown)
    return str(caught.value)


def test_nothing_is_written_before_a_commit_and_everything_by_it() -> None:
    lower = memory()
    before = lower.tree()
    layer = over(lower)
    layer.write("/a", "changed")
    layer.chmod("/d", 0o700)
    layer.move("/d/e", "/e")
    layer.delete("/link")
    layer.symlink("e", "/l")
    layer.mkdir("/empty/x")
    assert lower.tree() is before
    shown = layer.tree().fingerprint
    expected = layer.diff()
    assert layer.commit() == expected
    assert expected.moved == (("/d/e/c", "/e/c"),)
    assert lower.tree().fingerprint == layer.tree().fingerprint == shown
    assert layer.tree() is lower.tree()
    assert not layer.diff()


@pytest.mark.parametrize("change", [BaseFilesystem.move, BaseFilesystem.copy])
@pytest.mark.parametrize("to", ["/d/f/new", "/d/f/g/new", "/d/e/g/new"])
def test_directories_above_both_paths_of_a_change_keep_their_bits_and_times(
    change: Callable[[BaseFilesystem, str, str], None], to: str
) -> None:
    lower, expected = memory(), memory()
    directories = ("/d", "/d/e", "/d/e/g", "/d/f", "/d/f/g")
    for files in (lower, expected):
        for mode, directory in enumerate(directories, 0o700):
            files.mkdir(directory)
            files.chmod(directory, mode)
    layer = over(lower)

    for both in (layer, expected):
        change(both, "/d/e/c", to)

    for directory in directories:
        found, wanted = layer.stat(directory), expected.stat(directory)
        assert (found.mode, found.created_ns) == (wanted.mode, wanted.created_ns)
        if directory not in ("/d/e", to.rpartition("/")[0]):
            assert found.modified_ns == wanted.modified_ns
    layer.commit()
    assert [lower.stat(one).mode for one in directories] == [expected.stat(one).mode for one in directories]


def test_a_diff_shows_how_the_layer_differs() -> None:
    layer = over(memory())
    assert layer.diff() == TreeDiff()
    layer.write("/a", "changed")
    layer.write("/new", "n")
    layer.delete("/d/b")
    assert layer.diff() == TreeDiff(("/new",), ("/d/b",), ("/a",))


def test_discarding_shows_the_lower_files_and_can_be_rolled_back() -> None:
    lower = memory()
    layer = over(lower)
    layer.write("/a", "changed")
    layer.delete("/d", recursive=True)
    assert layer.discard().removed == ("/d", "/d/b", "/d/e", "/d/e/c")
    assert layer.tree() is lower.tree()
    assert layer.session is not None
    layer.session.rollback(layer.session.seq - 1)
    assert layer.read("/a").content == "changed"
    assert not layer.exists("/d")


def test_changes_below_are_visible_until_the_layer_has_its_own_version() -> None:
    lower = memory()
    layer = over(lower)
    lower.write("/a", "newer")
    lower.write("/fresh", "f")
    assert (layer.read("/a").content, layer.read("/fresh").content) == ("newer", "f")
    layer.append("/a", "!")
    lower.write("/a", "newest")
    assert layer.read("/a").content == "newer!"


@pytest.mark.parametrize(
    "first",
    [
        lambda layer: layer.read("/a"),
        lambda layer: layer.append("/a", "x"),
        lambda layer: layer.write("/a", "x"),
        lambda layer: layer.chmod("/a", 0o600),
        lambda layer: layer.delete("/a"),
        lambda layer: layer.move("/a", "/z"),
        lambda layer: layer.copy("/a", "/z"),
    ],
    ids=["read", "append", "write", "chmod", "delete", "move", "copy"],
)
def test_a_commit_is_refused_if_a_used_file_has_changed_below(first: object) -> None:
    lower = memory()
    layer = over(lower)
    assert callable(first)
    first(layer)
    layer.write("/new", "n")
    lower.write("/a", "by another")
    assert "'/a' changed in the lower filesystem" in conflict(layer)
    assert not lower.exists("/new")


def test_a_conflict_names_every_path() -> None:
    lower = memory()
    layer = over(lower)
    layer.read("/a")
    layer.write("/d/b", "mine")
    layer.write("/new", "mine")
    lower.write("/a", "x")
    lower.write("/d/b", "y")
    lower.write("/new", "z")
    assert "'/a', '/d/b', '/new' changed in the lower filesystem" in conflict(layer)


def test_a_new_entry_below_in_a_deleted_directory_is_a_conflict() -> None:
    lower = memory()
    layer = over(lower)
    layer.delete("/d", recursive=True)
    lower.write("/d/e/late", "x")
    assert "'/d'" in conflict(layer)


def test_an_equal_change_below_is_not_a_conflict() -> None:
    lower = memory()
    layer = over(lower)
    layer.write("/a", "same")
    layer.delete("/d/b")
    lower.write("/a", "same")
    lower.delete("/d/b")
    layer.commit()
    assert lower.read("/a").content == "same"


def test_reading_again_remembers_the_newest_version() -> None:
    lower = memory()
    layer = over(lower)
    layer.read("/a")
    lower.write("/a", "newer")
    layer.read("/a")
    layer.write("/new", "n")
    layer.commit()
    assert lower.read("/new").content == "n"


def test_reading_an_unchanged_file_again_adds_no_record() -> None:
    layer = over(memory())
    assert layer.session is not None
    layer.read("/a")
    seq = layer.session.seq
    layer.read_bytes("/a")
    layer.grep("two")
    layer.glob("**/*")
    assert layer.session.seq == seq


def test_a_change_below_to_an_unused_file_is_not_a_conflict() -> None:
    lower = memory()
    layer = over(lower)
    layer.grep("two")
    layer.write("/new", "n")
    lower.write("/a", "by another")
    layer.commit()
    assert (lower.read("/a").content, lower.read("/new").content) == ("by another", "n")


def test_a_commit_that_fails_halfway_leaves_the_lower_files_unchanged() -> None:
    lower = memory()
    small = InMemoryFilesystem(lower.session, limits=Limits(max_file_size=20))
    layer = OverlayFilesystem(small, Session(clock=count(5000).__next__))
    layer.write("/a", "small")
    layer.delete("/d", recursive=True)
    layer.write("/z", "larger than what may be there")
    before, shown = lower.tree().fingerprint, layer.tree().fingerprint
    with pytest.raises(OSError, match="/z"):
        layer.commit()
    assert (lower.tree().fingerprint, layer.tree().fingerprint) == (before, shown)
    layer.delete("/z")
    layer.commit()
    assert lower.tree().fingerprint == layer.tree().fingerprint


def test_a_layer_over_read_only_files_holds_changes_but_cannot_be_committed() -> None:
    layer = OverlayFilesystem(InMemoryFilesystem(memory().session, read_only=True), Session())
    layer.write("/a", "x")
    with pytest.raises(PermissionError, match="read-only"):
        layer.commit()
    assert layer.read("/a").content == "x"


def test_a_read_only_layer_can_be_read_and_refuses_changes() -> None:
    layer = OverlayFilesystem(memory(), Session(), read_only=True)
    assert layer.read("/a").content == "one\ntwo\nthree\n"
    for change in (layer.commit, layer.discard):
        with pytest.raises(PermissionError, match="read-only"):
            change()


def test_special_entries_are_hidden_copied_up_and_committed() -> None:
    lower = memory()
    fifo = leaves.special(leaves.FIFO, mode=0o600, at=1)
    lower.apply(EntryPut("/pipe", tree_of({"pipe": fifo}), 1))
    layer = over(lower)
    layer.move("/pipe", "/d/pipe")
    assert not layer.exists("/pipe")
    layer.commit()
    node = find(lower.tree(), ("d", "pipe"))
    assert type(node) is tuple
    assert node[0] is leaves.FIFO


def test_special_entries_of_a_host_directory_are_moved_by_a_commit(tmp_path: Path) -> None:
    (tmp_path / "root" / "d").mkdir(parents=True)
    os.mkfifo(tmp_path / "root" / "pipe", 0o640)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(os.path.relpath(tmp_path / "root" / "listener"))
    lower = HostFilesystem(tmp_path / "root", store=tmp_path / "store")
    layer = OverlayFilesystem(lower, Session())
    layer.move("/pipe", "/d/pipe")
    layer.copy("/d", "/copied")
    layer.move("/listener", "/moved")
    layer.commit()
    for path in (tmp_path / "root/d/pipe", tmp_path / "root/copied/pipe"):
        assert path.is_fifo()
        assert path.stat().st_mode & 0o777 == 0o640
    assert not (tmp_path / "root" / "pipe").exists()

    assert (tmp_path / "root" / "moved").is_socket()


def test_a_layer_needs_its_own_session() -> None:
    lower = memory()
    with pytest.raises(ValueError, match="its own session"):
        OverlayFilesystem(lower, lower.session)


def test_a_layer_over_a_layer_is_committed_one_level_at_a_time() -> None:
    lower = memory()
    middle = over(lower)
    top = OverlayFilesystem(middle, Session(clock=count(9000).__next__))
    middle.delete("/d/b")
    top.write("/a", "top")
    top.write("/d/b", "again")
    top.commit()
    assert (middle.read("/a").content, lower.read("/a").content) == ("top", "one\ntwo\nthree\n")
    middle.commit()
    assert lower.tree().fingerprint == top.tree().fingerprint
    assert lower.read("/d/b").content == "again"


def test_a_host_directory_is_read_in_place_and_committed_to(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("one\n")
    (root / "src/run").write_text("x")
    (root / "src/run").chmod(0o755)
    lower = HostFilesystem(root, session=Session(), store=tmp_path / "store")
    layer = OverlayFilesystem(lower, Session())
    layer.append("/src/a.py", "two\n")
    layer.append(f"{root}/src/run", "y")
    layer.write("/new/b", "b")
    assert (root / "src/a.py").read_text() == "one\n"
    assert not (root / "new").exists()
    shown = layer.tree().fingerprint
    layer.commit()
    assert lower.tree().fingerprint == shown
    assert (root / "src/a.py").read_text() == "one\ntwo\n"
    assert (root / "src/run").stat().st_mode & 0o777 == 0o755
    layer.read("/new/b")
    (root / "new/b").write_text("by another")
    layer.write("/src/c", "c")
    with pytest.raises(OSError, match="'/new/b' changed in the lower filesystem"):
        layer.commit()
    assert not (root / "src/c").exists()


def test_changes_by_a_program_in_a_checkout_stay_in_the_layer() -> None:
    lower = memory()
    before = lower.tree()
    layer = over(lower)
    with layer.checkout() as laid:
        place = Path(laid.directory)
        (place / "a").write_text("by a program")
        (place / "d/e/c").unlink()
        (place / "d/e").rmdir()
        (place / "d/e").write_text("a file now")
        (place / "new/x").parent.mkdir()
        (place / "new/x").write_text("x")
    assert laid.changed == ("/a", "/d/e", "/d/e/c", "/new", "/new/x")
    assert lower.tree() is before
    assert (layer.read("/a").content, layer.read("/d/e").content) == ("by a program", "a file now")
    shown = layer.tree().fingerprint
    layer.commit()
    assert lower.tree().fingerprint == shown


def test_a_restore_remembers_the_lower_files() -> None:
    lower = memory()
    layer = over(lower)
    layer.write("/a", "mine")
    layer.delete("/d/b")
    kept = layer.snapshot()
    layer.discard()
    layer.restore(kept)
    lower.write("/d/b", "by another")
    lower.write("/a", "by another")
    assert "'/a', '/d/b'" in conflict(layer)


@pytest.mark.parametrize("shares_the_session", [False, True])
def test_a_commit_that_fails_halfway_leaves_a_host_directory_unchanged(
    shares_the_session: bool, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("a\n")
    (root / "b").write_text("b\n")
    session = Session()
    lower = HostFilesystem(root, session=session, limits=Limits(max_file_size=20), store=tmp_path / "store")
    layer = OverlayFilesystem(lower, session if shares_the_session else Session())
    layer.append("/a", "more\n")
    layer.delete("/b")
    layer.write("/z", "larger than what may be there")
    before, shown = lower.tree().fingerprint, layer.tree().fingerprint
    with pytest.raises(OSError, match="/z"):
        layer.commit()
    assert (lower.tree().fingerprint, layer.tree().fingerprint) == (before, shown)
    assert ((root / "a").read_text(), (root / "b").read_text()) == ("a\n", "b\n")
    layer.write("/z", "small")
    layer.commit()
    assert ((root / "a").read_text(), (root / "z").read_text()) == ("a\nmore\n", "small")
    assert not (root / "b").exists()


def test_a_rollback_of_a_shared_session_undoes_a_commit(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("a\n")
    session = Session()
    layer = OverlayFilesystem(HostFilesystem(root, session=session, store=tmp_path / "store"), session)
    layer.append("/a", "more\n")
    snapshot = session.snapshot()
    layer.commit()
    session.rollback(snapshot)
    assert (root / "a").read_text() == "a\n"
    assert layer.read("/a").content == "a\nmore\n"
    layer.commit()
    assert (root / "a").read_text() == "a\nmore\n"


def test_lower_directories_are_counted_once_however_deep_the_upper_tree_is() -> None:
    class Counting(InMemoryFilesystem):
        counted = 0

        def totals(self, segments: tuple[str, ...]) -> tuple[int, int, int]:
            self.counted += 1
            return super().totals(segments)

    deep = "/d" * 50
    lower = Counting()
    lower.write(f"{deep}/below", "12")
    lower.write("/d/gone/x", "3")
    layer = over(lower)
    layer.write(f"{deep}/own", "345")
    layer.delete("/d/gone", recursive=True)
    lower.counted = 0
    totals = layer.statistics()
    assert (totals.total_size, totals.file_count, totals.directory_count) == (5, 2, 50)
    # The whole lower tree, and the directory that is hidden.
    assert lower.counted == 2
    assert layer.delete("/d", recursive=True) == 52


def test_only_the_first_change_looks_at_the_lower_root() -> None:
    class Counting(InMemoryFilesystem):
        counted = 0

        def lookup(self, segments: Sequence[str]) -> Node | None:
            self.counted += not segments
            return super().lookup(segments)

    lower = Counting()
    lower.write("/d/a", "1")
    layer = over(lower)
    layer.write("/d/a", "2")
    assert lower.counted
    lower.counted = 0
    layer.write("/d/a", "3")
    layer.write("/d/b", "new")
    layer.chmod("/d/a", 0o600)
    layer.delete("/d/b")
    assert lower.counted == 0


def deep_write(depth: int) -> tuple[int, OverlayFilesystem]:
    """Write a file of the lower layer at this depth; return how many functions were called."""
    limits = Limits(max_path_depth=None)
    lower = InMemoryFilesystem(Session(session_id="lower"), limits=limits)
    path = "/d" * depth + "/f"
    lower.write(path, "old")
    layer = OverlayFilesystem(lower, Session(session_id="upper"), limits=limits)
    calls = calls_of(lambda: layer.write(path, "new"), in_c=False)
    assert layer.read(path).content == "new"
    return calls, layer


def test_a_change_takes_work_in_proportion_to_its_depth() -> None:
    few, _ = deep_write(100)
    many, _ = deep_write(400)

    assert many < 6 * few


def test_the_directories_above_a_change_are_copied_up_in_one_record() -> None:
    _, layer = deep_write(50)
    assert isinstance(layer.session, Session)

    assert len(layer.session.records) < 5
    assert layer.tree().directory_count == 50
    assert layer.diff() == TreeDiff(changed=("/d" * 50 + "/f",))
