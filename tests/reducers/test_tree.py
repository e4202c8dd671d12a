"""The file tree: totals, sharing, modification times of directories, walks and heights."""

from __future__ import annotations

from random import Random

import pytest

from tests.models.events import random_path
from tests.models.trees import flatten, random_tree, recount, totals
from weakfs.reducers import FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import EMPTY_TREE, entries, find, height, is_tree, put, remove, tree_of, walk, with_mode


def file(content: bytes = b"x", at: int = 1) -> leaf.Leaf:
    return leaf.file(content, at=at)


@pytest.mark.parametrize("seed", range(30))
def test_totals_equal_a_recount_after_any_puts_and_removes(seed: int) -> None:
    random = Random(seed)
    tree = random_tree(random, depth=4)
    for at in range(60):
        segments = segments_of(random_path(random))
        if random.random() < 0.4:
            tree = remove(tree, segments, at)
        elif random.random() < 0.3:
            tree = put(tree, segments, random_tree(random, depth=1), at)
        else:
            tree = put(tree, segments, file(random.randbytes(random.randint(0, 9)), at), at)
        assert totals(tree) == recount(tree)
        for _, node in walk(tree):
            if isinstance(node, FileTree):
                assert totals(node) == recount(node)


def test_the_totals_of_a_large_directory_are_correct() -> None:
    tree = EMPTY_TREE
    for number in range(2000):
        tree = put(tree, ("many", f"f{number}"), file(b"ab"), number)
    assert totals(tree) == (2000, 1, 4000)
    for number in range(0, 2000, 2):
        tree = remove(tree, ("many", f"f{number}"), number)
    assert totals(tree) == recount(tree) == (1000, 1, 2000)


def test_replacing_a_file_with_a_directory_updates_both_totals() -> None:
    tree = put(EMPTY_TREE, ("a",), file(b"12345"), 1)
    tree = put(tree, ("a",), tree_of({"x": file(b"1"), "y": file(b"22")}), 2)
    assert totals(tree) == (2, 1, 3)
    tree = put(tree, ("a",), file(b""), 3)
    assert totals(tree) == (1, 0, 0)


def test_putting_an_entry_below_a_file_turns_it_into_a_directory() -> None:
    tree = put(put(EMPTY_TREE, ("a",), file(b"12345"), 1), ("a", "b"), file(b"1"), 2)
    assert totals(tree) == (1, 1, 1)


def test_removing_a_missing_entry_returns_the_same_tree_object() -> None:
    tree = put(EMPTY_TREE, ("a", "b"), file(), 1)
    for segments in (("x",), ("a", "x"), ("a", "b", "x"), ("a", "b", "x", "y")):
        assert remove(tree, segments, 9) is tree


def test_a_change_shares_everything_outside_its_path() -> None:
    tree = EMPTY_TREE
    for path in (("a", "b", "f"), ("a", "c", "f"), ("d", "f")):
        tree = put(tree, path, file(), 1)
    changed = put(tree, ("a", "b", "g"), file(), 2)
    assert find(changed, ("d",)) is find(tree, ("d",))
    assert find(changed, ("a", "c")) is find(tree, ("a", "c"))
    assert find(changed, ("a", "b", "f")) is find(tree, ("a", "b", "f"))
    assert find(tree, ("a", "b", "g")) is None


def modified(tree: FileTree, *segments: str) -> int:
    node = find(tree, segments)
    assert isinstance(node, FileTree)
    return node.modified_at


def test_a_directory_is_modified_when_its_names_change_and_only_then() -> None:
    tree = put(EMPTY_TREE, ("a", "b", "f"), file(), 10)
    tree = put(tree, ("a", "b", "f"), file(b"other"), 20)
    assert (modified(tree), modified(tree, "a"), modified(tree, "a", "b")) == (10, 10, 10)
    tree = put(tree, ("a", "b", "g"), file(), 30)
    assert (modified(tree), modified(tree, "a"), modified(tree, "a", "b")) == (10, 10, 30)
    tree = remove(tree, ("a", "b"), 40)
    assert (modified(tree), modified(tree, "a")) == (10, 40)


