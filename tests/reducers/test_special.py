"""FIFOs, sockets, devices and whiteouts: entries without contents."""

from __future__ import annotations

import copy
import io
import pickle
import tarfile
from collections.abc import Callable
from errno import EINVAL
from pathlib import Path

import pytest

from tests.session.files.contents import holding, load, tree_with
from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.reducers import FileTree, diff, merge
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.leaf import DEVICE, FIFO, SOCKET, WHITEOUT, Leaf, Special
from weakfs.reducers.tree.node import EMPTY_TREE, find, put, tree_of
from weakfs.session import Conflict
from weakfs.snapshots import from_tar, to_tar

ALL = (FIFO, SOCKET, DEVICE, WHITEOUT)


def names(special: Special) -> str:
    return special.kind


def one(special: Special, mode: int = 0o644) -> Leaf:
    return leaf.special(special, mode=mode, at=3)


def filesystem(special: Special = FIFO) -> InMemoryFilesystem:
    return InMemoryFilesystem(holding(tree_with(p=one(special), a=b"text\n", d=tree_of({"q": one(special)}))))


@pytest.mark.parametrize("special", ALL, ids=names)
def test_a_special_entry_is_neither_file_nor_directory_nor_link(special: Special) -> None:
    fs = filesystem(special)
    assert fs.exists("/p")
    assert not fs.is_file("/p")
    assert not fs.is_directory("/p")
    found = fs.stat("/p")
    assert (found.is_file, found.is_directory, found.is_symlink, found.size_bytes) == (False, False, False, 0)
    entry = next(entry for entry in fs.list("/") if entry.name == "p")
    assert (entry.is_file, entry.is_directory, entry.is_symlink) == (False, False, False)
    assert fs.statistics().node_count == 4
    assert fs.statistics().total_size == 5


@pytest.mark.parametrize("special", ALL, ids=names)
def test_glob_lists_special_entries_and_grep_passes_over_them(special: Special) -> None:
    fs = filesystem(special)
    assert [(match.path, match.is_file) for match in fs.glob("**", sort="path")] == [
        ("/a", True),
        ("/d/q", False),
        ("/p", False),
    ]
    assert (fs.grep("text").files_searched, fs.grep("", path="/p").files_searched) == (1, 0)


@pytest.mark.parametrize("special", ALL, ids=names)
def test_a_special_entry_is_neither_read_nor_written(special: Special) -> None:
    fs = filesystem(special)
    before = fs.tree()
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: fs.read("/p"),
        "bytes": lambda: fs.read_bytes("/p"),
        "open": lambda: fs.open("/p"),
        "write": lambda: fs.write("/p", "x"),
        "append": lambda: fs.append("/p", "x"),
        "open to write": lambda: fs.open("/p", "w"),
        "splice": lambda: fs.splice("/p", [(0, 0, b"x")]),
    }
    for name, call in calls.items():
        with pytest.raises(OSError, match=rf"cannot \w+ '/p': it is a {special.kind}.*; name a file") as caught:
            call()
        assert caught.value.errno == EINVAL, name
    with pytest.raises(FileExistsError):
        fs.write("/p", "x", mode="create")
    assert fs.tree() is before


@pytest.mark.parametrize("special", ALL, ids=names)
def test_a_special_entry_can_be_moved_deleted_and_chmodded(special: Special) -> None:
    fs = filesystem(special)
    fs.chmod("/p", 0o600)
    fs.move("/p", "/moved")
    assert fs.stat("/moved").mode == 0o600
    assert leaf.kind_of(find(fs.tree(), ("moved",))) == special.kind  # type: ignore[arg-type]  # a leaf
    assert fs.delete("/moved") == 1
    assert not fs.exists("/moved")


def test_a_fifo_is_copied_and_a_socket_is_not() -> None:
    fs = filesystem(FIFO)
    fs.copy("/p", "/copy")
    assert leaf.kind_of(find(fs.tree(), ("copy",))) == "fifo"  # type: ignore[arg-type]  # a leaf
    with pytest.raises(OSError, match="it is a socket"):
        filesystem(SOCKET).copy("/p", "/copy")


