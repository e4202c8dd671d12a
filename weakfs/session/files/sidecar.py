"""The contents of a session that lie beside its file, one file each: `NAME.blobs/ab/cdef...`, named by digest.

A blob is there whole or not at all, and before the session file that needs it; it goes after the one that does
not. So whichever session file a crash leaves, its blobs are there.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256

from weakfs.platforms import (
    CREATE,
    HAS_DIRECTORY_DESCRIPTORS,
    HAS_FILE_LOCKS,
    HAS_PERMISSION_BITS,
    O_CLOEXEC,
    READ,
    READ_FOLLOWING,
    fcntl,
)
from weakfs.session.blobs.blob import LARGE, FileSource, Source, Stored, checked, content_written
from weakfs.session.blobs.file_copy import copy_range
from weakfs.session.blobs.sparse import read_pieces, write_pieces
from weakfs.session.errors import MissingBlob
from weakfs.session.files.atomic_write import sync_filesystem, sync_folder, unsaved

logger = logging.getLogger("weakfs.session")

# Contents are written here and get their names when they are on the disk. The folder's name is fixed, so that what a
# killed process leaves is taken over by the next.
NEW = ".new"

# More files than this are made durable by one call for the whole filesystem: 50,000 calls took 54 s.
FEW = 16

_FOLDER = re.compile("[0-9a-f]{2}")
_REST = re.compile("[0-9a-f]{62}")


class BlobFolder:
    """The folder beside one session file: a source of its contents, and where they are put."""

    def __init__(self, file: str) -> None:
        folder, name = os.path.split(os.path.realpath(file))
        # The name of a file may be as long as the filesystem allows; the folder's is longer.
        short = name if len(os.fsencode(name)) < 200 else sha256(os.fsencode(name)).hexdigest()
        self._file = os.path.join(folder, name)
        self.path = os.path.join(folder, f"{short}.blobs")

    def __repr__(self) -> str:
        return f"<BlobFolder {self.path!r}>"

    def read(self, digest: bytes) -> bytes:
        """Give a content; `MissingBlob` that names digest and file if it is not there or is another."""
        path = self.place(digest)
        try:
            with open(path, "rb") as stream:
                content = stream.read()
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(digest) from None
        return checked(digest, content, path)

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Give a content piece by piece; `MissingBlob` after the last one if it was damaged."""
        path = self.place(content.digest)
        try:
            descriptor = os.open(path, READ_FOLLOWING)
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(content.digest) from None
        try:
            found = sha256(b"blob %d\0" % content.size)
            for piece in read_pieces(descriptor, 0, os.fstat(descriptor).st_size):
                found.update(piece)
                yield piece
        finally:
            os.close(descriptor)
        if found.digest() != content.digest:
            raise MissingBlob(
                f"the content {content.digest.hex()} was damaged or changed; put it back from a copy",
                where=path,
                digest=content.digest,
            )

    def open_content(self, digest: bytes) -> tuple[int, int] | None:
        """Open the file of a content, for the system to copy it; `None` if there is none."""
        try:
            return os.open(self.place(digest), READ), 0
        except OSError:
            return None

    def read_range(self, digest: bytes, offset: int, size: int) -> bytes:
        """Give a part of a content, such as an archive; unchecked, and less where it ends."""
        try:
            descriptor = os.open(self.place(digest), READ_FOLLOWING)
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(digest) from None
        try:
            return b"".join(read_pieces(descriptor, offset, size))
        finally:
            os.close(descriptor)

    def _missing(self, digest: bytes) -> MissingBlob:
        return MissingBlob(
            f"the content {digest.hex()} is missing; put this file back from a copy, or keep the folder "
            f"{os.path.basename(self.path)!r} together with the session file",
            where=self.place(digest),
            digest=digest,
        )

    def is_source_of(self, content: Stored) -> bool:
        """Tell whether a content is read from here."""
        return isinstance(content.source, BlobFolder) and content.source.path == self.path

    def missing(self, contents: Iterable[Stored]) -> tuple[Stored, ...]:
        """Give those contents that are not here. Looks at names, and opens nothing."""
        there = {digest for digest, _ in self._all()}
        return tuple(content for content in contents if content.digest not in there)

    def has(self, digest: bytes) -> bool:
        """Tell whether a content is here, by its name."""
        return os.path.isfile(self.place(digest))

    @contextmanager
    def locked(self, *, make: bool) -> Generator[bool]:
        """Hold the folder for oneself; gives false where there is none and it is not to be made.

        Without file locks, as on Windows, nobody is kept out: then one process at a time may save to a file.
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
            # Nothing was written through it: what closing it says concerns nobody.
            with suppress(OSError):
                os.close(descriptor)

    def add(
        self, wanted: Mapping[bytes, Iterable[Stored]], others: Sequence[Source] = ()
    ) -> tuple[list[bytes], list[bytes]]:
        """Put contents here that are not, one at a time, and return their digests. All are on the disk at the end.

        What was put is taken back if one of them fails. A content that none of its sources nor `others` has is left
        out, named in the log and returned in a second list: saving loses nothing more, and a session that could not be
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
        """Remove the blobs that are not needed, and the folders that are then empty; other files stay."""
        self.remove(digest for digest, _ in list(self._all()) if digest not in needed)

    def remove(self, digests: Iterable[bytes]) -> None:
        """Remove blobs. What cannot be removed is only in the way: it is logged, and tried again by the next save."""
        for digest in digests:
            self._remove_file(self.place(digest))
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
                    raise OSError(errno.ENOTDIR, f"the place of its contents, {self.path!r}, is taken") from None
                if make:
                    continue
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Whoever held it may have removed it.
                if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    return descriptor
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _sync(self, added: Iterable[bytes]) -> None:
        for folder in sorted({os.path.dirname(self.place(digest)) for digest in added}):
            sync_folder(folder)
        sync_folder(self.path)
        sync_folder(os.path.dirname(self.path))

    def _write_all(self, wanted: Mapping[bytes, Iterable[Stored]], others: Sequence[Source]) -> list[bytes]:
        """Write contents, one at a time, so that all are on the disk at the end, and none has its name; give which."""
        self._clear_new()
        os.mkdir(os.path.join(self.path, NEW), 0o700)
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
        os.replace(self._new_place(digest), place)

    def _new_place(self, digest: bytes) -> str:
        return os.path.join(self.path, NEW, digest.hex())

    def _clear_new(self) -> None:
        folder = os.path.join(self.path, NEW)
        try:
            names = os.listdir(folder)
        except OSError:
            return
        for name in names:
            self._remove_file(os.path.join(folder, name))
        with suppress(OSError):
            os.rmdir(folder)

    def _mode(self) -> int | None:
        """Give the permission bits of the session file, which hold for its contents too; `None` if it is new."""
        try:
            return os.stat(self._file).st_mode & 0o777
        except FileNotFoundError:
            return None

    def _folder_mode(self) -> int:
        mode = self._mode()
        # Whoever may read may enter; its owner always may.
        return 0o777 if mode is None else mode | (mode & 0o444) >> 2 | 0o700

    def place(self, digest: bytes) -> str:
        """Give the path of a content's file."""
        name = digest.hex()
        return os.path.join(self.path, name[:2], name[2:])

    def _folders(self) -> list[str]:
        try:
            return [os.path.join(self.path, name) for name in sorted(os.listdir(self.path)) if _FOLDER.fullmatch(name)]
        except OSError:
            # What cannot be looked into holds nothing that could be read.
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
            logger.warning("a content that is needed no more cannot be removed: %s", error)


def _is_copied(target: int, candidates: Sequence[Stored], others: Sequence[Source]) -> bool:
    """Copy a large content from the first file that has it; false if none does, or what it has is damaged."""
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
        # Its checksum is looked at in the copy, which is still in memory.
        found = sha256(b"blob %d\0" % content.size)
        for piece in read_pieces(target, 0, copied):
            found.update(piece)
        if copied == content.size and found.digest() == content.digest:
            return True
    return False


def _write_over(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write a content to a file that may hold a part of a damaged copy of it."""
    os.ftruncate(descriptor, 0)
    write_pieces(descriptor, pieces)


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except (FileNotFoundError, NotADirectoryError):
        return -1
