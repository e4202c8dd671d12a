"""Three-way merges of trees: a table of cases, and random trees against a merge of plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any
from unittest import mock

import pytest

from tests.models.events import random_events
from tests.models.merging import merge_plain
from tests.models.trees import Entry, Plain, flatten, grow, random_tree, recount, totals
from weakfs.reducers import FileTree, merge, reduce
from weakfs.reducers.events import FileWritten
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import EMPTY_TREE, find, put, tree_of
from weakfs.session.slices.slice import Conflict

D: Entry = ("d", 0o755)
D7: Entry = ("d", 0o700)


def f(content: bytes = b"x\n", mode: int = 0o644) -> Entry:
    return ("f", content, mode)


def link(target: str) -> Entry:
    return ("l", target)


ABC = b"a\nb\nc\n"

# base, ours, theirs, and the result: a tree, or the paths in conflict.
Case = tuple[Plain, Plain, Plain, Plain | set[str]]

CASES: dict[str, Case] = {
    "both add different files": ({}, {"/a": f()}, {"/b": f()}, {"/a": f(), "/b": f()}),
    "both add the same file": ({}, {"/a": f()}, {"/a": f()}, {"/a": f()}),
    "both add one name": ({}, {"/a": f()}, {"/a": f(b"y")}, {"/a"}),
    "both add a directory": ({}, {"/d": D, "/d/a": f()}, {"/d": D, "/d/b": f()}, {"/d": D, "/d/a": f(), "/d/b": f()}),
    "both add a directory and a file in it": (
        {},
        {"/d": D, "/d/a": f()},
        {"/d": D, "/d/a": f(b"y")},
        {"/d/a"},
    ),
    "a file here, a directory there": ({}, {"/d": f()}, {"/d": D, "/d/a": f()}, {"/d", "/d/a"}),
    "both delete a file": ({"/a": f(), "/b": f()}, {"/b": f()}, {"/b": f()}, {"/b": f()}),
    "deleted here, changed there": ({"/a": f()}, {}, {"/a": f(b"y")}, {"/a"}),
    "changed here, deleted there": ({"/a": f()}, {"/a": f(b"y")}, {}, {"/a"}),
    "deleted here, its bits changed there": ({"/a": f()}, {}, {"/a": f(mode=0o755)}, {"/a"}),
    "deleted here, rewritten with the same content there": ({"/a": f()}, {}, {"/a": f()}, {}),
    "different lines": ({"/a": f(ABC)}, {"/a": f(b"A\nb\nc\n")}, {"/a": f(b"a\nb\nC\n")}, {"/a": f(b"A\nb\nC\n")}),
    "the same line": ({"/a": f(ABC)}, {"/a": f(b"A\nb\nc\n")}, {"/a": f(b"1\nb\nc\n")}, {"/a"}),
    "the same change": ({"/a": f(ABC)}, {"/a": f(b"A\nb\nc\n")}, {"/a": f(b"A\nb\nc\n")}, {"/a": f(b"A\nb\nc\n")}),
    "content here, bits there": ({"/a": f()}, {"/a": f(b"y")}, {"/a": f(mode=0o755)}, {"/a": f(b"y", 0o755)}),
    "different lines and bits": (
        {"/a": f(ABC)},
        {"/a": f(b"A\nb\nc\n", 0o755)},
        {"/a": f(b"a\nb\nC\n")},
        {"/a": f(b"A\nb\nC\n", 0o755)},
    ),
    "different bits": ({"/a": f()}, {"/a": f(mode=0o755)}, {"/a": f(mode=0o700)}, {"/a"}),
    "the same bits": ({"/a": f()}, {"/a": f(mode=0o755)}, {"/a": f(mode=0o755)}, {"/a": f(mode=0o755)}),
    "bits conflict though lines merge": (
        {"/a": f(ABC)},
        {"/a": f(b"A\nb\nc\n", 0o755)},
        {"/a": f(b"a\nb\nC\n", 0o700)},
        {"/a"},
    ),
    "both change a binary file": ({"/a": f(b"\0a\nb\n")}, {"/a": f(b"\0A\nb\n")}, {"/a": f(b"\0a\nB\n")}, {"/a"}),
    "both change bytes that are not text": ({"/a": f(b"\xff\nb\n")}, {"/a": f(b"\xff\n")}, {"/a": f(b"b\n")}, {"/a"}),
    "a link that both redirect": ({"/l": link("a")}, {"/l": link("b")}, {"/l": link("c")}, {"/l"}),
    "a link that both redirect to the same target": (
        {"/l": link("a")},
        {"/l": link("b")},
        {"/l": link("b")},
        {"/l": link("b")},
    ),
    "a link that one redirects": ({"/l": link("a")}, {"/l": link("a")}, {"/l": link("b")}, {"/l": link("b")}),
    "a file that becomes a link and is changed": ({"/a": f()}, {"/a": link("b")}, {"/a": f(b"y")}, {"/a"}),
    "a link whose target reads like the file": ({"/a": f(b"b")}, {"/a": link("b")}, {"/a": f(b"c")}, {"/a"}),
    "a directory deleted, a file added inside": (
        {"/d": D, "/d/a": f()},
        {},
        {"/d": D, "/d/a": f(), "/d/b": f()},
        {"/d", "/d/b"},
    ),
    "an empty directory deleted, a file added inside": ({"/d": D}, {}, {"/d": D, "/d/b": f()}, {"/d", "/d/b"}),
    "a directory deleted, its bits changed": ({"/d": D}, {}, {"/d": D7}, {"/d"}),
    "a directory deleted, a file inside changed": (
        {"/d": D, "/d/a": f(), "/d/b": f()},
        {},
        {"/d": D, "/d/a": f(b"y"), "/d/b": f()},
        {"/d", "/d/a"},
    ),
    "a directory deleted, a file inside deleted": ({"/d": D, "/d/a": f(), "/d/b": f()}, {}, {"/d": D, "/d/b": f()}, {}),
    "bits of a directory here, a file inside there": (
        {"/d": D, "/d/a": f()},
        {"/d": D7, "/d/a": f()},
        {"/d": D, "/d/a": f(b"y"), "/d/b": f()},
        {"/d": D7, "/d/a": f(b"y"), "/d/b": f()},
    ),
    "bits of a directory by both": ({"/d": D}, {"/d": D7}, {"/d": ("d", 0o711)}, {"/d"}),
    "bits of the root": ({"/": D}, {"/": D7}, {"/": D, "/a": f()}, {"/": D7, "/a": f()}),
    "bits of the root by both": ({"/": D}, {"/": D7}, {"/": ("d", 0o711)}, {"/"}),
    "moved here, changed there": ({"/a": f()}, {"/b": f()}, {"/a": f(b"y")}, {"/a"}),
    "moved by both to different places": ({"/a": f()}, {"/b": f()}, {"/c": f()}, {"/b": f(), "/c": f()}),
    "moved by both to one place": ({"/a": f()}, {"/b": f()}, {"/b": f()}, {"/b": f()}),
    "a directory moved here, a file inside changed there": (
        {"/d": D, "/d/a": f()},
        {"/e": D, "/e/a": f()},
        {"/d": D, "/d/a": f(b"y")},
        {"/d", "/d/a"},
    ),
    "a file that both replace by directories": (
        {"/a": f()},
        {"/a": D, "/a/x": f()},
        {"/a": D, "/a/y": f()},
        {"/a": D, "/a/x": f(), "/a/y": f()},
    ),
    "all conflicts are listed": (
        {"/a": f(), "/b": f(), "/d": D, "/d/c": f(), "/ok": f(ABC)},
        {"/a": f(b"1"), "/d": D, "/d/c": f(b"1"), "/ok": f(b"A\nb\nc\n")},
        {"/a": f(b"2"), "/b": f(b"2"), "/d": D, "/d/c": f(b"2"), "/ok": f(b"a\nb\nC\n")},
        {"/a", "/b", "/d/c"},
    ),
}


def planted(flat: Plain) -> FileTree:
    return grow({"/": D, **flat})


@pytest.mark.parametrize(("base", "ours", "theirs", "wanted"), CASES.values(), ids=CASES)
def test_merges_of_trees_have_the_results_in_the_table(
    base: Plain, ours: Plain, theirs: Plain, wanted: Plain | set[str]
) -> None:
    trees = [planted(flat) for flat in (base, ours, theirs)]
    for one, other in ((trees[1], trees[2]), (trees[2], trees[1])):
        if isinstance(wanted, set):
            with pytest.raises(Conflict) as caught:
                merge(trees[0], one, other)
            assert set(caught.value.names) == wanted
            assert list(caught.value.names) == sorted(caught.value.names)
        else:
            merged = merge(trees[0], one, other)
            assert flatten(merged) == {"/": D, **wanted}
            assert totals(merged) == recount(merged)


def related(path: str, conflicts: frozenset[str]) -> bool:
    """Return whether a path is in conflict, or is above or below one that is."""
    return any(f"{path}/".startswith(f"{other}/") or other.startswith(f"{path}/") for other in conflicts)


def check(base: FileTree, ours: FileTree, theirs: FileTree) -> None:
    """Compare with the merge of plain dictionaries."""
    mine, other = flatten(ours), flatten(theirs)
    wanted = merge_plain(flatten(base), mine, other)
    if isinstance(wanted, dict):
        merged = merge(base, ours, theirs)
        assert flatten(merged) == wanted
        assert totals(merged) == recount(merged)
    else:
        with pytest.raises(Conflict) as caught:
            merge(base, ours, theirs)
        assert wanted <= set(caught.value.names)
        assert all(related(path, wanted) and mine.get(path) != other.get(path) for path in caught.value.names)


@pytest.mark.parametrize("seed", range(120))
def test_merges_of_random_changes_equal_a_merge_of_plain_dictionaries(seed: int) -> None:
    random = Random(seed)
    base = random_tree(random, contents=(b"", b"a\nb\nc\n", b"\0"), depth=3)
    sides = [base, base]
    for number in (0, 1):
        for event in random_events(random, random.randint(0, 6)):
            sides[number] = reduce(sides[number], event)
    check(base, *sides)
    check(base, *reversed(sides))


@pytest.mark.parametrize("seed", range(60))
def test_merges_of_unrelated_trees_equal_a_merge_of_plain_dictionaries(seed: int) -> None:
    random = Random(seed)
    names = ("a", "b")
    trees = [random_tree(random, names=names, contents=(b"1\n", b"2\n"), depth=2, width=2) for _ in range(3)]
    check(*trees)


def test_without_a_base_common_entries_must_be_equal() -> None:
    assert flatten(merge(None, planted({"/a": f()}), planted({"/b": f()}))) == {"/": D, "/a": f(), "/b": f()}
    with pytest.raises(Conflict):
        merge(None, planted({"/a": f()}), planted({"/a": f(b"y")}))


def test_merging_with_an_unchanged_side_returns_the_tree_object_of_the_other() -> None:
    base = planted({"/d": D, "/d/a": f(), "/b": f()})
    changed = reduce(base, FileWritten("/d/a", b"new", 9))
    assert merge(base, changed, base) is changed
    assert flatten(merge(base, base, changed)) == flatten(changed)


def test_a_merge_visits_only_directories_that_theirs_changed() -> None:
    base = tree_of({f"d{d}": tree_of({f"f{n}": leaf.file(b"%d" % n, at=0) for n in range(100)}) for d in range(100)})
    ours, theirs = (
        put(base, ("d1", "new"), leaf.file(b"o", at=1), 1),
        put(base, ("d2", "new"), leaf.file(b"t", at=1), 1),
    )
    calls = 0
    actual = maps.differences

    def counted(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
        nonlocal calls
        calls += 1
        return actual(old, new)

    with mock.patch.object(maps, "differences", counted):
        merged = merge(base, ours, theirs)
    assert calls < 12
    assert merged.file_count == 10_002


def test_the_newer_times_are_kept() -> None:
    base = put(EMPTY_TREE, ("a",), leaf.file(ABC, at=1), 1)
    ours = put(base, ("a",), leaf.file(b"A\nb\nc\n", at=20, created_at=1), 20)
    theirs = put(base, ("a",), leaf.file(b"a\nb\nC\n", at=10, created_at=1), 10)
    merged = find(merge(base, ours, theirs), ("a",))
    assert type(merged) is tuple
    assert (merged[leaf.MODIFIED_AT], merged[leaf.CREATED_AT]) == (20, 1)
