"""What differs between two trees, against a comparison of plain dictionaries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import import_module
from random import Random
from typing import Any
from unittest import mock

import pytest

from tests.models.cost import lines_of
from tests.models.events import random_events
from tests.models.trees import PLAIN_NAMES, Plain, flatten, grow, random_tree
from weakfs.reducers import FileTree, TreeDiff, reduce
from weakfs.reducers import diff as diff_trees
from weakfs.reducers.events import EntryCopied, EntryMoved, FileWritten
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.diff import differences, equal
from weakfs.reducers.tree.node import EMPTY_TREE, Node, put, remove, tree_of

diff_module = import_module("weakfs.reducers.tree.diff")


def below(flat: Plain, top: str) -> dict[str, object]:
    """Return the entries at and below a path, by relative path."""
    return {path[len(top) :]: entry for path, entry in flat.items() if path == top or path.startswith(top + "/")}


def check(before: FileTree, after: FileTree) -> TreeDiff:
    """Compare a diff with plain dictionaries: applied to one it gives the other, and contains nothing unnecessary."""
    found = diff_trees(before, after)
    old, new = flatten(before), flatten(after)
    for told in (found.added, found.removed, found.changed):
        assert list(told) == sorted(set(told))
    assert list(found.moved) == sorted(set(found.moved))
    added, removed, changed = set(found.added), set(found.removed), set(found.changed)
    sources: set[str] = set()
    targets: set[str] = set()
    for source, target in found.moved:
        gone, come = below(old, source), below(new, target)
        assert gone
        assert gone.keys() == come.keys()
        assert {key: value for key, value in gone.items() if key} == {key: value for key, value in come.items() if key}
        sources |= {source + key for key in gone}
        targets |= {target + key for key in come}
    for places in ([source for source, _ in found.moved], [target for _, target in found.moved]):
        assert not any(one.startswith(f"{other}/") for one in places for other in places), "a move inside a move"
    result = {path: entry for path, entry in old.items() if path not in removed and path not in sources}
    result |= {path: new[path] for path in added | targets | changed}
    assert result == new
    other_kind = {path for path in old.keys() & new.keys() if (old[path][0] == "d") != (new[path][0] == "d")}
    assert not added & targets
    assert not removed & sources
    assert not changed & (added | removed | sources | targets)
    assert (added | targets) - other_kind == new.keys() - old.keys()
    assert (removed | sources) - other_kind == old.keys() - new.keys()
    assert changed == {path for path in old.keys() & new.keys() if old[path] != new[path]} - (
        added | removed | sources | targets
    )
    assert bool(found) == (old != new)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_diff_of_unrelated_trees_transforms_one_into_the_other(seed: int) -> None:
    random = Random(seed)
    check(random_tree(random, depth=3), random_tree(random, depth=3))


@pytest.mark.parametrize("seed", range(60))
def test_a_diff_to_a_later_version_transforms_one_tree_into_the_other(seed: int) -> None:
    random = Random(seed)
    before = after = random_tree(random, depth=4)
    for event in random_events(random, random.randint(1, 12)):
        after = reduce(after, event)
    check(before, after)
    check(after, before)
    check(before, EMPTY_TREE)


@pytest.mark.parametrize("seed", range(20))
def test_equal_trees_have_no_differences_shared_or_not(seed: int) -> None:
    tree = random_tree(Random(seed), depth=4)
    again = grow(flatten(tree))
    assert diff_trees(tree, again) == diff_trees(tree, tree) == TreeDiff()
    assert not diff_trees(tree, again)
    assert equal(tree, again)


@pytest.mark.parametrize("seed", range(40))
def test_trees_are_equal_if_their_plain_dictionaries_are(seed: int) -> None:
    random = Random(seed)
    one = random_tree(random, names=PLAIN_NAMES[:2], contents=(b"", b"x"), depth=1, width=2)
    other = random_tree(random, names=PLAIN_NAMES[:2], contents=(b"", b"x"), depth=1, width=2)
    assert equal(one, other) == (flatten(one) == flatten(other))
    assert equal(None, None)
    assert not equal(one, None)


def build(**files: str) -> FileTree:
    """Make a tree: `d__a="x"` is the file `/d/a`."""
    tree = EMPTY_TREE
    for name, content in files.items():
        tree = put(tree, tuple(name.split("__")), leaf.file(content.encode(), at=0), 0)
    return tree


def test_a_moved_directory_is_one_pair_even_into_a_new_directory() -> None:
    before = build(d__a="one", d__e__b="two", f="x")
    assert check(before, reduce(before, EntryMoved("/d", "/x/y", 1))) == TreeDiff(
        added=("/x",), moved=(("/d", "/x/y"),)
    )


def test_a_moved_directory_is_one_pair_wherever_it_moved() -> None:
    before = build(d__e__f__a="one", d__e__f__b="two", d__g="three", keep="k")
    inner = reduce(before, EntryMoved("/d/e/f", "/keep2", 1))
    assert check(before, inner) == TreeDiff(moved=(("/d/e/f", "/keep2"),))
    without = remove(inner, ("d",), 1)
    assert check(before, without) == TreeDiff(removed=("/d", "/d/e", "/d/g"), moved=(("/d/e/f", "/keep2"),))


def test_an_entry_copied_out_of_a_moved_directory_is_new() -> None:
    before = build(d__e__f__a="one", d__e__f__b="two", keep="k")
    copied = reduce(before, EntryCopied("/d/e", "/copy", 1))
    found = check(before, reduce(copied, EntryMoved("/d", "/x/y", 1)))
    assert found == TreeDiff(
        added=("/copy", "/copy/f", "/copy/f/a", "/copy/f/b", "/x"),
        moved=(("/d", "/x/y"),),
    )


def test_a_moved_file_is_paired_preferably_with_one_of_the_same_name() -> None:
    before = build(a__n="same", b__m="same", keep="k")
    found = check(before, build(c__m="same", keep="k"))
    assert found.moved == (("/b/m", "/c/m"),)
    assert found.removed == ("/a", "/a/n", "/b")
    assert found.added == ("/c",)


def test_empty_files_links_and_copies_are_not_moves() -> None:
    before = build(a="", keep="k")
    assert check(before, build(b="", keep="k")).moved == ()
    linked = put(EMPTY_TREE, ("l",), leaf.link("t", at=0), 0)
    assert check(linked, put(EMPTY_TREE, ("m",), leaf.link("t", at=0), 0)).moved == ()
    assert check(before, reduce(before, EntryCopied("/keep", "/copy", 1))) == TreeDiff(added=("/copy",))


def test_a_moved_file_is_paired_even_if_its_permission_bits_changed() -> None:
    before = put(EMPTY_TREE, ("a",), leaf.file(b"x", mode=0o644, at=0), 0)
    after = put(EMPTY_TREE, ("b",), leaf.file(b"x", mode=0o755, at=0), 0)
    assert diff_trees(before, after).moved == (("/a", "/b"),)


def test_an_entry_of_another_kind_at_a_path_is_a_change() -> None:
    assert check(build(a="x"), build(a__b="y")) == TreeDiff(added=("/a/b",), changed=("/a",))
    assert check(build(a__b="y"), build(a="x")) == TreeDiff(removed=("/a/b",), changed=("/a",))
    linked = put(EMPTY_TREE, ("a",), leaf.link("x", at=0), 0)
    assert check(build(a="x"), linked) == TreeDiff(changed=("/a",))


def test_changed_permission_bits_of_files_directories_and_the_root_are_changes() -> None:
    before = build(d__a="x")
    after = tree_of({"d": tree_of({"a": leaf.file(b"x", mode=0o600, at=0)}, mode=0o700)}, mode=0o711)
    assert check(before, after) == TreeDiff(changed=("/", "/d", "/d/a"))


def ten_thousand() -> FileTree:
    return tree_of(
        {
            f"d{d}": tree_of({f"f{f}": leaf.file(b"%d %d" % (d, f), at=0) for f in range(100)}, modified_at=d)
            for d in range(100)
        }
    )


def test_the_cost_of_a_diff_depends_on_the_difference_only() -> None:
    before = ten_thousand()
    after = reduce(reduce(before, FileWritten("/d7/f9", b"longer", 1)), EntryMoved("/d8", "/moved", 1))
    calls = 0
    actual = maps.differences

    def counted(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
        nonlocal calls
        calls += 1
        return actual(old, new)

    with (
        mock.patch.object(maps, "differences", counted),
        mock.patch("weakfs.reducers.tree.diff.walk", side_effect=AssertionError("a moved directory was walked")),
        mock.patch.object(leaf, "content_of", side_effect=AssertionError("a content was read")),
    ):
        found = diff_trees(before, after)
    assert found == TreeDiff(changed=("/d7/f9",), moved=(("/d8", "/moved"),))
    assert calls < 30


def test_a_diff_with_a_thousand_moved_directories_takes_linear_time() -> None:
    def steps(count: int) -> int:
        moved: dict[str, Node] = {f"d{n}": tree_of({"f": leaf.file(b"%d" % n, at=0)}) for n in range(count)}
        before, after = (
            tree_of({"from": tree_of(moved)}),
            tree_of({"to": tree_of({**moved, "x": leaf.file(b"", at=0)})}),
        )
        assert len(diff_trees(before, after).moved) == count
        return lines_of(lambda: diff_trees(before, after), diff_module)

    assert steps(1000) < 6 * steps(250)


def test_a_diff_with_a_thousand_equal_moved_files_takes_linear_time() -> None:
    def steps(count: int) -> int:
        before = tree_of({"from": tree_of({f"a{n}": leaf.file(b"same", at=0) for n in range(count)})})
        after = tree_of({"to": tree_of({f"b{n}": leaf.file(b"same", at=0) for n in range(count)})})
        assert len(diff_trees(before, after).moved) == count
        return lines_of(lambda: diff_trees(before, after), diff_module)

    assert steps(1000) < 6 * steps(250)


def test_contents_are_hashed_to_find_moves_only_if_sizes_are_equal() -> None:
    before = build(old="of one size", keep="k")
    with mock.patch.object(hashlib, "sha256", side_effect=AssertionError("a content was hashed")):
        assert diff_trees(before, build(keep="k")).removed == ("/old",)
        assert diff_trees(before, build(keep="k", new="another size")).added == ("/new",)


def test_topmost_differences_do_not_descend_into_entries_of_one_side() -> None:
    before, after = build(d__a="x", e__b="y"), build(d__a="z", g__h__i="w")
    found = {path: (old is not None, new is not None) for path, old, new in differences(before, after)}
    assert found == {"/d/a": (True, True), "/e": (True, False), "/g": (False, True)}
