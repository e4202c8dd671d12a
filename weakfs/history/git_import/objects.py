"""The objects of an untrusted repository, read by `git cat-file` without its hooks, filters and transports."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import IO, Self, cast

from weakfs.class_decorators import define, frozen
from weakfs.history.git_import.commit_calls import GitCommit
from weakfs.history.git_import.foreign_repository import ForeignRepository, ImportRefused

# Larger commits and trees (in bytes) are refused: real ones are far smaller, and a tree is read as a whole.
MOST = 64 << 20
_PIECE = 1 << 20


@frozen
class TreeEntry:
    """An entry of a tree: its mode, as a number, and the id of its object."""

    mode: int
    object_id: str


@define(eq=False)
class _CatFile:
    """A `git cat-file` process that answers one request after another."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]

    @classmethod
    def started(cls, repository: ForeignRepository, option: str) -> _CatFile:
        process = repository.start("cat-file", option)
        return cls(process, os.fdopen(os.dup(cast("IO[bytes]", process.stdout).fileno()), "rb"))

    def close(self) -> None:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.out):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.process.wait()

    def ask(self, name: str) -> list[bytes] | None:
        """Ask for an object; return the words of the answer's first line, `None` if there is no answer."""
        with suppress(BrokenPipeError):
            cast("IO[bytes]", self.process.stdin).write(name.encode() + b"\n")
        line = self.out.readline(4096)
        return line.split() if line.endswith(b"\n") else None


class Objects:
    """The objects of a repository; a context manager. Missing ones are never fetched from elsewhere."""

    def __init__(self, repository: ForeignRepository) -> None:
        self.git_dir = repository.path
        self._sizes = _CatFile.started(repository, "--batch-check")
        self._contents = _CatFile.started(repository, "--batch")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._sizes.close()
        self._contents.close()

    def size(self, object_id: str) -> int | None:
        """Return the size of an object without reading it; `None` if it is missing or damaged."""
        head = self._asked(self._sizes, object_id)
        return int(head[2]) if len(head) == 3 else None

    def commit(self, object_id: str) -> GitCommit | None:
        """Return a commit; `None` if it is missing. Raises `ImportRefused` if it is not a commit."""
        data = self._read(object_id, b"commit")
        return None if data is None else _parsed_commit(object_id, data)

    def tree(self, object_id: str) -> dict[bytes, TreeEntry]:
        """Return the entries of a tree by name."""
        data = self._read(object_id, b"tree")
        if data is None:
            raise ImportRefused(self._damaged(object_id, "is missing"))
        return dict(self._entries(object_id, data))

    def blob(self, object_id: str) -> bytes | None:
        """Return the contents of a file; `None` if they are missing."""
        return self._read(object_id, b"blob")

    def peeled(self, refs: Mapping[str, str]) -> dict[str, str]:
        """Return the commits that refs point to, through tags; refs to anything else are left out."""
        found: dict[str, str] = {}
        for name, object_id in refs.items():
            head = self._asked(self._sizes, f"{object_id}^{{commit}}")
            if len(head) == 3 and head[1] == b"commit":
                found[name] = head[0].decode()
        return found

    def _entries(self, object_id: str, data: bytes) -> Iterator[tuple[bytes, TreeEntry]]:
        width = len(object_id) // 2
        place = 0
        while place < len(data):
            blank, end = data.find(b" ", place), data.find(b"\0", place)
            if not place < blank < end or end + 1 + width > len(data):
                raise ImportRefused(self._damaged(object_id, "is not a tree"))
            mode = data[place:blank]
            if not re.fullmatch(rb"[0-7]{5,6}", mode):
                raise ImportRefused(self._damaged(object_id, "is not a tree"))
            place = end + 1 + width
            yield data[blank + 1 : end], TreeEntry(int(mode, 8), data[end + 1 : place].hex())

    def _read(self, object_id: str, kind: bytes) -> bytes | None:
        size = self.size(object_id)
        if size is None:
            return None
        if kind != b"blob" and size > MOST:
            raise ImportRefused(self._damaged(object_id, f"has {size} bytes, more than any real commit or tree"))
        head = self._asked(self._contents, object_id)
        if len(head) != 3:
            return None
        data = _exactly(self._contents.out, int(head[2]) + 1)
        if data is None:
            raise ImportRefused(self._damaged(object_id, "cannot be read"))
        if head[1] != kind:
            raise ImportRefused(self._damaged(object_id, f"is a {head[1].decode('ascii', 'replace')}"))
        return data[:-1]

    def _asked(self, process: _CatFile, name: str) -> list[bytes]:
        """Ask for an object; return the three words of the answer if it exists."""
        answer = process.ask(name)
        if answer is None:
            raise ImportRefused(self._damaged(name, "cannot be read"))
        return answer

    def _damaged(self, object_id: str, what: str) -> str:
        return f"cannot import {self.git_dir!r}: its object {object_id[:80]} {what}; check it with 'git fsck'"


def _exactly(stream: IO[bytes], size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        piece = stream.read(min(size, _PIECE))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _parsed_commit(object_id: str, data: bytes) -> GitCommit:
    head, _, message = data.partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        fields.setdefault(name, []).append(value)
    tree, parents = fields.get(b"tree", [b""])[0].decode("ascii", "replace"), fields.get(b"parent", [])
    author, committer = fields.get(b"author", [b""])[0], fields.get(b"committer", [b""])[0]
    names = tuple(one.decode("ascii", "replace") for one in parents)
    if not all(len(one) == len(object_id) and re.fullmatch("[0-9a-f]+", one) for one in (tree, *names)):
        raise ImportRefused(f"cannot import the commit {object_id}: it is damaged; check it with 'git fsck'")
    plain = b"".join(
        (b"tree %s\n" % tree.encode(), *(b"parent %s\n" % one for one in parents))
    ) + b"author %s\ncommitter %s\n\n%s" % (author, committer, message)
    return GitCommit(object_id, tree, names, author, committer, message, plain == data)
