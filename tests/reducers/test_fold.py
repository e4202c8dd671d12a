"""Folding: applying a run of events at once gives the same tree as reducing them one by one, also for packed trees."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from random import Random

import pytest

from tests.models.events import random_events, random_path
from tests.models.trees import PLAIN_NAMES
from tests.sampling import share
from weakfs import Registry
from weakfs.reducers import (
    DirectoryMade,
    EntryCopied,
    EntryDeleted,
    EntryHidden,
    EntryMoved,
    ExternalTree,
    ExternalTrees,
    FileTree,
    FileWritten,
    LayerEmptied,
    LinkMade,
    LowerFound,
    reduce,
)
from weakfs.reducers.batch_apply import folded
from weakfs.reducers.events import EntryPut, Event
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.directory import UNREAD
from weakfs.reducers.tree.leaf import content_of, kind_of
from weakfs.reducers.tree.node import EMPTY_TREE, Node, find, tree_of
from weakfs.reducers.tree.packed import NODES, pack
from weakfs.session.slices.log import Log
from weakfs.session.slices.packed_state import Counted, PackedValue, complete
from weakfs.session.slices.slice import Folded

MANY_NAMES = tuple(f"n{number}" for number in range(90))


def shown(node: Node) -> object:
    """Return everything about a node: its entries, kinds, modes and times, and the totals below it."""
    if isinstance(node, FileTree):
        counts = (node.file_count, node.directory_count, node.total_size)
        own = (node.mode, node.modified_at, node.created_at, *counts)
        return own, {name: shown(below) for name, below in node.children.items()}
    return kind_of(node), content_of(node), node[leaf.MODE], node[leaf.MODIFIED_AT], node[leaf.CREATED_AT]


def run_of(events: list[Event]) -> list[Folded]:
    by_type = Registry.standard().by_type
    return [(seq, type(event), by_type[type(event)].pack(event)) for seq, event in enumerate(events, 1)]


def one_by_one(tree: FileTree, events: list[Event]) -> FileTree:
    for event in events:
        tree = reduce(tree, event)
    return tree


def at_once(tree: FileTree, events: list[Event], *, packed: bool = False) -> FileTree:
    values = PackedValue(FileTree, complete(pack(tree, None, Counted()))[0]) if packed else Log((tree,))
    found = folded(values, run_of(events)).last()
    assert isinstance(found, FileTree)
    return found


def many_events(random: Random, names: tuple[str, ...]) -> list[Event]:
    events = random_events(random, random.choice((3, 40, 400)), names=names)
    for at in range(len(events) // 10):
        events.insert(random.randrange(len(events)), odd_event(random, random_path(random, names), at))
    return events


def odd_event(random: Random, path: str, at: int) -> Event:
    """Make a whiteout, a FIFO, or now and then an empty tree."""
    if random.random() < 0.05:
        return LayerEmptied("", at)
    if random.random() < 0.5:
        return EntryHidden(path, at)
    return EntryPut(path, tree_of({path.rpartition("/")[2]: leaf.special(leaf.FIFO, at=at)}), at)


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("names", [PLAIN_NAMES[:4], PLAIN_NAMES, MANY_NAMES], ids=["few", "plain", "many"])
@pytest.mark.parametrize("packed", [False, True])
def test_folding_events_gives_the_same_tree_as_reducing_them_one_by_one(names: tuple[str, ...], packed: bool) -> None:
    for seed in range(share(300)):
        random = Random(seed)
        before = one_by_one(EMPTY_TREE, many_events(random, names))
        events = many_events(random, names)
        was = shown(before)

        assert shown(at_once(before, events, packed=packed)) == shown(one_by_one(before, events)), seed
        assert shown(before) == was, seed


def test_folding_changes_a_directory_of_many_names_like_the_reducers() -> None:
    before = one_by_one(EMPTY_TREE, [FileWritten(f"/wide/{n}", b"x", n) for n in range(2000)])
    before = one_by_one(before, [FileWritten(f"/wide/{n}/below", b"y", n) for n in range(0, 2000, 3)])
    events: list[Event] = [FileWritten(f"/wide/{n}", b"longer", n) for n in range(0, 4000, 7)]
    events += [EntryDeleted(f"/wide/{n}", 5000 + n) for n in range(20, 3000)]
    events += [EntryCopied("/wide/3", "/wide/30", 9000), EntryMoved("/wide/6", "/wide/31", 9001)]
    events += [DirectoryMade("/wide/32", 9002), FileWritten("/wide/6/a/b", b"z", 9003)]

    for packed in (False, True):
        assert shown(at_once(before, events, packed=packed)) == shown(one_by_one(before, events))


def test_writes_keep_earlier_versions_however_late_they_are_read() -> None:
    before = one_by_one(
        EMPTY_TREE,
        [
            FileWritten("/d/kept", b"old", 1, mode=0o600),
            LinkMade("/d/link", "/d/kept", 2),
            EntryHidden("/d/hidden", 3),
        ],
    )
    events: list[Event] = [
        FileWritten("/d/kept", b"newer", 10),
        FileWritten("/d/link", b"a file now", 11, mode=0o640),
        FileWritten("/d/new", b"1", 12),
        FileWritten("/d/hidden", b"seen", 13),
        FileWritten("/d/new", b"22", 14),
    ]
    expected = one_by_one(before, events)
    directory = find(at_once(before, events, packed=True), ("d",))
    entries_first = find(at_once(before, events, packed=True), ("d",))
    assert isinstance(directory, FileTree)
    assert isinstance(entries_first, FileTree)

    assert (directory.modified_at, directory.file_count, directory.total_size) == (13, 4, 21)
    assert entries_first.children.keys() == {"kept", "link", "new", "hidden"}
    assert shown(entries_first) == shown(directory) == shown(expected.children["d"])


def test_events_that_change_nothing_give_the_same_tree() -> None:
    tree = one_by_one(EMPTY_TREE, [FileWritten("/a/b", b"x", 1)])

    assert at_once(tree, [EntryDeleted("/a/c", 2), EntryDeleted("/z/c", 2), DirectoryMade("/a", 3)]) is tree


def test_unchanged_directories_are_shared() -> None:
    tree = one_by_one(EMPTY_TREE, [FileWritten("/a/b", b"x", 1), FileWritten("/c/d", b"x", 1)])

    made = at_once(tree, [FileWritten("/a/b", b"y", 2)])

    assert made.children["c"] is tree.children["c"]


def test_a_directory_that_occurs_twice_in_a_packed_tree_is_created_once() -> None:
    copies = [EntryCopied(f"/{n}", f"/{n + 1}/{name}", 2) for n in range(27) for name in "ab"]
    tree = one_by_one(EMPTY_TREE, [FileWritten("/0/a", b"x", 1), *copies])

    made = FileTree.unpack(complete(pack(tree, None, Counted()))[0])

    assert made.node_count == tree.node_count > 1 << 28


def test_a_packed_tree_shares_common_parts_with_an_earlier_one() -> None:
    tree = one_by_one(EMPTY_TREE, [FileWritten(f"/{n}/a", b"content", n) for n in range(200)])
    first, whole = complete(pack(tree, None, Counted()))
    changed = reduce(tree, FileWritten("/7/a", bytes(5000), 300))
    second, more = complete(pack(changed, first, Counted()))

    assert complete(pack(changed, first, Counted())) == (second, 0)
    assert 5000 < more < 10_000 < whole
    assert sum(one is other for one, other in zip(nodes_of(first), nodes_of(second), strict=True)) == 199


def nodes_of(packed: tuple[object, ...]) -> list[object]:
    parts = [packed[-1]]
    found: list[object] = []
    while parts:
        part = parts.pop()
        assert isinstance(part, tuple)
        if len(part) == 2:
            found.extend(part[1])
        else:
            parts.extend(below for below in part if below is not None)
    return found


def test_external_trees_are_packed_and_unpacked() -> None:
    tree = one_by_one(EMPTY_TREE, [FileWritten(f"/{n}/a", b"content", n) for n in range(50)])
    later = reduce(tree, FileWritten("/7/a", bytes(5000), 300))
    first = ExternalTrees({"disk": ExternalTree(tree, tree, is_whole=True)})
    second = first.with_tree("disk", ExternalTree(later, tree, is_whole=True)).with_tree("other", ExternalTree())

    before, whole = complete(first.pack(None, Counted()))
    packed, more = complete(second.pack(before, Counted()))

    unpacked = ExternalTrees.unpack(packed)
    assert shown(unpacked.tree("disk")) == shown(later)
    assert shown(unpacked.known("disk").found) == shown(tree)
    assert unpacked.known("disk").tree.children["8"] is unpacked.known("disk").found.children["8"]
    assert [one.is_whole for one in unpacked.trees.values()] == [True, False]
    assert 5000 < more < whole
    assert 0 < complete(ExternalTrees.weight(packed, before)) < more
    assert shown(LowerFound.unpack(complete(LowerFound(tree).pack(None, Counted()))[0]).tree) == shown(tree)


def test_a_packed_tree_is_untracked_by_the_garbage_collector() -> None:
    tree = one_by_one(EMPTY_TREE, [FileWritten(f"/{n % 50}/{n}", b"content", n) for n in range(500)])
    packed, _ = complete(pack(tree, None, Counted()))
    del tree
    # The collector stops tracking tuples from the inside out, a level or two at a time.
    for _ in range(8):
        gc.collect()

    assert not gc.is_tracked(packed)


def test_a_fold_leaves_nothing_for_the_garbage_collector() -> None:
    run = run_of([FileWritten(f"/a/{number}", b"x", number) for number in range(500)])
    gc.collect()
    gc.disable()
    try:
        folded(Log((EMPTY_TREE,)), run)
        garbage = gc.collect()
    finally:
        gc.enable()
    assert garbage < 10


def directories(count: int) -> FileTree:
    file = leaf.file(b"content", at=1)
    return tree_of({f"d{number}": tree_of({"below": tree_of({"f": file})}) for number in range(count)})


def test_a_packed_directory_is_unpacked_when_it_is_read() -> None:
    packed, _ = complete(pack(directories(40), None, Counted()))
    known: dict[int, FileTree] = {}

    tree = FileTree.unpack(packed, known)
    assert (len(known), tree.file_count) == (1, 40)
    found = find(tree, ("d7", "below", "f"))

    assert found is not None
    # The root, its 40 directories, and the one that was read.
    assert len(known) == 42
    assert shown(tree) == shown(directories(40))


def test_a_change_to_a_packed_tree_leaves_the_rest_packed() -> None:
    packed, _ = complete(pack(directories(40), None, Counted()))
    events: list[Event] = [FileWritten("/d7/below/f", b"new", 2), EntryDeleted("/d8/below/f", 3)]

    changed = folded(PackedValue(FileTree, packed), run_of(events)).last()

    assert isinstance(changed, FileTree)
    assert changed._places is UNREAD
    assert shown(changed) == shown(one_by_one(directories(40), events))


def test_a_directory_in_several_places_is_unpacked_once() -> None:
    shared = directories(3)
    packed, _ = complete(pack(tree_of({"one": shared, "other": shared}), None, Counted()))

    tree = FileTree.unpack(packed)

    assert find(tree, ("one", "d1")) is find(tree, ("other", "d1"))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))])
def test_a_packed_directory_is_copied_with_its_contents(again: Callable[[FileTree], FileTree]) -> None:
    packed, _ = complete(pack(directories(3), None, Counted()))
    events: list[Event] = [FileWritten("/d1/below/f", b"new", 2), FileWritten("/d1/g", b"new", 3)]

    for tree in (FileTree.unpack(packed), folded(PackedValue(FileTree, packed), run_of(events)).last()):
        assert shown(again(tree)) == shown(tree)


def test_a_packed_directory_of_files_shares_its_nodes_with_the_unpacked_one() -> None:
    tree = tree_of({f"f{number}": leaf.file(b"content", at=1) for number in range(20)})
    packed, _ = complete(pack(tree, None, Counted()))

    assert packed[NODES] is tree._nodes
    unpacked = FileTree.unpack(packed)
    assert find(unpacked, ("f7",)) is find(tree, ("f7",))
    assert unpacked._nodes is tree._nodes


def test_an_unknown_attribute_of_a_tree_is_an_error() -> None:
    with pytest.raises(AttributeError, match="'FileTree' object has no attribute 'nothing'"):
        getattr(EMPTY_TREE, "nothing")  # noqa: B009  # type checkers know that there is none
