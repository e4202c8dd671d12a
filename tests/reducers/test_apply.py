"""Events on trees: the effect of each one, that an event without effect changes nothing, and reproducibility."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.models.events import random_events
from tests.models.trees import Entry, flatten, recount, totals
from weakfs.reducers import (
    DirectoryMade,
    EntryCopied,
    EntryDeleted,
    EntryFound,
    EntryHidden,
    EntryMoved,
    FileAppended,
    FileSpliced,
    FileTree,
    FileWritten,
    LayerEmptied,
    LinkMade,
    ModeChanged,
    TreeMounted,
    TreeRestored,
    reduce,
)
from weakfs.reducers.events import EVENTS, EntryPut, Event, TreeSeen
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import EMPTY_TREE, Node, find, tree_of

ROOT = Path(__file__).parents[2]


def after(*events: Event) -> FileTree:
    tree = EMPTY_TREE
    for event in events:
        tree = reduce(tree, event)
    return tree


def node(tree: FileTree, *segments: str) -> Node:
    found = find(tree, segments)
    assert found is not None
    return found


def file_times(tree: FileTree, *segments: str) -> tuple[int, int]:
    found = node(tree, *segments)
    if isinstance(found, FileTree):
        return found.modified_at, found.created_at
    return found[leaf.MODIFIED_AT], found[leaf.CREATED_AT]


BASE = after(
    FileWritten("/d/a", b"one\n", 10),
    FileWritten("/d/b", b"two\n", 11, 0o755),
    DirectoryMade("/empty", 12),
    LinkMade("/link", "d/a", 13),
)


@pytest.mark.parametrize("seed", range(40))
def test_totals_equal_a_recount_after_any_events(seed: int) -> None:
    tree = EMPTY_TREE
    for event in random_events(Random(seed), 80):
        before, flat = tree, flatten(tree)
        tree = reduce(tree, event)
        assert totals(tree) == recount(tree)
        assert flatten(before) == flat, "an older version changed"


UNCHANGED: list[Event] = [
    DirectoryMade("/d", 99),
    DirectoryMade("/", 99),
    EntryDeleted("/gone", 99),
    EntryDeleted("/d/a/below", 99),
    EntryMoved("/gone", "/x", 99),
    EntryMoved("/d", "/d", 99),
    EntryMoved("/d/a", "/d/a", 99),
    EntryCopied("/gone", "/x", 99),
    EntryCopied("/d/a", "/d/a", 99),
    ModeChanged("/d/b", 0o755, 99),
    ModeChanged("/d", 0o755, 99),
    ModeChanged("/", 0o755, 99),
    ModeChanged("/gone", 0o700, 99),
    ModeChanged("/link", 0o600, 99),
    FileSpliced("/gone", ((0, 0, b"x"),), 99),
    FileSpliced("/d", ((0, 0, b"x"),), 99),
    FileSpliced("/link", ((0, 0, b"x"),), 99),
    TreeRestored(BASE, "same", 99),
    TreeMounted("/", "same", BASE, (), 99),
]


@pytest.mark.parametrize("event", UNCHANGED, ids=repr)
def test_an_event_that_changes_nothing_returns_the_same_tree_object(event: Event) -> None:
    assert reduce(BASE, event) is BASE


def test_every_event_type_has_a_reducer_and_none_means_the_empty_tree() -> None:
    made: dict[type, Event] = {
        FileWritten: FileWritten("/a", b"", 1),
        FileAppended: FileAppended("/a", b"", 1),
        FileSpliced: FileSpliced("/a", (), 1),
        DirectoryMade: DirectoryMade("/a", 1),
        EntryDeleted: EntryDeleted("/a", 1),
        EntryMoved: EntryMoved("/a", "/b", 1),
        EntryCopied: EntryCopied("/a", "/b", 1),
        ModeChanged: ModeChanged("/a", 0, 1),
        LinkMade: LinkMade("/a", "b", 1),
        TreeMounted: TreeMounted("/a", "host", EMPTY_TREE, (), 1),
        TreeRestored: TreeRestored(EMPTY_TREE, "s", 1),
        EntryFound: EntryFound("/a", EMPTY_TREE, 1),
        EntryPut: EntryPut("/a", tree_of({"a": EMPTY_TREE}), 1),
        TreeSeen: TreeSeen(EMPTY_TREE, "s", 1),
        EntryHidden: EntryHidden("/a", 1),
        LayerEmptied: LayerEmptied("commit", 1),
    }
    assert made.keys() == set(EVENTS)
    for event in made.values():
        assert flatten(reduce(None, event)) == flatten(reduce(EMPTY_TREE, event))


def test_writing_keeps_permission_bits_and_creation_time_unless_given() -> None:
    tree = reduce(BASE, FileWritten("/d/b", b"new", 50))
    assert flatten(tree)["/d/b"] == ("f", b"new", 0o755)
    assert file_times(tree, "d", "b") == (50, 11)
    tree = reduce(tree, FileWritten("/d/b", b"newer", 60, 0o600))
    assert flatten(tree)["/d/b"] == ("f", b"newer", 0o600)
    assert file_times(tree, "d", "b") == (60, 11)


def test_writing_to_a_link_replaces_it_with_a_new_file() -> None:
    tree = reduce(BASE, FileWritten("/link", b"file", 50))
    assert flatten(tree)["/link"] == ("f", b"file", 0o644)
    assert file_times(tree, "link") == (50, 50)


def test_appending_adds_content_and_creates_a_missing_file() -> None:
    tree = after(*(FileAppended("/log", b"%d\n" % number, number) for number in range(1, 1001)))
    assert flatten(tree)["/log"] == ("f", b"".join(b"%d\n" % number for number in range(1, 1001)), 0o644)
    assert file_times(tree, "log") == (1000, 1)


def test_versions_of_an_appended_file_keep_their_own_contents_in_any_order_of_reading() -> None:
    versions = [EMPTY_TREE]
    for number in range(50):
        versions.append(reduce(versions[-1], FileAppended("/log", b"%d," % number, number)))
    branch = reduce(versions[20], FileAppended("/log", b"branch", 99))
    for number in (50, 1, 30, 29, 49, 2):
        wanted = b"".join(b"%d," % k for k in range(number))
        assert flatten(versions[number])["/log"] == ("f", wanted, 0o644)
    wanted = b"".join(b"%d," % k for k in range(20)) + b"branch"
    assert flatten(branch)["/log"] == ("f", wanted, 0o644)


PIECES: list[tuple[tuple[tuple[int, int, bytes], ...], bytes]] = [
    ((), b"0123456789"),
    (((0, 0, b"<"),), b"<0123456789"),
    (((10, 10, b">"),), b"0123456789>"),
    (((0, 10, b""),), b""),
    (((2, 4, b"xyz"), (4, 4, b"|"), (8, 9, b"")), b"01xyz|45679"),
    (((1, 1, b"a"), (1, 1, b"b")), b"0ab123456789"),
]


@pytest.mark.parametrize(("pieces", "wanted"), PIECES)
def test_splicing_replaces_pieces_of_the_old_content(pieces: tuple[tuple[int, int, bytes], ...], wanted: bytes) -> None:
    tree = after(FileWritten("/f", b"0123456789", 1, 0o600), FileSpliced("/f", pieces, 2))
    assert flatten(tree)["/f"] == ("f", wanted, 0o600)


def test_splicing_an_appended_file_uses_its_whole_content() -> None:
    tree = after(FileWritten("/f", b"ab", 1), FileAppended("/f", b"cd", 2), FileSpliced("/f", ((1, 3, b"-"),), 3))
    assert flatten(tree)["/f"] == ("f", b"a-d", 0o644)


def test_moving_keeps_the_node_and_copying_sets_its_creation_time() -> None:
    moved = reduce(BASE, EntryMoved("/d", "/x/y", 50))
    assert node(moved, "x", "y") is node(BASE, "d")
    copied = reduce(BASE, EntryCopied("/d", "/x/y", 50))
    assert file_times(copied, "x", "y") == (50, 50)
    assert node(copied, "x", "y", "a") is node(BASE, "d", "a")
    assert file_times(reduce(BASE, EntryCopied("/d/b", "/c", 50)), "c") == (50, 50)
    wanted: Entry = ("f", b"two\n", 0o755)
    assert flatten(reduce(BASE, EntryCopied("/d/b", "/c", 50)))["/c"] == wanted


def test_moving_and_copying_replace_existing_entries() -> None:
    for event in (EntryMoved("/d/a", "/d/b", 50), EntryCopied("/d/a", "/d/b", 50)):
        tree = reduce(BASE, event)
        assert flatten(tree)["/d/b"] == ("f", b"one\n", 0o644)
        assert totals(tree) == recount(tree)


def test_a_mount_is_placed_at_its_path_and_creates_parents() -> None:
    inside = tree_of({"f": leaf.file(b"x", at=3)}, modified_at=7)
    tree = reduce(BASE, TreeMounted("/m/n", "host", inside, (), 50))
    assert node(tree, "m", "n") is inside
    assert reduce(BASE, TreeMounted("/", "host", inside, (), 50)) is inside


CHECKPOINTS = """
import hashlib, random
from tests.models.events import random_events
from weakfs.reducers import reduce
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.snapshots.archive.tar import to_tar

names = ("a", "b", "c", "d.py", "\\u00e9", "x" * 40, *(f"n{n}" for n in range(40)))
tree = EMPTY_TREE
for number, event in enumerate(random_events(random.Random(4), 1500, names=names)):
    tree = reduce(tree, event)
    if number % 50 == 0:
        print(tree.digest, tree.fingerprint, tree.node_count, hashlib.sha256(to_tar(tree)).hexdigest())
"""


def test_the_same_events_give_the_same_digests_in_any_process_and_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", CHECKPOINTS],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4294967295", "random")
    }
    assert len(outputs) == 1
    assert len(set(outputs.pop().splitlines())) > 20
