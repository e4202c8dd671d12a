"""Checks and changes of an archive's files before they are written to a workspace."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from posixpath import dirname, join

from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import FileTree, find, put, walk

SET_ID = 0o6000
# How many bytes are decompressed at once.
PIECE = 1 << 20
# The memory limit for reading xz, in bytes: enough for the 64 MiB dictionary of `xz -9`.
XZ_MEMORY = 96 << 20
# How many bytes an xz decoder gets at once: it copies whatever follows the end of its stream.
XZ_INPUT = 8 << 10


def decompressed(archive: bytes, most: int | None) -> bytes | None:
    """Decompress an archive from gzip, bzip2 or xz; return `None` if the result has more than `most` bytes.

    Nothing beyond `most` is decompressed. Raises `ValueError` if the stream is truncated or damaged.
    """
    # A tar archive starts with a file name, which may look like a compressed stream.
    is_tar = archive[257:262] == b"ustar"
    try:
        if not is_tar and archive.startswith(b"\x1f\x8b\x08"):
            with gzip.open(io.BytesIO(archive)) as stream:
                return read_all(stream, most)
        if not is_tar and archive.startswith(b"BZh"):
            with bz2.open(io.BytesIO(archive)) as stream:
                return read_all(stream, most)
        if not is_tar and archive.startswith(b"\xfd7zXZ\x00"):
            return _read_xz(archive, most)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(
            f"cannot decompress the archive: {error}; it is damaged or truncated; create it again"
        ) from error
    return archive if most is None or len(archive) <= most else None


def read_all(data: io.IOBase, most: int | None) -> bytes | None:
    """Return everything in a stream; `None` if that is more than `most` bytes."""
    parts: list[bytes] = []
    size = 0
    while piece := data.read(PIECE):
        size += len(piece)
        if most is not None and size > most:
            return None
        parts.append(bytes(piece))
    return b"".join(parts)


def _read_xz(archive: bytes, most: int | None) -> bytes | None:
    """Decompress xz with bounded memory, which `lzma.open` does not support."""
    source = io.BytesIO(archive)
    parts: list[bytes] = []
    size = 0
    rest = b""
    while rest := rest or source.read(XZ_INPUT):
        rest = rest.lstrip(b"\0")
        if not rest:
            continue
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
        while not decoder.eof:
            if decoder.needs_input and not rest:
                rest = source.read(XZ_INPUT)
                if not rest:
                    raise EOFError("the stream has no end")
            piece, rest = decoder.decompress(rest, max_length=PIECE), b""
            size += len(piece)
            if most is not None and size > most:
                return None
            parts.append(piece)
        rest = decoder.unused_data
    return b"".join(parts)


def check_archive(tree: FileTree, root: str, max_entries: int | None) -> None:
    """Raise `ValueError` if there are too many entries, or if a link leads out of `root`, where the tree will be."""
    count = 0
    for path, node in walk(tree):
        count += 1
        if max_entries is not None and count > max_entries:
            raise ValueError(f"the archive has more than {max_entries} entries; raise ShellOptions.max_new_entries")
        if type(node) is FileTree:
            continue
        content = node[0]
        if isinstance(content, str):
            if _leads_out(path, content, root):
                raise ValueError(f"the link {path[1:]!r} leads out of the workspace, to {content!r}; leave it out")
        elif leaves.is_special(node):
            raise ValueError(f"{path[1:]!r} is neither a file nor a directory nor a link; leave it out")


def overlaid(tree: FileTree, above: FileTree) -> FileTree:
    """Return a tree overlaid with another one: its entries replace existing ones, and directories are merged."""
    for path, node in walk(above):
        segments = segments_of(path)
        if type(node) is FileTree and type(find(tree, segments)) is FileTree:
            continue
        tree = put(tree, segments, node, node.modified_at if type(node) is FileTree else tree.modified_at)
    return tree


def without_set_id(tree: FileTree) -> FileTree:
    """Return a tree whose files have no set-uid or set-gid bits, as after a command."""
    for path, node in list(walk(tree)):
        if type(node) is not FileTree and node[1] & SET_ID:
            tree = put(tree, segments_of(path), leaves.with_mode(node, node[1] & ~SET_ID), tree.modified_at)
    return tree


def _leads_out(path: str, target: str, root: str) -> bool:
    """Return whether the target of a link passes above the root at any point, without following other links."""
    base = root.rstrip("/") + "/"
    if target.startswith("/"):
        if not f"{target}/".startswith(base):
            return True
        way = target[len(base) :]
    else:
        way = join(dirname(path)[1:], target)
    depth = 0
    for part in way.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False