def test_a_moved_file_can_replace_a_special_entry() -> None:
    fs = filesystem()
    fs.move("/a", "/p")
    assert fs.read("/p").content == "text\n"


def test_special_entries_differ_from_one_another_and_from_empty_files() -> None:
    nodes = [one(special) for special in ALL] + [leaf.file(b"", at=3), leaf.link("x", at=3)]
    for number, node in enumerate(nodes):
        assert [leaf.same(node, other) for other in nodes] == [other == number for other in range(len(nodes))]
    assert leaf.same(one(FIFO), one(FIFO))
    assert not leaf.same(one(FIFO), one(FIFO, 0o600))
    assert diff(tree_with(a=b""), tree_with(a=one(FIFO))).changed == ("/a",)
    assert not diff(tree_with(a=one(FIFO)), tree_with(a=one(FIFO)))


def test_git_s_digest_leaves_special_entries_out_and_the_fingerprint_does_not() -> None:
    plain = tree_with(a=b"x")
    trees = [put(plain, ("p",), one(special), 0) for special in ALL]
    assert {tree.digest for tree in trees} == {plain.digest}
    assert len({tree.fingerprint for tree in trees[:3]} | {plain.fingerprint}) == 4
    assert trees[3].fingerprint == plain.fingerprint, "a whiteout is no entry"
    assert put(plain, ("p",), one(FIFO, 0o600), 0).fingerprint != trees[0].fingerprint
    assert tree_of({"d": tree_of({"p": one(FIFO)})}).digest == EMPTY_TREE.digest


def test_a_change_on_one_side_of_a_merge_is_taken() -> None:
    base = tree_with(a=b"x", p=one(FIFO))
    theirs = put(base, ("p",), one(SOCKET), 0)
    merged = merge(base, put(base, ("b",), leaf.file(b"y", at=0), 0), theirs)
    assert leaf.kind_of(find(merged, ("p",))) == "socket"  # type: ignore[arg-type]  # a leaf


def test_different_changes_to_a_special_entry_conflict() -> None:
    base = tree_with(p=one(FIFO))
    with pytest.raises(Conflict):
        merge(base, put(base, ("p",), one(SOCKET), 0), put(base, ("p",), leaf.file(b"x", at=0), 0))


def test_special_entries_are_saved_and_loaded(tmp_path: Path) -> None:
    tree = tree_of({names(special): one(special, 0o600) for special in ALL})
    holding(tree).save(tmp_path / "s.json")
    back = load(tmp_path / "s.json")
    found = back[FileTree].latest()
    assert found is not None
    assert found.fingerprint == tree.fingerprint
    assert {name: (node[0], *node[1:4]) for name, node in found.children.items() if type(node) is tuple} == {
        names(special): (special, 0o600, 3, 3) for special in ALL
    }
    back.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "s.json").read_bytes()


@pytest.mark.parametrize("kind", ["pipe", None, 3])
def test_a_special_entry_of_unknown_kind_is_refused(kind: object, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    holding(tree_with(p=one(FIFO))).save(path)
    shown = b"null" if kind is None else b'"pipe"' if kind == "pipe" else b"3"
    path.write_bytes(path.read_bytes().replace(b'"fifo"', shown))
    with pytest.raises(ValueError, match=r"special entry 'p'"):
        Session.load(path)


def test_an_archive_includes_fifos_and_skips_other_special_entries() -> None:
    tree = tree_of({names(special): one(special, 0o600) for special in ALL})
    back = from_tar(to_tar(tree), limits=Limits(), at=9)
    assert back.fingerprint == tree_of({"fifo": one(FIFO, 0o600)}).fingerprint
    with tarfile.open(fileobj=io.BytesIO(to_tar(tree))) as archive:
        assert [member.isfifo() for member in archive if member.name != "."] == [True]


def test_each_kind_is_a_singleton_even_when_copied() -> None:
    for special in ALL:
        assert copy.deepcopy(special) is copy.copy(special) is pickle.loads(pickle.dumps(special)) is special
