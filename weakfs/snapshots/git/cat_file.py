"""Reading contents from a repository: one shared `git cat-file` for small contents, one each for large ones."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Iterator
from threading import Lock
from typing import IO, cast

from weakfs.session import MissingBlob
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.sparse import PIECE
from weakfs.snapshots.git.command import start
from weakfs.snapshots.git.private_git_dir import READER, check_objects

# Larger contents are read in pieces.
LARGE = 4 * PIECE


class GitReader:
    """Reader of contents by object id. Its git process lives as long as this object."""

    def __init__(self, git_dir: str) -> None:
        self._git_dir = git_dir
        self._lock = Lock()
        self._batch: _Batch | None = None

    def read(self, digest: bytes) -> bytes:
        """Return a blob; raise `MissingBlob` if it does not exist."""
        with self._lock:
            for is_last in (False, True):
                # After a fork the process belongs to the parent.
                if self._batch is None or self._batch.owner != os.getpid():
                    self._batch = _Batch(self._git_dir)
                try:
                    return self._batch.read(digest)
                except _Ended:
                    self._batch = None
                    if is_last:
                        break
                except MissingBlob:
                    raise
                except BaseException:
                    # Interrupted in the middle of a reply: the next read would return the wrong content.
                    self._batch = None
                    raise
        raise _missing(self._git_dir, digest, "git cannot read it; check the repository with 'git fsck'")

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Yield a blob in pieces."""
        if content.size <= LARGE:
            yield self.read(content.digest)
            return
        process = start_reading(self._git_dir, "blob", content.digest.hex())
        out = cast("IO[bytes]", process.stdout)
        left = content.size
        try:
            while piece := out.read(min(PIECE, left)):
                left -= len(piece)
                yield piece
            if left:
                raise _missing(self._git_dir, content.digest, "it does not exist, or is damaged")
        finally:
            process.kill()
            out.close()
            process.wait()


def start_reading(git_dir: str, *arguments: str, stdin: int | None = None) -> subprocess.Popen[bytes]:
    """Start `git cat-file` without the configuration of the repository."""
    check_objects(git_dir)
    objects = os.path.join(git_dir, "objects")
    return start(READER, "cat-file", *arguments, stdin=stdin, stdout=subprocess.PIPE, objects=objects)


class _Ended(Exception):
    """Raised if the process has ended."""


class _Batch:
    def __init__(self, git_dir: str) -> None:
        self.owner = os.getpid()
        self._git_dir = git_dir
        process = start_reading(git_dir, "--batch", stdin=subprocess.PIPE)
        self._in = cast("IO[bytes]", process.stdin)
        self._out = os.fdopen(os.dup(cast("IO[bytes]", process.stdout).fileno()), "rb", buffering=1 << 16)
        weakref.finalize(self, _stop, process, self._out, self.owner)

    def read(self, digest: bytes) -> bytes:
        try:
            self._in.write(digest.hex().encode() + b"\n")
        except BrokenPipeError:
            raise _Ended from None
        head = self._out.readline().split()
        if len(head) == 2 and head[1] == b"missing":
            cause = "it was never stored, or the snapshots that need it were dropped and the store compacted"
            raise _missing(self._git_dir, digest, cause)
        if len(head) != 3:
            raise _Ended
        size = int(head[2])
        content = self._out.read(size + 1)
        if len(content) != size + 1:
            raise _Ended
        return content[:-1]


def _stop(process: subprocess.Popen[bytes], out: IO[bytes], owner: int) -> None:
    out.close()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    if os.getpid() == owner:
        process.kill()
        process.wait()


def _missing(git_dir: str, digest: bytes, cause: str) -> MissingBlob:
    return MissingBlob(f"the content {digest.hex()} cannot be read: {cause}", where=git_dir, digest=digest)
