"""Partially known trees are completed in the same way, in whatever order the parts arrive."""

from __future__ import annotations

from itertools import permutations

from weakfs.reducers.partial_trees import filled
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, Segments, find, tree_of

NODES: list[tuple[Segments, Node]] = [
    (("a",), leaf.file(b"a", at=30)),
    (("b",), leaf.file(b"b", at=10)),
    (("d", "c"), leaf.file(b"c", at=20)),
]


def times(tree: FileTree) -> tuple[int, ...]:
    return tree.modified_at, tree.created_at, inside(tree).modified_at


def inside(tree: FileTree) -> FileTree:
    directory = find(tree, ("d",))
    assert isinstance(directory, FileTree)
    return directory


def test_the_order_in_which_parts_are_filled_in_makes_no_difference() -> None:
    made = {times(filled(EMPTY_TREE, nodes, ())) for nodes in permutations(NODES)}

    assert made == {(20, 0, 20)}


def test_the_order_in_which_a_directory_holds_its_entries_makes_no_difference() -> None:
    contents = {f"f{number}": leaf.file(b"", at=number) for number in (3, 1, 2)}
    known = tree_of({"d": tree_of({}, modified_at=5)})
    made: set[int] = set()
    for order in permutations(contents.items()):
        directory = tree_of(dict(order), modified_at=7)
        made.add(inside(filled(known, [(("d",), directory)], ())).modified_at)

    assert made == {3}
