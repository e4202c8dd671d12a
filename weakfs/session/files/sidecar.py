"""Sidecar blobs: contents stored next to a session file, one file per digest, as `NAME.blobs/ab/cdef...`.

A blob is written whole or not at all. It is written before the session file that needs it, and removed only once that
file has been replaced by one that does not need it: whichever session file a crash leaves, its blobs exist.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256

from weakfs.platforms import (
    CREATE,
    HAS_DIRECTORY_DESCRIPTORS,
    HAS_FILE_LOCKS,
    HAS_PERMISSION_BITS,
    NOT_A_REGULAR_FILE,
    O_CLOEXEC,
    lock_unless_replaced,
    open_regular_file,
)
from weakfs.session.blobs.blob import (
    LARGE,
    ContentSource,
    FileSource,
    Stored,
    checked,
    content_written,
    digest_of_pieces,
    verified_pieces,
)
from weakfs.session.blobs.file_copy import copy_range
from weakfs.session.blobs.sparse import read_pieces, write_pieces
from weakfs.session.errors import MissingBlob
from weakfs.session.files.atomic_write import sync_filesystem, sync_folder, unsaved

logger = logging.getLogger("weakfs.session")

# Blobs are written here and renamed once they are on the disk. The folder's name is fixed, so that the next writer
# reuses what a killed process left.
NEW = ".new"

# More files than this are made durable by one call for the whole filesystem: 50,000 calls took 54 s.
FEW = 16

_FOLDER = re.compile("[0-9a-f]{2}")
_REST = re.compile("[0-9a-f]{62}")


class BlobFolder:
    """The sidecar directory of one session file: the source and destination of its blobs."""

    def __init__(self, file: str) -> None:
        folder, name = os.path.split(os.path.realpath(file))
        # The file's name may be as long as the filesystem allows; the folder's is longer.
        short = name if len(os.fsencode(name)) < 200 else sha256(os.fsencode(name)).hexdigest()
        self._file = os.path.join(folder, name)
        self.path = os.path.join(folder, f"{short}.blobs")

    def __repr__(self) -> str:
        return f"<BlobFolder {self.path!r}>"

    def read(self, digest: bytes) -> bytes:
        """Return a blob. Raises `MissingBlob` naming its digest and file if it is missing or does not match."""
        with os.fdopen(self._open(digest), "rb") as stream:
            return checked(digest, stream.read(), self.place(digest))

    def read_content(self, content: Stored) -> bytes:
        """Return a blob as `read` does. A file of another size is not read."""
        return b"".join(self.read_pieces(content))

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Yield a blob piece by piece. Raises `MissingBlob` after the last piece if it was damaged."""
        descriptor = self._open(content.digest)
        try:
            size = os.fstat(descriptor).st_size
            if size != content.size:
                raise self._damaged(content)
            pieces = read_pieces(descriptor, 0, size)
            yield from verified_pieces(content.digest, size, pieces, lambda: self._damaged(content))
        finally:
            os.close(descriptor)

    def _damaged(self, content: Stored) -> MissingBlob:
        return MissingBlob(
            f"the content {content.digest.hex()} of {content.size} bytes was damaged or changed; put it back from "
            f"a copy",
            where=self.place(content.digest),
            digest=content.digest,
        )

    def open_content(self, digest: bytes) -> tuple[int, int] | None:
        """Open the file of a blob, for the operating system to copy it; return `None` if there is none."""
        try:
            return self._open(digest), 0
        except (MissingBlob, OSError):
            return None

    def read_range(self, digest: bytes, offset: int, size: int) -> bytes:
        """Return part of a blob, such as an archive.

        It is not verified, and is shorter than `size` at the end of the blob.
        """
        descriptor = self._open(digest)
        try:
            return b"".join(read_pieces(descriptor, offset, size))
        finally:
            os.close(descriptor)

    def _open(self, digest: bytes) -> int:
        """Open the file of a blob. Raises `MissingBlob` if there is no regular file with its name."""
        path = self.place(digest)
        try:
            return open_regular_file(path, follow=True)
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(digest) from None
        except OSError as error:
            if error.errno not in NOT_A_REGULAR_FILE:
                raise
            raise MissingBlob(
                f"the content {digest.hex()} is not in a regular file; put the file back from a copy",
                where=path,
                digest=digest,
            ) from None

    def _missing(self, digest: bytes) -> MissingBlob:
        return MissingBlob(
            f"the content {digest.hex()} is missing; put this file back from a copy, or keep the folder "
            f"{os.path.basename(self.path)!r} together with the session file",
            where=self.place(digest),
            digest=digest,
        )

    def is_source_of(self, content: Stored) -> bool:
        """Return whether a blob is read from this folder."""
        return isinstance(content.source, BlobFolder) and content.source.path == self.path

    def missing(self, contents: Iterable[Stored]) -> tuple[Stored, ...]:
        """Return the blobs that this folder does not hold. Only looks at names; opens no file."""
        present = {digest for digest, _ in self._all()}
        return tuple(content for content in contents if content.digest not in present)

    def has(self, digest: bytes) -> bool:
        """Return whether this folder holds a blob, judging by its name."""
        return os.path.isfile(self.place(digest))

    @contextmanager
    def locked(self, *, make: bool) -> Generator[bool]:
        """Lock the folder exclusively. Yield false if it does not exist and `make` is false.

        Without file locks, as on Windows, no process is kept out: then only one at a time may save to a file.
        """
        if not HAS_FILE_LOCKS:
            if make:
                os.makedirs(self.path, exist_ok=True)
            yield os.path.isdir(self.path)
            return
        try:
            descriptor = self._lock(make)
        except OSError as error:
            raise unsaved(self._file, error) from error
        if descriptor is None:
            yield False
            return
        try:
            yield True
        finally:
            # Nothing was written through this descriptor, so an error on close means nothing.
            with suppress(OSError):
                os.close(descriptor)

    def add(
        self, wanted: Mapping[bytes, Iterable[Stored]], others: Sequence[ContentSource] = ()
    ) -> tuple[list[bytes], list[bytes]]:
        """Write the blobs that are not here yet, one at a time, and return their digests. All are durable on return.

        If one of them fails, those already written are removed. A blob that neither its sources nor `others` have is
        skipped, logged and returned in a second list: saving loses nothing more, whereas a session that could not be
        saved would lose everything.
        """
        added: list[bytes] = []
        try:
            missing = [digest for digest in sorted(wanted) if self._lacks(digest, wanted[digest])]
            if missing:
                for digest in self._write_all({digest: wanted[digest] for digest in missing}, others):
                    added.append(digest)
                    self._give_name(digest)
                self._sync(added)
            self._clear_new()
        except BaseException as error:
            self._clear_new()
            self.remove(added)
            if isinstance(error, OSError):
                raise unsaved(self._file, error) from error
            raise
        return added, sorted(set(missing).difference(added))

    def _lacks(self, digest: bytes, candidates: Iterable[Stored]) -> bool:
        return _size(self.place(digest)) != next(iter(candidates)).size

    def keep_only(self, needed: Collection[bytes]) -> None:
        """Remove the blobs that are not needed and the folders that this leaves empty; other files stay.

        Nothing is removed behind a link: other session files may use what is there.
        """
        self.remove(digest for digest, _ in list(self._all()) if digest not in needed)

    def remove(self, digests: Iterable[bytes]) -> None:
        """Remove blobs. One that cannot be removed does no harm: it is logged, and the next save tries again."""
        if os.path.islink(self.path):
            return
        for digest in digests:
            place = self.place(digest)
            if not os.path.islink(os.path.dirname(place)):
                self._remove_file(place)
        for folder in (*self._folders(), self.path):
            with suppress(OSError):
                os.rmdir(folder)

    def _lock(self, make: bool) -> int | None:
        while True:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(self.path, self._folder_mode())
            elif not os.path.isdir(self.path):
                return None
            try:
                descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                if make and not os.path.isdir(self.path) and os.path.lexists(self.path):
                    raise OSError(
                        errno.ENOTDIR, f"a file has the name of the sidecar directory {self.path!r}; move it away"
                    ) from None
                if make:
                    continue
                return None
            if lock_unless_replaced(descriptor, self.path, follow=True):
                return descriptor

    def _sync(self, added: Iterable[bytes]) -> None:
        for folder in sorted({os.path.dirname(self.place(digest)) for digest in added}):
            sync_folder(folder)
        sync_folder(self.path)
        sync_folder(os.path.dirname(self.path))

    def _write_all(self, wanted: Mapping[bytes, Iterable[Stored]], others: Sequence[ContentSource]) -> list[bytes]:
        """Write blobs under temporary names, one at a time, all durable on return; return the digests written."""
        self._clear_new()
        new = os.path.join(self.path, NEW)
        try:
            os.mkdir(new, 0o700)
        except FileExistsError as error:
            raise OSError(error.errno, f"the directory {new!r} cannot be emptied; move it away") from error
        mode = self._mode()
        at_once = len(wanted) > FEW and HAS_DIRECTORY_DESCRIPTORS
        written: list[bytes] = []
        for digest, candidates in wanted.items():
            with self._new_file(self._new_place(digest), mode, sync=not at_once) as descriptor:
                own = tuple(candidates)
                is_whole = _is_copied(descriptor, own, others) or content_written(
                    digest, own, others, partial(_write_over, descriptor)
                )
            if is_whole:
                written.append(digest)
            else:
                os.unlink(self._new_place(digest))
        if at_once:
            sync_filesystem(self.path)
        return written

    @contextmanager
    def _new_file(self, path: str, mode: int | None, *, sync: bool) -> Generator[int]:
        descriptor = os.open(path, CREATE, 0o666)
        try:
            if mode is not None and HAS_PERMISSION_BITS:
                os.fchmod(descriptor, mode)
            yield descriptor
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _give_name(self, digest: bytes) -> None:
        place = self.place(digest)
        with suppress(FileExistsError):
            os.mkdir(os.path.dirname(place), self._folder_mode())
        try:
            os.replace(self._new_place(digest), place)
        except (IsADirectoryError, NotADirectoryError) as error:
            taken = place if os.path.isdir(place) else os.path.dirname(place)
            raise OSError(error.errno, f"something else has the name of {taken!r}; move it away") from error

    def _new_place(self, digest: bytes) -> str:
        return os.path.join(self.path, NEW, digest.hex())

    def _clear_new(self) -> None:
        folder = os.path.join(self.path, NEW)
        if not os.path.lexists(folder):
            return
        if os.path.islink(folder) or not os.path.isdir(folder):
            self._remove_file(folder)
            return
        for name in os.listdir(folder):
            self._remove_file(os.path.join(folder, name))
        with suppress(OSError):
            os.rmdir(folder)

    def _mode(self) -> int | None:
        """Return the permission bits of the session file, which its blobs share; `None` if it is new."""
        try:
            return os.stat(self._file).st_mode & 0o777
        except FileNotFoundError:
            return None

    def _folder_mode(self) -> int:
        mode = self._mode()
        # Everyone who may read may also enter; the owner always may.
        return 0o777 if mode is None else mode | (mode & 0o444) >> 2 | 0o700

    def place(self, digest: bytes) -> str:
        """Return the path of a blob's file."""
        name = digest.hex()
        return os.path.join(self.path, name[:2], name[2:])

    def _folders(self) -> list[str]:
        try:
            return [os.path.join(self.path, name) for name in sorted(os.listdir(self.path)) if _FOLDER.fullmatch(name)]
        except OSError:
            # If the folder cannot be listed, nothing in it can be read either.
            return []

    def _all(self) -> Iterator[tuple[bytes, str]]:
        for folder in self._folders():
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for name in sorted(names):
                if _REST.fullmatch(name):
                    yield bytes.fromhex(os.path.basename(folder) + name), os.path.join(folder, name)

    def _remove_file(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            logger.warning("cannot remove a blob that is no longer needed: %s", error)


def _is_copied(target: int, candidates: Sequence[Stored], others: Sequence[ContentSource]) -> bool:
    """Copy a large blob from the first file that has it. Return false if none does or its copy is damaged."""
    content = candidates[0]
    sources = [source for source in (*(one.source for one in candidates), *others) if isinstance(source, FileSource)]
    for source in sources if content.size > LARGE else ():
        opened = source.open_content(content.digest)
        if opened is None:
            continue
        descriptor, offset = opened
        try:
            copied = copy_range(descriptor, offset, content.size, target)
        finally:
            os.close(descriptor)
        # The checksum is computed from the copy, which is still in memory.
        if copied == content.size and digest_of_pieces(copied, read_pieces(target, 0, copied)) == content.digest:
            return True
    return False


def _write_over(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write a blob to a file that may hold part of a damaged copy of it."""
    os.ftruncate(descriptor, 0)
    write_pieces(descriptor, pieces)


def _size(path: str) -> int:
    """Return the size of a regular file, -1 if there is none."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1
