"""A stream of objects into a repository: `git fast-import` into a quarantine.

The quarantine is a bare repository with minimal configuration that borrows the objects of the target repository.
Anything that a broken stream leaves is in the quarantine and is removed with it; on success its packs are moved to
the target. Many streams may run concurrently.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from typing import NoReturn, cast

from weakfs.platforms import fcntl
from weakfs.session.blobs.sparse import PIECE
from weakfs.session.files.atomic_write import sync_folder, write_all
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.git.command import failure, start, writing
from weakfs.snapshots.git.private_git_dir import SUFFIX, check_objects
from weakfs.snapshots.store import atomic_files as disk

CONFIGURATION = b"""\
[core]
\trepositoryformatversion = 1
\tbare = true
\tfsync = none
\tcompression = 1
\tbigFileThreshold = 4m
[extensions]
\tobjectFormat = sha256
"""
AUTHOR = b"weakfs <weakfs@localhost>"
LAST_SECOND = 1 << 40
ZEROS = bytes(PIECE)


class FastImport:
    """A stream of blobs and commits. None of them is stored before `finish`, which stores all of them."""

    def __init__(self, objects: str, folder: str, before_writing: Callable[[], object] = lambda: None) -> None:
        """Open a stream into the object directory `objects`; `folder`, on the same disk, holds quarantines."""
        self._objects = objects
        self._before_writing = before_writing
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._process: subprocess.Popen[bytes] | None = None
        with writing(objects):
            self._lock, self._lock_path = disk.open_temporary(folder)
            self.git_dir = self._lock_path + SUFFIX
            self._begin()

    def _begin(self) -> None:
        try:
            check_objects(os.path.dirname(self._objects))
            _make_quarantine(self.git_dir, self._objects)
            self._process = start(
                self.git_dir,
                *("-c", "fastimport.unpackLimit=0"),
                *("fast-import", "--quiet", "--done", "--date-format=raw"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # The quarantine is locked as long as either process is alive.
                pass_fds=(self._lock,),
            )
        except BaseException:
            self.abandon()
            raise

    def blob(self, content: bytes) -> None:
        """Add a blob."""
        self._send(b"blob\ndata %d\n" % len(content))
        self._send(content)
        self._send(b"\n")

    def blob_of_pieces(self, size: int, pieces: Iterable[bytes]) -> None:
        """Add a blob of `size` bytes. If reading a piece fails, zeros fill the rest, and nothing refers to it."""
        self._send(b"blob\ndata %d\n" % size)
        left = size
        try:
            for piece in pieces:
                left -= len(piece)
                self._send(piece)
        finally:
            while left > 0:
                self._send(ZEROS[:left])
                left -= len(ZEROS)
            self._send(b"\n")

    def commit(self, ref: str, message: str, at: int, base: str | None, changes: Iterable[bytes]) -> tuple[str, str]:
        """Create a commit without a parent; return its id and the id of its tree.

        `changes` are fast-import lines that lead from the tree `base`, or from an empty tree, to the new one. `at` is
        in nanoseconds.
        """
        text = message.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0")
        seconds = min(max(at // 1_000_000_000, 0), LAST_SECOND)
        self._send(b"commit %s\nmark :1\ncommitter %s %d +0000\n" % (ref.encode(), AUTHOR, seconds))
        self._send(b"data %d\n%s\n" % (len(text), text))
        if base is not None:
            self._send(b'M 040000 %s ""\n' % base.encode())
        for line in changes:
            self._send(line)
        self._send(b'\nget-mark :1\nls :1 ""\n')
        self._flush()
        commit, tree = self._answer(), self._answer().split()
        return commit, tree[2].rstrip("\t") if tree[0] != "missing" else ""

    def finish(self) -> None:
        """Sync the added objects, and move them to the target repository."""
        self._send(b"done\n")
        self._flush()
        process = cast("subprocess.Popen[bytes]", self._process)
        if process.wait():
            self._fail()
        with writing(self._objects):
            self._move()
        self.abandon()

    def _move(self) -> None:
        folder = os.path.join(self._objects, "pack")
        made = os.path.join(self.git_dir, "objects", "pack")
        # git finds a pack by its index, so the index is moved last.
        for name in sorted(os.listdir(made), key=lambda name: name.endswith(".idx")):
            disk.sync_file(os.path.join(made, name))
            os.rename(os.path.join(made, name), os.path.join(folder, name))
        sync_folder(folder)

    def abandon(self) -> None:
        """End the stream, and remove everything that is still in the quarantine."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            process.wait()
        if self._lock >= 0:
            shutil.rmtree(self.git_dir, ignore_errors=True)
            disk.remove(self._lock_path)
            os.close(self._lock)
            self._lock = -1

    def _send(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_size += len(data)
        if self._waiting_size >= PIECE:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        # This may also interrupt filling the rest of an interrupted blob; the whole stream is discarded then.
        check_interrupted()
        self._before_writing()
        process = cast("subprocess.Popen[bytes]", self._process)
        assert process.stdin is not None
        try:
            write_all(process.stdin.fileno(), data)
        except BrokenPipeError:
            process.wait()
            self._fail()

    def _answer(self) -> str:
        process = cast("subprocess.Popen[bytes]", self._process)
        assert process.stdout is not None
        # The pipe is unbuffered; only two short lines are ever read.
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            process.wait()
            self._fail()
        return line.decode().rstrip("\n")

    def _fail(self) -> NoReturn:
        process = cast("subprocess.Popen[bytes]", self._process)
        errors = process.stderr.read() if process.stderr is not None else b""
        raise failure(self._objects, "fast-import", errors.split(b"\nfast-import: dumping")[0])


def remove_leftovers(folder: str) -> None:
    """Remove the quarantines of streams whose process has ended."""
    for name in disk.names_in(folder):
        if name.endswith(SUFFIX) and not _is_locked(os.path.join(folder, name[: -len(SUFFIX)])):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    disk.remove_leftovers(folder)


def _is_locked(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _make_quarantine(git_dir: str, objects: str) -> None:
    own = os.path.join(git_dir, "objects")
    for folder in (git_dir, own, os.path.join(own, "info"), os.path.join(own, "pack"), os.path.join(git_dir, "refs")):
        os.mkdir(folder, 0o700)
    for name, content in (
        ("HEAD", b"ref: refs/heads/main\n"),
        ("config", CONFIGURATION),
        # Relative, because the absolute path may contain any character.
        ("objects/info/alternates", os.fsencode(os.path.relpath(objects, own)) + b"\n"),
    ):
        with open(os.path.join(git_dir, name), "xb") as stream:
            stream.write(content)
