"""Trees in a session file: every name, content, mode, link and shape is loaded unchanged, with shared parts shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.sessions.portrait import portrait
from fixtures.sessions.story import ODD_NAMES, Clock
from weakfs import InMemoryFilesystem, Session, SessionError
from weakfs.reducers import FileTree
from weakfs.reducers.events import FileWritten, TreeMounted
from weakfs.reducers.tree.leaf import FILE_MODE, file, link
from weakfs.reducers.tree.node import EMPTY_TREE, Node, entries, find, tree_of


def opened() -> tuple[Session, InMemoryFilesystem]:
    session = Session(session_id="files", clock=Clock())
    return session, InMemoryFilesystem(session)


def again(session: Session, folder: Path) -> Session:
    session.save(folder / "s.json")
    back = Session.load(folder / "s.json", clock=Clock(2 * 10**18))
    assert portrait(back) == portrait(session)
    return back


def tree_at(session: Session, *path: str) -> FileTree:
    tree = session[FileTree].latest()
    assert tree is not None
    node = find(tree, path)
    assert isinstance(node, FileTree)
    return node


def holding(tree: FileTree) -> Session:
    session = Session(session_id="files", clock=Clock())
    session.dispatch(TreeMounted("/", "somewhere", tree, (), 5))
    return session


CONTENTS = [
    b"",
    b"text\n",
    b"\r\n\r\x0b\x0c\x1c\x85",
    "\ufeffbom \u2028\u2029 \U0001f642 e\u0301 \ufffd \uf700".encode(),
    b"\x00" * 1000,
    b"\xff\xfe",
    bytes(range(256)) * 3,
    b"\xed\xa0\x80 a surrogate in UTF-8",
    b"\xc0\x80 overlong",
    b'"quoted" \\ back',
    b"A" * 63 + b"=",
    b"x" * 200_000,
    b"\x1b[31m\x7f",
]


def test_every_content_is_loaded_unchanged(tmp_path: Path) -> None:
    session, filesystem = opened()
    for number, content in enumerate(CONTENTS):
        filesystem.write_bytes(f"/{number}", content)
    session.snapshot()
    back = InMemoryFilesystem(again(session, tmp_path))
    assert [back.read_bytes(f"/{number}").content for number in range(len(CONTENTS))] == CONTENTS


def test_text_is_readable_in_the_file_and_other_bytes_are_marked(tmp_path: Path) -> None:
    session, filesystem = opened()
    filesystem.write("/a.txt", "plain words, \u00e9, \u4e2d\u6587")
    filesystem.write_bytes("/a.bin", b"\xff\x00\xfe")
    session.save(tmp_path / "s.json")
    text = (tmp_path / "s.json").read_text("utf-8")
    assert "plain words, \u00e9, \u4e2d\u6587" in text
    assert '{"base64":"/wD+"}' in text


def test_every_name_is_loaded_unchanged(tmp_path: Path) -> None:
    session, filesystem = opened()
    names = [*ODD_NAMES, "n" * 255, "\ue000\uf6ff\uf800", "NUL", "con.txt", " ", "\n", "~", "$.trees[0]"]
    for name in names:
        filesystem.write(f"/{name}", name)
        filesystem.mkdir(f"/directories/{name}")
        filesystem.symlink(name, f"/links/{name}")
    back = InMemoryFilesystem(again(session, tmp_path))
    assert {entry.name for entry in back.list("/directories")} == set(names)
    assert {back.readlink(f"/links/{name}") for name in names} == set(names)
    assert all(back.read(f"/{name}").content == name for name in names)


@pytest.mark.parametrize("mode", [0, 0o1, 0o600, 0o644, 0o755, 0o1777, 0o7777])
def test_modes_of_files_and_directories_are_loaded_unchanged(mode: int, tmp_path: Path) -> None:
    session, filesystem = opened()
    filesystem.write("/file", "x")
    filesystem.chmod("/file", mode)
    filesystem.mkdir("/directory")
    filesystem.chmod("/directory", mode)
    filesystem.chmod("/", mode)
    back = InMemoryFilesystem(again(session, tmp_path))
    assert [back.stat(path).mode for path in ("/file", "/directory", "/")] == [mode] * 3


@pytest.mark.parametrize("at", [0, -1, -(2**63), 2**63 - 1])
def test_times_of_all_ages_are_loaded_unchanged(at: int, tmp_path: Path) -> None:
    nodes: dict[str, Node] = {"f": file(b"", at=at), "g": file(b"", at=5, created_at=at), "l": link("f", at=at)}
    again(holding(tree_of({**nodes, "d": tree_of(nodes, modified_at=at, created_at=at)}, modified_at=at)), tmp_path)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 1000, 1100])
def test_directories_with_many_names_are_loaded_unchanged(count: int, tmp_path: Path) -> None:
    names = [f"{number:05}" for number in range(count)]
    session = holding(tree_of({"d": tree_of({name: file(name[-1:].encode(), at=1) for name in names})}))
    filesystem = InMemoryFilesystem(session)
    session.snapshot("full")
    filesystem.write("/d/00000", "changed")
    session.snapshot("one changed")
    for name in names[::100]:
        filesystem.delete(f"/d/{name}")
    back = again(session, tmp_path)
    assert tree_at(back, "d").file_count == count - len(names[::100])


def test_names_in_one_hash_bucket_are_loaded_unchanged(tmp_path: Path) -> None:
    bucket = [name for name in map(str, range(200_000)) if not hash(name) & 0xFFF][:40]
    session = holding(tree_of({name: file(name.encode(), at=1) for name in bucket}))
    assert [name for name, _ in entries(tree_at(again(session, tmp_path)))] == sorted(bucket)


def test_deep_trees_are_loaded_unchanged(tmp_path: Path) -> None:
    session = Session(session_id="files", clock=Clock())
    session.dispatch(FileWritten("/d" * 3000 + "/f", b"deep", 1))
    session.snapshot()
    session.save(tmp_path / "s.json")
    back = Session.load(tmp_path / "s.json")
    assert tree_at(back).fingerprint == tree_at(session).fingerprint


def test_an_empty_tree_is_loaded_unchanged(tmp_path: Path) -> None:
    session, filesystem = opened()
    filesystem.write("/a", "x")
    filesystem.delete("/a")
    assert tree_at(again(session, tmp_path)).node_count == 0
    assert tree_at(again(holding(EMPTY_TREE), tmp_path)).node_count == 0


def test_a_moved_subtree_is_the_same_object_in_both_snapshots(tmp_path: Path) -> None:
    session, filesystem = opened()
    for number in range(50):
        filesystem.write(f"/a/deep/{number}", "x")
    session.snapshot("before")
    filesystem.move("/a/deep", "/b")
    session.snapshot("after")
    back = again(session, tmp_path)
    before, after = back.at("before")[FileTree].latest(), back.at("after")[FileTree].latest()
    assert before is not None
    assert after is not None
    assert find(before, ("a", "deep")) is find(after, ("b",))


def test_a_file_that_became_a_directory_and_a_link_is_loaded_unchanged(tmp_path: Path) -> None:
    session, filesystem = opened()
    for number in range(40):
        filesystem.write(f"/{number}", "x" * 100)
    for change in ("directory", "link", "file"):
        session.snapshot()
        filesystem.delete("/7", recursive=True)
        if change == "directory":
            filesystem.write("/7/inner", "y")
        elif change == "link":
            filesystem.symlink("8", "/7")
        else:
            filesystem.write("/7", "x" * 100 + "z")
    again(session, tmp_path)


def test_a_content_that_shrinks_and_grows_again_is_loaded_unchanged(tmp_path: Path) -> None:
    session, filesystem = opened()
    start = "start of a file that is longer than sixty-four bytes, so that its tail is told apart\n"
    for content in (start, start + "more", start, start + "other", start + "other\xff", "", start, start + start):
        filesystem.write("/f", content)
        session.snapshot()
    again(session, tmp_path)


def test_every_version_of_an_appended_file_is_loaded_unchanged(tmp_path: Path) -> None:
    session, filesystem = opened()
    filesystem.write_bytes("/f", b"\xff" * 100)
    for number in range(300):
        filesystem.append("/f", f"line {number} \u00e9\n")
        if not number % 10:
            session.snapshot()
    back = again(session, tmp_path)
    sizes = [tree.total_size for tree in (back.at(one)[FileTree].latest() for one in back.snapshots) if tree]
    assert sizes == sorted(set(sizes))
    assert len(sizes) == 30


def test_an_append_that_splits_a_character_is_loaded_unchanged(tmp_path: Path) -> None:
    session, filesystem = opened()
    whole = ("\u00e9" * 40 + "\U0001f642").encode()
    filesystem.write_bytes("/f", whole[:-2])
    session.snapshot()
    filesystem.write_bytes("/f", whole[-2:], mode="append")
    session.snapshot()
    assert InMemoryFilesystem(again(session, tmp_path)).read_bytes("/f").content == whole


def test_a_tree_too_large_to_be_loaded_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    session = Session(session_id="files", clock=Clock())
    tree = tree_of({"f": file(b"x", at=1)})
    for _ in range(40):
        tree = tree_of({"a": tree, "b": tree})
    session[FileTree].seed(tree)
    with pytest.raises(SessionError, match="entries"):
        session.save(tmp_path / "s.json")
    assert list(tmp_path.iterdir()) == []


def test_a_mode_outside_the_permission_bits_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    for mode in (-1, FILE_MODE | 0o100000):
        session = holding(tree_of({"f": file(b"", mode=mode, at=1)}))
        with pytest.raises(SessionError, match="mode"):
            session.save(tmp_path / "s.json")


def test_a_loaded_filesystem_can_be_changed(tmp_path: Path) -> None:
    session, filesystem = opened()
    for number in range(60):
        filesystem.write(f"/d/{number}", "x")
    filesystem.append("/d/1", "y")
    back = InMemoryFilesystem(again(session, tmp_path))
    for one in (filesystem, back):
        one.append("/d/1", "z")
        one.delete("/d/2")
        one.copy("/d", "/e")
        one.write("/e/new", "n")
    assert back.tree().fingerprint == filesystem.tree().fingerprint
    assert back.read("/e/1").content == "xyz"
