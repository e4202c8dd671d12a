"""Differences between the trees of two commits, as fast-import commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node
from weakfs.snapshots.git.reserved_names import is_refused


def object_id(leaf: Leaf) -> bytes:
    """Return the name of a file's contents in a repository with SHA-256 object ids."""
    return leaves.blob_digest(leaf).hex().encode()


def changes(old: FileTree, new: FileTree, name_of: Callable[[Leaf], bytes] = object_id) -> Iterator[bytes]:
    """Yield the commands for entries that differ and that git can represent. O(differences).

    `name_of` returns the object id or the mark of a file's contents.
    """
    stack = [(b"", old, new)]
    while stack:
        above, one, other = stack.pop()
        for name, before, after in maps.differences(one._children, other._children):
            path = above + names.to_bytes(name)
            if type(before) is FileTree and type(after) is FileTree:
                if not is_refused(name):
                    stack.append((path + b"/", before, after))
                continue
            if before is not None and _is_held(name, before):
                yield b"D " + quoted(path) + b"\n"
            if after is not None and _is_held(name, after):
                yield from _added(path, after, name_of)


def _added(path: bytes, node: Node, name_of: Callable[[Leaf], bytes]) -> Iterator[bytes]:
    stack = [(path, node)]
    while stack:
        path, node = stack.pop()
        if type(node) is FileTree:
            held = (entry for entry in maps.items(node._children) if _is_held(*entry))
            stack.extend((path + b"/" + names.to_bytes(name), child) for name, child in held)
        else:
            yield _line(path, node, name_of)


def _line(path: bytes, leaf: Leaf, name_of: Callable[[Leaf], bytes]) -> bytes:
    if leaves.is_link(leaf):
        target = leaves.content_of(leaf)
        return b"M 120000 inline %s\ndata %d\n%s\n" % (quoted(path), len(target), target)
    mode = b"100755" if leaf[leaves.MODE] & 0o100 else b"100644"
    return b"M %s %s %s\n" % (mode, name_of(leaf), quoted(path))


def _is_held(name: str, node: Node) -> bool:
    """Return whether git can represent an entry."""
    if type(node) is FileTree:
        return not is_refused(name)
    return not leaves.is_special(node) and not is_refused(name, is_link=leaves.is_link(node))


def refused_contents(tree: FileTree) -> set[bytes]:
    """Return the contents of all files that git cannot represent. O(entries)."""
    found: set[bytes] = set()
    stack = [(tree, False)]
    while stack:
        here, is_all = stack.pop()
        for name, node in maps.items(here._children):
            is_out = is_all or is_refused(name)
            if type(node) is FileTree:
                stack.append((node, is_out))
            elif is_out and leaves.is_file(node):
                found.add(leaves.blob_digest(node))
    return found


def quoted(path: bytes) -> bytes:
    """Return a path in fast-import's syntax: quoted if it would be misread otherwise."""
    if not path.startswith(b'"') and b"\n" not in path:
        return path
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
