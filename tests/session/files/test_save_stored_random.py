"""Random trees with contents in memory, stored elsewhere or appended to: saved, loaded and saved again."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from tests.session.files.contents import REGISTRY, Archive, blobs, load
from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import FileTree, TreeRestored
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.leaf import FIFO, Leaf
from weakfs.reducers.tree.node import EMPTY_TREE, Node, put, tree_of
from weakfs.session.blobs.blob import Held, digest_of
from weakfs.session.blobs.rope import Content, Rope

DATA = (b"", b"a", b"ab\n" * 40, b"ab\n" * 41, b"\xff" * 80, b"x" * 5000)

data = st.sampled_from(DATA)
plain: st.SearchStrategy[Content] = st.one_of(data, data.map(lambda content: Held().put(content)))
contents = st.recursive(plain, lambda base: st.builds(Rope, base, data), max_leaves=3)
files = st.builds(lambda content, at: leaf.file(content, at=at), contents, st.integers(0, 1))
leaves: st.SearchStrategy[Leaf] = st.one_of(
    files, st.just(leaf.link("target", at=0)), st.just(leaf.special(FIFO, at=0))
)
names = st.sampled_from("abcd")
trees = st.recursive(
    st.dictionaries(names, leaves, max_size=3).map(lambda nodes: tree_of(dict(nodes))),
    lambda inner: st.dictionaries(names, st.one_of(leaves, inner), max_size=3).map(lambda nodes: tree_of(dict(nodes))),
    max_leaves=6,
)
edits = st.lists(st.tuples(names, names, st.one_of(leaves, trees)), max_size=3)


def copied(tree: FileTree) -> FileTree:
    """Return an equal tree that shares no object with it."""
    nodes: dict[str, Node] = {}
    for name, node in tree.children.items():
        nodes[name] = copied(node) if type(node) is FileTree else (*node[:4], bytearray())
    return tree_of(nodes, mode=tree.mode, modified_at=tree.modified_at, created_at=tree.created_at)


@settings(max_examples=share(150), deadline=None)
@given(st.lists(st.tuples(trees, edits, st.booleans()), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_a_session_is_loaded_unchanged_and_saved_as_the_same_bytes(
    versions: list[tuple[FileTree, list[tuple[str, str, Node]], bool]], compacts: bool, embed: bool
) -> None:
    session = Session(session_id="s", registry=REGISTRY, clock=count(1).__next__)
    for tree, changes, again in versions:
        for version in (tree, copied(tree) if again else tree):
            session.dispatch(TreeRestored(version, "test", 1))
            session.snapshot()
        edited = tree
        for first, second, node in changes:
            edited = put(edited, (first, second), node, 2)
        session.dispatch(TreeRestored(edited, "test", 2))
        session.snapshot()
    session[Archive].append(Archive("a", Held().put(b"data"), None))
    if compacts:
        session.compact(keep=1)
    with TemporaryDirectory() as folder:
        path, other = Path(folder, "s.json"), Path(folder, "again.json")
        session.save(path, embed=embed)
        back = load(path)
        back.save(other, embed=embed)
        assert other.read_bytes() == path.read_bytes()
        assert blobs(other) == blobs(path)
        assert all(digest_of(content).hex() == name for name, content in blobs(path).items())
        for snapshot in session.snapshots:
            session.rollback(snapshot)
            back.rollback(snapshot.snapshot_id)
            mine = session[FileTree].latest() or EMPTY_TREE
            theirs = back[FileTree].latest() or EMPTY_TREE
            assert theirs.fingerprint == mine.fingerprint
        assert InMemoryFilesystem(back).export_bytes() == InMemoryFilesystem(session).export_bytes()
