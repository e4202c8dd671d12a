"""Sessions whose contents are stored elsewhere, for the tests of sidecars."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from attrs import field, frozen

from weakfs import MissingBlob, Registry, Session, event
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import TreeRestored
from weakfs.reducers.tree import leaf
from weakfs.reducers.tree.node import FileTree, Node, tree_of
from weakfs.session.blobs.blob import Held, Stored, digest_of


@event("test/archive")
@frozen
class Archive:
    """A slice value with a content that may be stored elsewhere."""

    name: str
    data: Stored | bytes | None = field(repr=False, default=None)
    must: Stored | None = None


@event("test/taken")
@frozen
class Taken:
    """An event with contents that may be stored elsewhere."""

    data: Stored
    other: Stored | bytes
    label: str = ""


REGISTRY = Registry.standard().with_types(Archive, Taken)


class Forgetful:
    """A source that had a content but has lost it."""

    def read(self, digest: bytes) -> bytes:
        raise MissingBlob(f"the content {digest.hex()} is gone", where="the forgetful store", digest=digest)


def gone(content: bytes) -> Stored:
    """Return a reference to a content that no source has."""
    return Stored(digest_of(content), len(content), Forgetful())


def tree_with(**contents: Node | bytes | Stored) -> FileTree:
    """Make a tree of files."""
    return tree_of(
        {
            name: leaf.file(content, at=7) if isinstance(content, bytes | Stored) else content
            for name, content in contents.items()
        }
    )


def holding(tree: FileTree, name: str = "s") -> Session:
    """Make a session with a tree in it."""
    session = Session(session_id=name, registry=REGISTRY, clock=count(1).__next__)
    session.dispatch(TreeRestored(tree, "test", 1))
    return session


def elsewhere(*contents: bytes) -> Session:
    """Make a session whose files `f0`, `f1`, ... are all stored elsewhere."""
    held = Held()
    return holding(tree_with(**{f"f{number}": held.put(content) for number, content in enumerate(contents)}))


def read(session: Session, path: str) -> bytes:
    return InMemoryFilesystem(session).read_bytes(path).content


def load(path: Path) -> Session:
    return Session.load(path, registry=REGISTRY, clock=count(1000).__next__)


def blobs(path: Path) -> dict[str, bytes]:
    """Return the contents of a session file's sidecar, by digest in hexadecimal."""
    folder = path.with_name(path.name + ".blobs")
    return {
        found.parent.name + found.name: found.read_bytes()
        for found in folder.rglob("*")
        if found.is_file() and found.parent != folder
    }


def blob_path(path: Path, content: bytes) -> Path:
    """Return the path of a content in the sidecar of a session file."""
    name = digest_of(content).hex()
    return path.with_name(path.name + ".blobs") / name[:2] / name[2:]
