"""Leaves of the tree, such as files and links: plain tuples of atoms.

The garbage collector stops tracking a tuple of atoms. It then tracks 11,000 objects instead of 416,000 for a thousand
versions of a tree of 100,000 files. All code that uses the positions of the tuple is in this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, cast, final

from weakfs.reducers.tree import name_escaping as names
from weakfs.session.blobs.blob import Joinable, Stored, digest_of
from weakfs.session.blobs.rope import Content, Rope

# (content, mode, modified_at, created_at, cell). The content is a file's (bytes, a Rope after an append, or Stored if
# it is in a store), a link's target (a str), or a Special. The cell is empty until the content's digest is first
# computed.
Leaf = tuple["Content | str", int, int, int, bytearray]

Kind = Literal["file", "link", "fifo", "socket", "device", "whiteout"]

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
LINK_MODE = 0o777

CONTENT: Final = 0
MODE: Final = 1
MODIFIED_AT: Final = 2
CREATED_AT: Final = 3
CELL: Final = 4


@final
class Special(bytes):
    """The content of an entry that has none, with one object per kind.

    It behaves like empty bytes, but is equal only to itself.
    """

    kind: Kind

    def __new__(cls, kind: Kind) -> Special:
        made = super().__new__(cls)
        made.kind = kind
        return made

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.kind}>"

    def __reduce__(self) -> tuple[Callable[[Kind], Special], tuple[Kind]]:
        # Copying and unpickling return the single object of the kind.
        return _the_special, (self.kind,)


def _the_special(kind: Kind) -> Special:
    return SPECIALS[kind]


FIFO: Final = Special("fifo")
SOCKET: Final = Special("socket")
DEVICE: Final = Special("device")
# Marks a path in an overlay where an entry of the lower layer was deleted.
WHITEOUT: Final = Special("whiteout")

SPECIALS: Final = {special.kind: special for special in (FIFO, SOCKET, DEVICE, WHITEOUT)}

# The types that are not the content of a file.
NO_FILE: Final = (str, Special)


def file(content: Content, *, mode: int = FILE_MODE, at: int, created_at: int | None = None) -> Leaf:
    """Make a file. Times are integer nanoseconds."""
    return (content, mode, at, at if created_at is None else created_at, bytearray())


def link(target: str, *, at: int, created_at: int | None = None) -> Leaf:
    """Make a symbolic link."""
    return (target, LINK_MODE, at, at if created_at is None else created_at, bytearray())


def special(content: Special, *, mode: int = FILE_MODE, at: int, created_at: int | None = None) -> Leaf:
    """Make a FIFO, a socket, a device or a whiteout."""
    return (content, mode, at, at if created_at is None else created_at, bytearray())


def is_link(leaf: Leaf) -> bool:
    """Return whether a leaf is a symbolic link."""
    return type(leaf[0]) is str


def is_file(leaf: Leaf) -> bool:
    """Return whether a leaf is a file, and not a link or special entry."""
    return type(leaf[0]) not in NO_FILE


def is_special(leaf: Leaf) -> bool:
    """Return whether a leaf is a FIFO, a socket, a device or a whiteout."""
    return type(leaf[0]) is Special


def kind_of(leaf: Leaf) -> Kind:
    """Return the kind of a leaf: `file`, `link`, or the kind of a special entry."""
    content = leaf[0]
    if type(content) is str:
        return "link"
    return content.kind if type(content) is Special else "file"


def with_content(leaf: Leaf, content: Content, at: int) -> Leaf:
    """Return the file with other content, modified at `at`; its mode and creation time are unchanged."""
    return (content, leaf[1], at, leaf[3], bytearray())


def with_mode(leaf: Leaf, mode: int) -> Leaf:
    """Return the file with other permission bits."""
    return (leaf[0], mode, leaf[2], leaf[3], leaf[4])


def content_of(leaf: Leaf) -> bytes:
    """Return a file's bytes, a link's target as bytes, or nothing for a special entry.

    Raises `MissingBlob` if the bytes are in a store that no longer has them.
    """
    content = leaf[0]
    if type(content) is bytes:
        return content
    if type(content) is str:
        return names.to_bytes(content)
    return b"" if type(content) is Special else cast(Joinable, content).join()


def size_of(leaf: Leaf) -> int:
    """Return the length of a file in bytes; a link counts as 0."""
    content = leaf[0]
    return 0 if type(content) is str else len(content)


def blob_digest(leaf: Leaf) -> bytes:
    """Return the git object id (SHA-256 format) of the content; computed once and cached in the leaf's cell."""
    cell = leaf[4]
    if not cell:
        content = leaf[0]
        if type(content) is Stored:
            cell[:] = content.digest
        else:
            # Not joined, so that a thousand versions of a growing log are not all kept in one piece.
            cell[:] = content.digest() if type(content) is Rope else digest_of(content_of(leaf))
    return bytes(cell)


def same(one: Leaf, other: Leaf) -> bool:
    """Return whether two leaves have the same kind, content and permission bits; times are ignored."""
    return one[1] == other[1] and kind_of(one) == kind_of(other) and same_content(one, other)


def same_content(one: Leaf, other: Leaf) -> bool:
    """Return whether two leaves hold the same bytes, by identity or digest where these are known."""
    if one[0] is other[0] or one[4] is other[4]:
        return True
    if one[4] and other[4]:
        return one[4] == other[4]
    if size_of(one) != size_of(other):
        return False
    if type(one[0]) is Stored or type(other[0]) is Stored:
        return blob_digest(one) == blob_digest(other)
    return content_of(one) == content_of(other)
