"""A tree that contains its directories in very many places: every operation works, or reports that it is too large."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from weakfs import Capability, HostFilesystem, InMemoryFilesystem, OverlayFilesystem, Session, SessionError, Toolset
from weakfs.filesystem import Limits
from weakfs.reducers import FileTree, diff
from weakfs.reducers.merging.tree_merge import merge
from weakfs.reducers.partial_trees import filled, missing, with_changes
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import equal
from weakfs.reducers.tree.node import EMPTY_TREE, height, tree_of, walk
from weakfs.reducers.tree.repeated_subtrees import TreeTooLarge

DEPTH = 40
# As deep as a tree in a session file may be.
SAVED = 28


def doubled(depth: int, content: bytes = b"words\n") -> FileTree:
    """Return a tree whose every directory holds the next one twice: 2 ** depth files, and `depth` directories."""
    tree = tree_of({"f": leaves.file(content, at=1)})
    for _ in range(depth):
        tree = tree_of({"a": tree, "b": tree})
    return tree


def holding(tree: FileTree) -> InMemoryFilesystem:
    session = Session(session_id="s")
    session[FileTree].seed(tree)
    return InMemoryFilesystem(session)


pytestmark = pytest.mark.usefixtures("never_hung")


# Values that are computed once per directory.


def test_digests_heights_and_totals_are_computed_once_per_directory() -> None:
    tree = doubled(DEPTH)

    assert tree.digest == doubled(DEPTH).digest
    assert tree.fingerprint == doubled(DEPTH).fingerprint
    assert height(tree) == DEPTH + 1
    assert holding(tree).statistics().file_count == 1 << DEPTH


def test_equal_trees_are_found_equal() -> None:
    assert equal(doubled(DEPTH), doubled(DEPTH))
    assert not equal(doubled(DEPTH), doubled(DEPTH, b"other\n"))


def test_single_entries_are_read_changed_and_deleted() -> None:
    fs = holding(doubled(DEPTH))
    path = "/a" * DEPTH + "/f"

    fs.write(path, "other")

    assert fs.read(path).content == "other"
    assert fs.glob(path)[0].path == path
    assert len(fs.list("/")) == 2
    assert fs.delete("/b", recursive=True) > 1 << DEPTH
    assert fs.exists(path)


def test_the_session_takes_snapshots_and_rolls_back() -> None:
    fs = holding(doubled(DEPTH))
    assert fs.session is not None
    fs.session.snapshot("before")
    fs.write("/x", "1")

    fs.session.rollback("before")

    assert fs.tree().digest == doubled(DEPTH).digest


def test_a_tree_with_more_entries_than_can_be_read_back_is_not_saved(tmp_path: Path) -> None:
    session = holding(doubled(DEPTH)).session
    assert session is not None

    with pytest.raises(SessionError, match="entries"):
        session.save(tmp_path / "s.json")


def test_a_saved_tree_is_small_and_can_be_loaded_and_saved_again(tmp_path: Path) -> None:
    session = holding(doubled(SAVED)).session
    assert session is not None
    session.save(tmp_path / "s.json")
    assert (tmp_path / "s.json").stat().st_size < 10_000

    back = Session.load(tmp_path / "s.json")
    back.save(tmp_path / "again.json")

    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "s.json").read_bytes()
    assert InMemoryFilesystem(back).tree().digest == doubled(SAVED).digest
    with pytest.raises(TreeTooLarge):
        InMemoryFilesystem(back).grep("words", max_matches=-1)


def test_forks_that_change_different_paths_merge() -> None:
    fs = holding(doubled(DEPTH))
    session = fs.session
    assert session is not None
    fork = session.fork()
    InMemoryFilesystem(fork).write("/a/a/x", "theirs")
    fs.write("/b/x", "ours")

    session.merge(fork)

    assert fs.read("/a/a/x").content == "theirs"
    assert fs.read("/b/x").content == "ours"


# Operations that visit all entries.

WALKS: dict[str, Callable[[InMemoryFilesystem], object]] = {
    "walk": lambda fs: list(fs.walk()),
    "walk below": lambda fs: list(fs.walk("/a/b")),
    "glob": lambda fs: fs.glob("**/f", max_results=-1),
    "glob of directories": lambda fs: fs.glob("**/"),
    "grep": lambda fs: fs.grep("words", max_matches=-1),
    "grep without matches": lambda fs: fs.grep("nowhere"),
    "grep of some files": lambda fs: fs.grep("words", glob="**/*.py"),
    "export_bytes": lambda fs: fs.export_bytes(),
    "checkout": lambda fs: fs.checkout().__enter__(),
    "restore": lambda fs: restored(fs),
    "overlay's tree": lambda fs: OverlayFilesystem(InMemoryFilesystem(), fs.session).tree(),
    "overlay's totals": lambda fs: OverlayFilesystem(InMemoryFilesystem(), fs.session).statistics(),
    "overlay's grep": lambda fs: OverlayFilesystem(fs, Session()).grep("nowhere"),
    "overlay's walk": lambda fs: list(OverlayFilesystem(fs, Session()).walk()),
    "limits": lambda fs: Limits().check_tree(doubled(SAVED)),
}


def restored(fs: InMemoryFilesystem) -> object:
    kept = fs.snapshot()
    fs.delete("/a", recursive=True)
    fs.delete("/b", recursive=True)
    return fs.restore(kept)


@pytest.mark.parametrize("verb", WALKS)
def test_walking_all_entries_reports_that_there_are_too_many(verb: str) -> None:
    fs = holding(doubled(DEPTH))

    with pytest.raises(TreeTooLarge, match=r"are distinct; choose a part of it"):
        WALKS[verb](fs)


def test_a_restore_that_is_refused_changes_nothing() -> None:
    fs = holding(doubled(DEPTH))
    kept = fs.snapshot()
    fs.delete("/a", recursive=True)
    fs.delete("/b", recursive=True)
    fs.write("/x", "1")

    with pytest.raises(TreeTooLarge):
        fs.restore(kept)

    assert [entry.name for entry in fs.list("/")] == ["x"]


def test_it_is_not_written_to_a_directory_of_the_host(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "kept").write_text("as it was")
    host = HostFilesystem(root, store=tmp_path / "store", limits=Limits(max_path_depth=None))

    with pytest.raises(TreeTooLarge):
        host.restore(holding(doubled(SAVED)).snapshot(), foreign=True)

    assert [path.name for path in root.iterdir()] == ["kept"]


COMPARISONS: dict[str, Callable[[FileTree, FileTree], object]] = {
    "diff": diff,
    "diff backwards": lambda one, other: diff(other, one),
    "merge": lambda one, other: merge(one, doubled(DEPTH), other),
    "missing": lambda one, other: list(missing(one, other)),
    "with_changes": lambda one, other: with_changes(one, doubled(DEPTH), other),
}


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("verb", COMPARISONS)
def test_two_such_trees_that_differ_everywhere_are_not_compared(verb: str) -> None:
    one, other = doubled(DEPTH), doubled(DEPTH, b"other\n")

    with pytest.raises(TreeTooLarge, match="compare parts of them"):
        COMPARISONS[verb](one, other)


@pytest.mark.parametrize("verb", ["added", "removed", "filled"])
def test_a_difference_from_an_empty_tree_is_not_listed(verb: str) -> None:
    tree = doubled(DEPTH)

    with pytest.raises(TreeTooLarge):
        if verb == "filled":
            filled(tree_of({"x": EMPTY_TREE}), [(("x",), tree)], ())
        else:
            diff(*((EMPTY_TREE, tree) if verb == "added" else (tree, EMPTY_TREE)))


def test_a_difference_of_a_few_paths_is_found() -> None:
    fs = holding(doubled(DEPTH))
    before = fs.tree()
    fs.write("/a/b/new", "1")
    fs.delete("/a/a" + "/b" * (DEPTH - 2) + "/f")
    fs.move("/b", "/moved")

    found = diff(before, fs.tree())

    assert found.added == ("/a/b/new",)
    assert found.removed == ("/a/a" + "/b" * (DEPTH - 2) + "/f",)
    assert found.moved == (("/b", "/moved"),)


CALLS: list[tuple[str, dict[str, object]]] = [
    ("grep", {"pattern": "nowhere"}),
    ("glob", {"pattern": "**/nothing"}),
    ("cp", {"source": "/a", "destination": "/c"}),
    ("mv", {"source": "/a", "destination": "/c"}),
    ("rm", {"path": "/a", "recursive": True}),
]


@pytest.mark.parametrize("capability", [None, Capability(fs_roots=("/",), max_changed_files=5)], ids=["free", "bound"])
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_tool_answers_for_such_a_tree(name: str, arguments: dict[str, object], capability: Capability | None) -> None:
    session = holding(doubled(DEPTH)).session
    assert session is not None
    tools = Toolset(session, InMemoryFilesystem(session), capability=capability)

    result = tools.call(name, arguments)

    assert result.success or result.message


def test_a_scan_that_is_bounded_ends_at_its_bound() -> None:
    session = holding(doubled(DEPTH)).session
    assert session is not None
    tools = Toolset(session, InMemoryFilesystem(session), capability=Capability(max_scan_files=5))

    result = tools.call("grep", {"pattern": "words"})

    assert result.success, result.message
    assert getattr(result.value, "match_count", None) == 5
    assert getattr(result.value, "truncated", None)


def test_a_tree_with_few_copies_can_be_walked() -> None:
    assert len(list(walk(doubled(10)))) == doubled(10).node_count
