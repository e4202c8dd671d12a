"""Digests and fingerprints: what they distinguish, and that the next version costs only what differs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

import pytest

from tests.models.trees import ODD_NAMES, Plain, flatten, grow, random_tree
from weakfs.reducers import FileTree
from weakfs.reducers.tree import digest, leaf
from weakfs.reducers.tree.node import EMPTY_TREE, Node, put, remove, tree_of
from weakfs.session.blobs.rope import Rope

# The output of `git mktree </dev/null` and `git hash-object` in a repository with SHA-256 object ids.
EMPTY_GIT_TREE = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
EMPTY_GIT_BLOB = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"


@contextmanager
def counted(module: Any, name: str) -> Generator[list[int]]:
    """Count the calls of a function of a module."""
    calls: list[int] = [0]
    actual: Callable[..., object] = getattr(module, name)

    def call(*arguments: object) -> object:
        calls[0] += 1
        return actual(*arguments)

    with mock.patch.object(module, name, call):
        yield calls


def file(content: bytes = b"x", mode: int = 0o644, at: int = 0) -> leaf.Leaf:
    return leaf.file(content, mode=mode, at=at)


def test_the_empty_tree_and_the_empty_blob_have_gits_ids() -> None:
    assert tree_of({}).digest == EMPTY_GIT_TREE
    assert leaf.blob_digest(file(b"")).hex() == EMPTY_GIT_BLOB


def test_a_digest_leaves_empty_directories_out_and_a_fingerprint_does_not() -> None:
    plain = tree_of({"a": file()})
    hollow = tree_of({"a": file(), "empty": tree_of({"within": tree_of({})})})
    assert plain.digest == hollow.digest
    assert plain.fingerprint != hollow.fingerprint


DIFFERENT: list[Node] = [
    file(),
    file(b"y"),
    file(b""),
    file(mode=0o600),
    file(mode=0o755),
    file(mode=0o4755),
    file(mode=0),
    leaf.link("x", at=0),
    leaf.link("y", at=0),
    tree_of({}),
    tree_of({}, mode=0o700),
    tree_of({"x": file()}),
    tree_of({"x": file(mode=0o600)}),
    tree_of({"x": tree_of({})}),
]


def test_fingerprints_distinguish_everything_that_a_rollback_must_restore() -> None:
    trees = [tree_of({"n": node}) for node in DIFFERENT]
    trees += [tree_of({"m": node}) for node in DIFFERENT]
    trees += [tree_of({}), tree_of({}, mode=0o700), tree_of({"n": file(), "m": file()})]
    assert len({tree.fingerprint for tree in trees}) == len(trees)


def test_a_digest_includes_only_the_owners_execute_bit() -> None:
    def with_mode(mode: int) -> str:
        return tree_of({"f": file(mode=mode)}).digest

    assert with_mode(0o644) == with_mode(0o600) == with_mode(0o611) == with_mode(0)
    assert with_mode(0o755) == with_mode(0o100) == with_mode(0o4700)
    assert with_mode(0o644) != with_mode(0o755)


def test_neither_includes_times() -> None:
    one = tree_of({"a": file(at=1), "l": leaf.link("a", at=1)}, modified_at=1, created_at=1)
    other = tree_of({"a": file(at=2), "l": leaf.link("a", at=2)}, modified_at=2, created_at=2)
    assert (one.digest, one.fingerprint) == (other.digest, other.fingerprint)


@pytest.mark.parametrize("seed", range(20))
def test_equal_trees_have_equal_digests_however_they_were_built(seed: int) -> None:
    tree = random_tree(Random(seed), names=ODD_NAMES, width=12)
    again = grow(flatten(tree))
    assert (tree.digest, tree.fingerprint) == (again.digest, again.fingerprint)


def test_any_single_difference_changes_the_fingerprint() -> None:
    flat = max((flatten(random_tree(Random(seed), depth=3)) for seed in range(10)), key=len)
    assert len(flat) > 20
    seen = {grow(flat).fingerprint}
    for path, entry in flat.items():
        changed: Plain = dict(flat)
        if len(entry) == 3:
            changed[path] = ("f", entry[1] + b".", entry[2])
        elif isinstance(entry[1], str):
            changed[path] = ("l", entry[1] + ".")
        else:
            changed[path] = ("d", entry[1] ^ 0o020)
        seen.add(grow(changed).fingerprint)
    assert len(seen) == len(flat) + 1


def wide_tree() -> FileTree:
    return tree_of(
        {
            f"d{d}": tree_of(
                {f"s{s}": tree_of({f"f{f}": file(b"%d %d %d" % (d, s, f)) for f in range(10)}) for s in range(10)}
            )
            for d in range(10)
        }
    )


@pytest.mark.parametrize(("attribute", "function"), [("digest", "_git_object"), ("fingerprint", "_full_object")])
def test_hashing_the_next_version_costs_only_what_differs(attribute: str, function: str) -> None:
    tree = wide_tree()
    with counted(digest, function) as directories, counted(leaf, "digest_of") as contents:
        first = getattr(tree, attribute)
        assert (directories[0], contents[0]) == (111, 1000)
        assert getattr(tree, attribute) == first
        assert (directories[0], contents[0]) == (111, 1000)
        changed = put(tree, ("d3", "s4", "f5"), file(b"new"), 1)
        assert getattr(changed, attribute) != first
        assert (directories[0], contents[0]) == (114, 1001)
        back = put(remove(changed, ("d3", "s4", "f5"), 2), ("d3", "s4", "f5"), file(b"3 4 5"), 3)
        assert getattr(back, attribute) == first
        assert (directories[0], contents[0]) == (117, 1002)


def test_new_permission_bits_and_moves_do_not_rehash_contents() -> None:
    node = file(b"content")
    tree = tree_of({"a": node})
    assert tree.digest
    with counted(leaf, "digest_of") as contents:
        assert put(EMPTY_TREE, ("d", "b"), leaf.with_mode(node, 0o755), 1).digest != tree.digest
    assert contents[0] == 0


def test_digests_are_computed_on_demand_only() -> None:
    with counted(leaf, "digest_of") as contents, counted(digest, "_git_object") as directories:
        tree = wide_tree()
        put(tree, ("d1", "s1", "new"), file(), 1)
    assert (contents[0], directories[0]) == (0, 0)


def test_a_link_and_a_file_of_the_same_bytes_differ() -> None:
    as_link, as_file = tree_of({"n": leaf.link("target", at=0)}), tree_of({"n": file(b"target")})
    assert as_link.digest != as_file.digest
    assert as_link.fingerprint != as_file.fingerprint


def test_the_digest_of_a_file_that_was_appended_to_does_not_join_it() -> None:
    content: Rope = Rope(b"start\n", b"")
    for number in range(2000):
        content = Rope(content, b"line %d\n" % number)
    appended = tree_of({"log": leaf.file(content, at=1)})
    joined = tree_of({"log": leaf.file(b"start\n" + b"".join(b"line %d\n" % number for number in range(2000)), at=1)})

    assert appended.digest == joined.digest
    assert not content.is_joined
    content.join()
    assert tree_of({"log": leaf.file(content, at=1)}).digest == joined.digest