def test_a_tree_built_at_once_equals_one_built_step_by_step() -> None:
    nodes = {f"n{number}": file(b"%d" % number) for number in range(100)}
    stepwise = EMPTY_TREE
    for name, node in nodes.items():
        stepwise = put(stepwise, (name,), node, 0)
    at_once = tree_of(dict(nodes))
    assert totals(at_once) == totals(stepwise)
    assert at_once.fingerprint == stepwise.fingerprint


def test_new_permission_bits_keep_entries_times_and_totals() -> None:
    tree = tree_of({"a": file(b"abc")}, modified_at=5, created_at=4)
    changed = with_mode(tree, 0o700)
    assert (changed.mode, changed.modified_at, changed.created_at) == (0o700, 5, 4)
    assert changed._places is tree._places
    assert changed._nodes is tree._nodes
    assert totals(changed) == totals(tree)
    assert tree.mode == 0o755


def test_find_distinguishes_files_from_directories_and_does_not_descend_into_files() -> None:
    tree = put(EMPTY_TREE, ("a", "f"), file(), 1)
    assert find(tree, ()) is tree
    assert is_tree(find(tree, ("a",)))
    assert not is_tree(find(tree, ("a", "f")))
    assert find(tree, ("a", "f", "g")) is None
    assert find(tree, ("A",)) is None


@pytest.mark.parametrize("seed", range(10))
def test_a_walk_yields_every_entry_once_with_parents_first_sorted_by_name(seed: int) -> None:
    tree = random_tree(Random(seed), depth=4)
    walked = list(walk(tree, "/at"))
    paths = [path for path, _ in walked]
    assert sorted(paths) == sorted("/at" + path for path in flatten(tree) if path != "/")
    assert [path.split("/") for path in paths] == sorted(path.split("/") for path in paths)
    for path, node in walked:
        assert find(tree, segments_of(path.removeprefix("/at"))) is node


def test_entries_of_a_large_directory_are_sorted_by_name() -> None:
    tree = tree_of({f"n{number}": file() for number in range(500)})
    assert [name for name, _ in entries(tree)] == sorted(f"n{number}" for number in range(500))


@pytest.mark.parametrize("seed", range(10))
def test_the_height_is_that_of_the_deepest_path(seed: int) -> None:
    tree = random_tree(Random(seed), depth=5)
    flat = flatten(tree)
    del flat["/"]
    assert height(tree) == max((path.count("/") for path in flat), default=0)
    assert height(EMPTY_TREE) == 0
    assert height(tree_of({"empty": tree_of({})})) == 1


def test_the_repr_of_a_tree_is_a_summary() -> None:
    tree = tree_of({"a": file(), "d": tree_of({"b": file()})})
    assert repr(tree) == "<FileTree of 2 files and 1 directories>"
    assert tree.node_count == 3


def test_a_tree_ten_thousand_directories_deep_is_handled_without_recursion() -> None:
    deep = ("d",) * 10_000
    tree = put(EMPTY_TREE, (*deep, "f"), file(b"abc"), 1)
    assert totals(tree) == (1, 10_000, 3)
    assert height(tree) == 10_001
    assert sum(1 for _ in maps.items(tree._children)) == 1
    assert tree.digest != tree.fingerprint
    assert totals(remove(tree, (*deep, "f"), 2)) == (0, 10_000, 0)
    assert remove(tree, ("d",), 2).node_count == 0


@pytest.mark.parametrize("count", [3, 100])
def test_the_entries_of_a_tree_cannot_be_changed_from_outside(count: int) -> None:
    nodes = {f"f{number}": file(b"x", at=1) for number in range(count)}
    tree = tree_of(dict(nodes))

    assert dict(tree.children) == nodes
    with pytest.raises(TypeError):
        tree.children["f0"] = file(b"y", at=2)  # type: ignore[index]  # the test
    with pytest.raises(AttributeError):
        tree.children = {}  # type: ignore[misc]  # the test
    assert dict(tree.children) == nodes


@pytest.mark.parametrize(
    "name", ["mode", "modified_at", "created_at", "file_count", "directory_count", "total_size", "node_count"]
)
def test_the_attributes_of_a_tree_cannot_be_assigned(name: str) -> None:
    tree = tree_of({"f": file(b"x", at=1)}, mode=0o750, modified_at=5, created_at=4)
    before = getattr(tree, name)

    with pytest.raises(AttributeError):
        setattr(tree, name, 7)
    assert getattr(tree, name) == before
