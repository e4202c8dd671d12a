"""Digests of trees: git's own object ids, and a fingerprint that proves a rollback.

Both are cached on the immutable node, so that for the next version only what differs is hashed. The formats are those
of git's object format documentation (gitformat, "tree objects"), with SHA-256 object ids.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final, cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.directory import Directory
from weakfs.reducers.tree.leaf import MODE, Leaf, Special, blob_digest, is_link, is_special

# The letters of `find -type`.
SPECIAL_LETTERS: Final = {"fifo": b"p", "socket": b"s", "device": b"c"}

EMPTY_GIT_TREE = sha256(b"tree 0\0").digest()


def tree_digest(tree: Directory) -> bytes:
    """Return the id that `git write-tree` returns for the same tree.

    Empty directories are ignored, and so are FIFOs, sockets and devices.
    """
    return _fold(tree, "_digest", _git_object)


def tree_fingerprint(tree: Directory) -> bytes:
    """Return a hash of names, kinds, contents and permission bits; times are ignored."""
    return _fold(tree, "_fingerprint", _full_object)


def _fold(tree: Directory, slot: str, compute: Callable[[Directory], bytes]) -> bytes:
    """Compute a hash bottom-up, over the directories that do not have it yet; without recursion."""
    stack = [tree]
    while stack:
        node = stack[-1]
        if getattr(node, slot) is None:
            missing = [
                child
                for _, child in maps.items(node._children)
                if type(child) is not tuple and getattr(child, slot) is None
            ]
            if missing:
                stack.extend(missing)
                continue
            setattr(node, slot, compute(node))
        stack.pop()
    return cast(bytes, getattr(tree, slot))


def _git_object(tree: Directory) -> bytes:
    lines: list[tuple[bytes, bytes]] = []
    for name, node in maps.items(tree._children):
        raw = names.to_bytes(name)
        if type(node) is not tuple:
            digest = cast(bytes, node._digest)
            if digest != EMPTY_GIT_TREE:
                # git sorts a directory as if its name ended in a slash.
                lines.append((raw + b"/", b"40000 " + raw + b"\0" + digest))
        elif not is_special(node):
            lines.append((raw, _git_mode(node) + b" " + raw + b"\0" + blob_digest(node)))
    lines.sort()
    body = b"".join(line for _, line in lines)
    return sha256(b"tree %d\0" % len(body) + body).digest()


def _git_mode(leaf: Leaf) -> bytes:
    if is_link(leaf):
        return b"120000"
    return b"100755" if leaf[MODE] & 0o100 else b"100644"


def _full_object(tree: Directory) -> bytes:
    lines: list[tuple[bytes, bytes]] = []
    for name, node in maps.items(tree._children):
        raw = names.to_bytes(name)
        line = _full_line(raw, node)
        if line is not None:
            lines.append((raw, line))
    lines.sort()
    body = b"".join(line for _, line in lines)
    return sha256(b"directory %o %d\0" % (tree.mode, len(body)) + body).digest()


def _full_line(raw: bytes, node: Directory | Leaf) -> bytes | None:
    if isinstance(node, Directory):
        return b"d " + raw + b"\0" + cast(bytes, node._fingerprint)
    leaf = node
    content = leaf[0]
    if type(content) is Special:
        # A whiteout is not an entry: it marks one that does not exist.
        letter = SPECIAL_LETTERS.get(content.kind)
        return None if letter is None else b"%c %o %s\0" % (letter, leaf[MODE], raw)
    kind = b"l" if is_link(leaf) else b"f %o" % leaf[MODE]
    return kind + b" " + raw + b"\0" + blob_digest(leaf)
