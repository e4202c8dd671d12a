"""Files and links as the tree holds them: plain tuples of atoms.

The garbage collector stops looking at a tuple of atoms, and a tree of 100,000 files kept in a thousand
versions is then 11,000 objects to it instead of 416,000. All that touches the tuple's places is here.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, cast

from weakfs.reducers import names
from weakfs.session.rope import Rope

# (content, mode, modified_at, created_at, cell). The content is bytes, a Rope for a file that was appended
# to, or a str: the target of a symbolic link. The cell is empty until the content's digest is asked for.
Leaf = tuple["bytes | Rope | str", int, int, int, bytearray]

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
LINK_MODE = 0o777

CONTENT: Final = 0
MODE: Final = 1
MODIFIED_AT: Final = 2
CREATED_AT: Final = 3


def file(content: bytes | Rope, *, mode: int = FILE_MODE, at: int, created_at: int | None = None) -> Leaf:
    """Make a file. Times are integer nanoseconds."""
    return (content, mode, at, at if created_at is None else created_at, bytearray())


def link(target: str, *, at: int, created_at: int | None = None) -> Leaf:
    """Make a symbolic link."""
    return (target, LINK_MODE, at, at if created_at is None else created_at, bytearray())


def is_link(leaf: Leaf) -> bool:
    """Tell a symbolic link from a file."""
    return type(leaf[0]) is str


def with_content(leaf: Leaf, content: bytes | Rope, at: int) -> Leaf:
    """Give the file with other content, modified at `at`; its mode and birth stay."""
    return (content, leaf[1], at, leaf[3], bytearray())


def with_mode(leaf: Leaf, mode: int) -> Leaf:
    """Give the file with other permission bits."""
    return (leaf[0], mode, leaf[2], leaf[3], leaf[4])


def content_of(leaf: Leaf) -> bytes:
    """Give a file's bytes, or a link's target as bytes."""
    content = leaf[0]
    if type(content) is bytes:
        return content
    return names.to_bytes(content) if type(content) is str else cast(Rope, content).join()


def size_of(leaf: Leaf) -> int:
    """Give the length of a file in bytes; a link counts as nothing."""
    content = leaf[0]
    return 0 if type(content) is str else len(content)


def blob_digest(leaf: Leaf) -> bytes:
    """Give the git object id (SHA-256 format) of the content; computed once and kept in the leaf's cell."""
    cell = leaf[4]
    if not cell:
        content = content_of(leaf)
        cell[:] = sha256(b"blob %d\0" % len(content) + content).digest()
    return bytes(cell)


def same(one: Leaf, other: Leaf) -> bool:
    """Tell whether two leaves have the same kind, content and permission bits; times do not count."""
    if one[1] != other[1] or is_link(one) is not is_link(other):
        return False
    return same_content(one, other)


def same_content(one: Leaf, other: Leaf) -> bool:
    """Tell whether two leaves hold the same bytes, by reference or digest where these are at hand."""
    if one[0] is other[0] or one[4] is other[4]:
        return True
    if one[4] and other[4]:
        return one[4] == other[4]
    return size_of(one) == size_of(other) and content_of(one) == content_of(other)
