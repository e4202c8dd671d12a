"""Listings for searches: their order and contents, when they are kept, and that they are not part of a tree's value."""

from __future__ import annotations

import gc
import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakfs.reducers import FileTree
from weakfs.reducers.tree.leaf import FIFO, file, link, special
from weakfs.reducers.tree.listing import in_path_order, listing, listing_of
from weakfs.reducers.tree.node import Node, find, put, remove, tree_of
from weakfs.session.blobs.rope import Rope

FILE = file(b"text", at=1)
NODES: st.SearchStrategy[Node] = st.sampled_from(
    [
        FILE,
        file(b"", at=1),
        file(b"a\0", at=1),
        file(Rope(b"a", b"b"), at=1),
        link("x", at=1),
        special(FIFO, at=1),
        tree_of({}),
        tree_of({"x": FILE}),
    ]
)
ENTRIES = st.dictionaries(st.text("ab./-~0é", min_size=1, max_size=3).map(lambda name: name.replace("/", "_")), NODES)


def below(tree: FileTree, name: str) -> FileTree:
    node = find(tree, (name,))
    assert type(node) is FileTree
    return node


@given(ENTRIES)
def test_a_listing_has_files_and_directories_in_the_order_of_their_paths(entries: dict[str, Node]) -> None:
    names, found, size = listing(tree_of(entries))

    expected = [
        (name, node if type(node) is FileTree or type(node[0]) is not bytes else node[0])
        for name, node in in_path_order(entries.items())
        if type(node) is FileTree or type(node[0]) in (bytes, Rope)
    ]
    assert list(zip(names, found, strict=True)) == expected
    assert all(one is other for one, (_, other) in zip(found, expected, strict=True))
    only_bytes = all(type(node) is tuple and type(node[0]) is bytes for node in entries.values())
    assert size == (sum(len(node) for node in found if type(node) is bytes) if only_bytes else None)
    assert listing_of(entries.items()) == (names, found, size)


def test_an_unchanged_directory_keeps_its_listing() -> None:
    before = tree_of({"a": tree_of({"x": FILE}), "b": tree_of({"x": FILE})})
    kept = {name: listing(below(before, name)) for name in "ab"}

    after = put(before, ("a", "y"), FILE, 2)

    assert listing(below(after, "b")) is kept["b"]
    assert listing(below(after, "a"))[0] == ("x", "y")


@pytest.mark.parametrize("change", ["put", "remove"])
def test_a_directory_of_an_old_version_drops_its_listing_and_recreates_it(change: str) -> None:
    tree = tree_of({"x": FILE, "y": FILE})
    kept = listing(tree)

    put(tree, ("x",), FILE, 2) if change == "put" else remove(tree, ("x",), 2)

    assert listing(tree) == kept
    assert listing(tree) is not kept


def test_a_wide_directory_keeps_no_listing() -> None:
    narrow, wide = (tree_of({f"{number}": FILE for number in range(count)}) for count in (32, 33))

    assert listing(narrow) is listing(narrow)
    assert listing(wide) is not listing(wide)


def test_a_search_does_not_change_the_pickle_or_equality_of_a_tree() -> None:
    tree = tree_of({"a": tree_of({"x": FILE})})
    assert tree.fingerprint
    before = pickle.dumps(tree)

    assert listing(tree) is listing(tree)

    assert pickle.dumps(tree) == before
    assert listing(pickle.loads(before))[0] == ("a",)


def test_a_listing_of_files_is_untracked_by_the_garbage_collector() -> None:
    listings = [listing(tree_of({f"{number}{name}": FILE for name in "abc"})) for number in range(10)]

    for _ in range(3):
        gc.collect()

    assert not any(gc.is_tracked(each) for each in listings)
    assert all(one is not other for one, other in pairwise(listings))
