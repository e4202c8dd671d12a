"""Digests: git's object ids, the same for equal trees whatever their history."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import pytest

from weakfs.filesystem import Filesystem
from weakfs.testing.conformance.harness import FilesystemCases

# A small tree in git's terms: a file is its bytes, a directory maps names to its entries.
Node: TypeAlias = "bytes | dict[str, Node]"

TREES: dict[str, dict[str, Node]] = {
    "empty": {},
    "one_file": {"a.txt": b"hello\n"},
    "one_empty_file": {"a.txt": b""},
    "nested": {"d": {"e": {"a.txt": b"deep"}}},
    "names_that_sort_with_a_slash": {"a": {"x": b"1"}, "a.txt": b"2", "a-b": b"3", "a0": b"4", "ab": b"5"},
    "names_that_sort_by_bytes": {"Z": b"1", "a": b"2", "é": b"3", "🎉": b"4", "\uffee": b"5"},
    "equal_contents": {"a": b"same", "b": b"same", "d": {"a": b"same"}},
    "bytes": {"a.bin": bytes(range(256)), "b.bin": b"\r\n\0"},
}


def object_id(kind: str, body: bytes) -> bytes:
    return hashlib.sha256(f"{kind} {len(body)}\0".encode() + body).digest()


def git_id(node: Node) -> bytes:
    """Compute git's SHA-256 object id; a tree sorts its directories as if their names ended in a slash."""
    if isinstance(node, bytes):
        return object_id("blob", node)
    entries: list[tuple[bytes, bytes]] = []
    for name, child in node.items():
        is_directory = isinstance(child, dict)
        mode = b"40000" if is_directory else b"100644"
        key = name.encode() + (b"/" if is_directory else b"")
        entries.append((key, mode + b" " + name.encode() + b"\0" + git_id(child)))
    return object_id("tree", b"".join(entry for _, entry in sorted(entries)))


def build(fs: Filesystem, tree: dict[str, Node], path: str = "") -> None:
    for name, node in tree.items():
        if isinstance(node, bytes):
            fs.write_bytes(f"{path}/{name}", node)
        else:
            build(fs, node, f"{path}/{name}")


class DigestCases(FilesystemCases):
    @pytest.mark.parametrize("tree", list(TREES.values()), ids=list(TREES))
    def test_a_digest_is_the_object_id_of_git(self, fs: Filesystem, tree: dict[str, Node]) -> None:
        build(fs, tree)
        assert fs.tree().digest == git_id(tree).hex()

    def test_links_and_executables_have_the_modes_of_git(self, fs: Filesystem) -> None:
        fs.write("/run.sh", "text")
        fs.chmod("/run.sh", 0o755)
        fs.symlink("run.sh", "/link")
        body = b"120000 link\0" + object_id("blob", b"run.sh") + b"100755 run.sh\0" + object_id("blob", b"text")
        assert fs.tree().digest == object_id("tree", body).hex()

    def test_equal_trees_have_equal_digests_whatever_their_order(self, fs: Filesystem) -> None:
        names = [f"/{directory}/{name}" for directory in ("a", "b/c", "d") for name in ("1", "2", "10", "é")]
        other = self.make_fs()
        for name in names:
            fs.write(name, name)
        for name in reversed(names):
            other.write(name, name)
        assert fs.tree().digest == other.tree().digest
        assert fs.tree().fingerprint == other.tree().fingerprint

    def test_equal_trees_have_equal_digests_whatever_their_history(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "one\ntwo\n")
        fs.write("/b.txt", "text")
        other = self.make_fs()
        other.write("/x/y.txt", "one\n")
        other.append("/x/y.txt", "two\n")
        other.move("/x/y.txt", "/x/a.txt")
        other.move("/x", "/d")
        other.write("/b.txt", "something else")
        other.write("/c.txt", "text")
        other.copy("/c.txt", "/b.txt")
        other.delete("/c.txt")
        assert fs.tree().digest == other.tree().digest
        assert fs.tree().fingerprint == other.tree().fingerprint

    def test_a_change_and_its_reversal_restore_the_digest(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        before = fs.tree().digest
        fs.write("/d/b.txt", "text")
        assert fs.tree().digest != before
        fs.delete("/d/b.txt")
        assert fs.tree().digest == before

    def test_a_digest_sees_one_changed_byte(self, fs: Filesystem) -> None:
        seen: set[str] = set()
        for content in (b"text", b"tex\0", b"Text", b"text\n", b"text\r\n", b""):
            fs.write_bytes("/d/e/a.txt", content)
            seen.add(fs.tree().digest)
        assert len(seen) == 6

    def test_a_digest_sees_a_changed_name(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        before = fs.tree().digest
        fs.move("/d/a.txt", "/d/b.txt")
        assert fs.tree().digest != before

    def test_only_the_fingerprint_sees_empty_directories(self, fs: Filesystem) -> None:
        fs.write("/d/a.txt", "text")
        digest, fingerprint = fs.tree().digest, fs.tree().fingerprint
        fs.mkdir("/d/empty/inner")
        assert fs.tree().digest == digest
        assert fs.tree().fingerprint != fingerprint

    def test_digest_and_fingerprint_ignore_the_time(self, fs: Filesystem) -> None:
        self.write_in_turn(fs, "/a.txt", "/b.txt")
        before = fs.tree().digest, fs.tree().fingerprint
        self.write_in_turn(fs, "/a.txt")
        assert (fs.tree().digest, fs.tree().fingerprint) == before

    def test_a_tree_that_was_taken_does_not_change(self, fs: Filesystem) -> None:
        fs.write("/a.txt", "text")
        tree = fs.tree()
        fs.write("/a.txt", "changed")
        assert tree.digest == git_id({"a.txt": b"text"}).hex()
