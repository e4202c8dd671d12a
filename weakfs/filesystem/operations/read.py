"""Read operations, derived from the primitives: text by lines, bytes, metadata, listings."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from errno import EINVAL
from typing import cast

from weakfs.errors import fault
from weakfs.filesystem.path_lookup import PathLookup
from weakfs.filesystem.primitives import entry_of
from weakfs.filesystem.results import (
    FileEntry,
    FileStat,
    ReadBytesResult,
    ReadResult,
    Statistics,
    count_lines,
    whole_text,
)
from weakfs.reducers.tree.leaf import CONTENT, MODE, MODIFIED_AT, Special, is_file, is_link, size_of
from weakfs.reducers.tree.listing import in_path_order
from weakfs.reducers.tree.node import FileTree, Node, Segments
from weakfs.session.interruption import check_interrupted

PathArg = str | os.PathLike[str]


def _undecodable(
    path: str, data: bytes, encoding: str, error: UnicodeDecodeError | LookupError | TypeError
) -> ValueError:
    if not isinstance(error, UnicodeDecodeError):
        return _no_encoding(path, encoding)
    return ValueError(
        f"cannot read {path!r} as {encoding}: the byte 0x{data[error.start]:02x} at offset {error.start} is not "
        f"text ({error.reason}); use read_bytes, or another encoding"
    )


def check_encoding(path: PathArg, encoding: str) -> None:
    """Raise `ValueError` if this is not the name of an encoding."""
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise _no_encoding(path, encoding) from None


def _no_encoding(path: PathArg, encoding: str) -> ValueError:
    return ValueError(f"cannot open {path!r} as text: {encoding!r} is not an encoding; use one such as 'utf-8'")


def slice_lines(text: str, offset: int, limit: int) -> str:
    """Return `limit` lines from line `offset` (from 0) on, with their line endings."""
    lines = text.split("\n", min(offset + limit, sys.maxsize))
    chosen = "\n".join(lines[offset : offset + limit])
    return chosen + "\n" if len(lines) > offset + limit and limit else chosen


class Reading(PathLookup):
    """The methods of a filesystem that change nothing."""

    __slots__ = ()

    def read(self, path: PathArg, *, offset: int = 0, limit: int | None = None, encoding: str = "utf-8") -> ReadResult:
        """Read text: `limit` lines, starting at line `offset` (from 0).

        `limit=None` means `limits.default_read_limit`, and `-1` means all lines. Nothing is translated: the final
        newline, `\\r` and a byte order mark are kept. Raises `ValueError` for bytes that do not decode.
        """
        if limit is None:
            limit = self.limits.default_read_limit
        elif limit == -1:
            limit = None
        elif type(limit) is not int or limit < 0:
            raise ValueError(f"cannot read {limit!r} lines of {path!r}; use a number of 0 or more, or -1 for all")
        if offset != 0 and (type(offset) is not int or offset < 0):
            raise ValueError(f"cannot read {path!r} from line {offset!r}; use an offset of 0 or more")
        canonical, leaf = self._file(path, "read")
        content = leaf[CONTENT]
        data = content if type(content) is bytes else self.content(canonical, leaf)
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError, TypeError) as error:
            raise _undecodable(canonical, data, encoding, error) from None
        if limit is None and not offset:
            return whole_text(text, canonical)
        total = count_lines(text)
        wanted = max(total - offset, 0) if limit is None else limit
        return ReadResult(slice_lines(text, offset, wanted), canonical, total, offset, limit, offset + wanted < total)

    def read_bytes(self, path: PathArg, *, offset: int = 0, limit: int | None = None) -> ReadBytesResult:
        """Read `limit` bytes (`None` or -1: all) from `offset` on."""
        if (offset != 0 and (type(offset) is not int or offset < 0)) or (
            limit is not None and (type(limit) is not int or limit < -1)
        ):
            raise ValueError(
                f"cannot read {limit!r} bytes of {path!r} from {offset!r}; use numbers of 0 or more, or limit=-1 for "
                f"all"
            )
        canonical, leaf = self._file(path, "read")
        content = leaf[CONTENT]
        if limit is None and offset == 0:
            data = content if type(content) is bytes else self.content(canonical, leaf)
            return ReadBytesResult(data, canonical, len(data), 0, None, False)
        size = size_of(leaf)
        stop = size if limit is None or limit == -1 else min(offset + limit, size)
        data = content[offset:stop] if type(content) is bytes else self.content_range(canonical, leaf, offset, stop)
        return ReadBytesResult(data, canonical, size, offset, None if limit == -1 else limit, stop < size)

    def read_lines(self, path: PathArg) -> tuple[str, ...]:
        """Read all lines of a text, each with its line ending."""
        return tuple(io.StringIO(self.read(path, limit=-1).content, newline="\n"))

    def exists(self, path: PathArg) -> bool:
        """Return whether there is an entry; a symbolic link counts, wherever it points."""
        return self._locate(path, follow=False)[2] is not None

    def is_file(self, path: PathArg) -> bool:
        """Return whether there is a file; a link to one counts only if links are followed."""
        node = self._target(path)
        return type(node) is tuple and is_file(node)

    def is_directory(self, path: PathArg) -> bool:
        """Return whether there is a directory; a link to one counts only if links are followed."""
        return type(self._target(path)) is FileTree

    def _target(self, path: PathArg) -> Node | None:
        return self._locate(path, follow=self.follow_symlinks != "deny")[2]

    def stat(self, path: PathArg) -> FileStat:
        """Return the status of an entry; a link is not followed."""
        canonical, segments, node = self._locate(path, follow=False)
        if node is None:
            raise self._missing(canonical, segments, "stat")
        return _stat(canonical, node, self.creation_time(segments, node))

    def readlink(self, path: PathArg) -> str:
        """Return the target of a symbolic link; raise `OSError` (EINVAL) for anything else."""
        canonical, _, node = self._existing(path, "read the link", follow=False)
        if type(node) is not tuple or not is_link(node):
            raise fault(OSError, EINVAL, f"cannot read the link {canonical!r}: it is not a symbolic link; use read")
        return cast(str, node[CONTENT])

    def list(self, path: PathArg = "/") -> tuple[FileEntry, ...]:
        """List a directory by name. O(its entries)."""
        now = self._view()
        canonical, segments = now._directory(path, "list")
        prefix = "/" if canonical == "/" else canonical + "/"
        return now.list_entries(segments, prefix)

    def walk(self, path: PathArg = "/") -> Iterator[FileEntry]:
        """Yield everything below a directory in path order; links are not followed.

        Raises `TreeTooLarge`, a `ValueError`, for a directory that is mostly copies of itself.
        """
        now = self._view()
        canonical, segments = now._directory(path, "walk")
        now._check_repeats(segments)
        prefix = "" if canonical == "/" else canonical
        for below, node in _walk(now, segments, prefix):
            yield entry_of(below.rpartition("/")[2], below, node)

    def statistics(self) -> Statistics:
        """Count bytes, files and directories."""
        size, files, directories = self.totals(())
        return Statistics(size, files, directories)


def _walk(now: PathLookup, segments: Segments, prefix: str) -> Iterator[tuple[str, Node]]:
    """Yield `(path, node)` in the order of the paths' characters, a directory before its entries."""
    stack = [(segments, prefix, iter(in_path_order(now.entries(segments))))]
    while stack:
        segments, prefix, entries = stack[-1]
        for name, node in entries:
            path = f"{prefix}/{name}"
            yield path, node
            if type(node) is FileTree:
                check_interrupted()
                below = (*segments, name)
                stack.append((below, path, iter(in_path_order(now.readable_entries(below)))))
                break
        else:
            stack.pop()


def _stat(path: str, node: Node, created: int) -> FileStat:
    if type(node) is FileTree:
        return FileStat(path, False, True, 0, created, node.modified_at, node.mode)
    content = node[CONTENT]
    if isinstance(content, str):
        return FileStat(path, False, False, 0, created, node[MODIFIED_AT], node[MODE], content)
    return FileStat(path, type(content) is not Special, False, len(content), created, node[MODIFIED_AT], node[MODE])
