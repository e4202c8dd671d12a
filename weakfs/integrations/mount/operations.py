"""The kernel's operations on a mount, performed by calls of a filesystem."""

from __future__ import annotations

import os
import re
import stat as modes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from errno import EEXIST, EINVAL, EIO, EISDIR, ENOMEM, ENOTDIR, ENOTSUP, EPERM
from functools import wraps
from itertools import count
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

import mfusepy
from attrs import define, field

from weakfs.backends import InMemoryFilesystem
from weakfs.errors import WeakfsError, fault
from weakfs.filesystem import FileStat, Filesystem
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.integrations.mount.open_files import OpenFile, OpenFiles
from weakfs.reducers.events import EntryPut
from weakfs.reducers.timestamps import clamped
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import DIRECTORY_MODE, FILE_MODE, MODIFIED_AT
from weakfs.reducers.tree.node import FileTree, tree_of

P = ParamSpec("P")
R = TypeVar("R")

# The nanoseconds that mean "now" and "unchanged" to utimensat(2), with 0 seconds.
UTIME_NOW = 0x3FFFFFFF
UTIME_OMIT = 0x3FFFFFFE

RENAME_NOREPLACE = 1

# The only mode of fallocate(2) besides 0 that does not change what programs read.
FALLOC_FL_KEEP_SIZE = 1

# FUSE renames a deleted file that is still open to such a name, and deletes it when it is closed.
HIDDEN = re.compile(r".*/\.fuse_hidden[0-9a-f]{16}", re.DOTALL)

BLOCK = 4096
# The totals that `statvfs` shows if there is no limit, in blocks and in entries.
PLENTY = 1 << 30


def _operation(perform: Callable[Concatenate[Operations, P], R]) -> Callable[Concatenate[Operations, P], R]:
    """Perform one operation at a time, as part of the current call, and turn any error into an error number."""

    def performed(self: Operations, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.one_at_a_time:
            try:
                if self.is_closed:
                    raise OSError(EIO, "the mount has ended")
                if self.context is None:
                    return perform(self, *args, **kwargs)
                return self.context.run(perform, self, *args, **kwargs)
            except OSError as error:
                raise error if error.errno else OSError(EIO, str(error)) from error
            except (ValueError, TypeError) as error:
                raise OSError(EINVAL, str(error)) from error
            except MemoryError as error:
                raise OSError(ENOMEM, str(error)) from error
            except WeakfsError as error:
                raise OSError(EIO, str(error)) from error

    return wraps(perform)(performed)


@define(eq=False)
class Operations(mfusepy.Operations):  # type: ignore[misc,unused-ignore]  # mfusepy has no types
    """Operations on `files` with the kernel's paths. `context` is the context of the call to which they belong."""

    files: Filesystem
    on_mounted: Callable[[], None]
    one_at_a_time: AbstractContextManager[object] = field(factory=RLock)
    context: Context | None = None
    is_closed: bool = False
    open_files: OpenFiles = field(init=False)
    # Directories being listed, by handle.
    _directories: dict[int, str] = field(factory=dict[int, str], init=False)
    _directory_handles: count[int] = field(factory=count, init=False)

    # Times are in integer nanoseconds.
    use_ns = True

    def __attrs_post_init__(self) -> None:
        # The kernel's paths start at the mount, so none of them is a path on the host.
        self.files = by_canonical_paths(self.files)
        self.open_files = OpenFiles(self.files, self._now)

    def _now(self) -> int:
        files = self.files
        return files.now() if isinstance(files, InMemoryFilesystem) else 0

    def init(self, path: str) -> None:
        """Report that the files are mounted."""
        self.on_mounted()

    # Status

    @_operation
    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        file = self.open_files.at(_named(path), fh)
        if file is not None and file.path is None:
            return _attributes(modes.S_IFREG | file.mode, file.size or 0, file.modified_ns, links=0)
        found = self.files.stat(_named(path))
        attributes = _status(found)
        if file is not None and file.size is not None:
            attributes |= {"st_size": file.size, "st_mtime": file.modified_ns, "st_blocks": -(-file.size // 512)}
        return attributes

    @_operation
    def readlink(self, path: str) -> str:
        return _host_name(self.files.readlink(_named(path)))

    @_operation
    def opendir(self, path: str) -> int:
        name = _named(path)
        self.files.list(name)
        handle = next(self._directory_handles)
        self._directories[handle] = name
        return handle

    @_operation
    def releasedir(self, path: str, fh: int) -> int:
        del self._directories[fh]
        return 0

    @_operation
    def readdir(self, path: str, fh: int) -> list[Any]:
        entries = self.files.list(self._directories[fh])
        found = [
            (one.name, modes.S_IFDIR if one.is_directory else modes.S_IFREG if one.is_file else 0) for one in entries
        ]
        return [
            (".", modes.S_IFDIR, 0),
            ("..", modes.S_IFDIR, 0),
            *((_host_name(name), kind, 0) for name, kind in found),
        ]

    @_operation
    def statfs(self, path: str) -> dict[str, int]:
        tree = self.files.statistics()
        limits = self.files.limits
        free = PLENTY if limits.max_total_size is None else max(limits.max_total_size - tree.total_size, 0) // BLOCK
        used = -(-tree.total_size // BLOCK)
        nodes = tree.file_count + tree.directory_count
        left = PLENTY if limits.max_node_count is None else max(limits.max_node_count - nodes, 0)
        return {
            "f_bsize": BLOCK,
            "f_frsize": BLOCK,
            "f_blocks": used + free,
            "f_bfree": free,
            "f_bavail": free,
            "f_files": nodes + left,
            "f_ffree": left,
            "f_favail": left,
            "f_namemax": limits.max_segment_length or 255,
        }

    # Files

    @_operation
    def create(self, path: str, mode: int, fi: object = None) -> int:
        name = _named(path)
        self._make(name, mode)
        return self.open_files.open(name)

    @_operation
    def open(self, path: str, flags: int) -> int:
        name = _named(path)
        if not self.files.stat(name).is_file:
            raise fault(OSError, ENOTSUP, f"cannot open {name!r}: it is not a file")
        handle = self.open_files.open(name)
        if flags & os.O_TRUNC:
            try:
                self.open_files.truncate(self._file(handle), 0)
            except BaseException:
                self.open_files.close(handle)
                raise
        return handle

    @_operation
    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return self.open_files.read(fh, size, offset)

    @_operation
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self.open_files.write(fh, data, offset)
        return len(data)

    @_operation
    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        file = self.open_files.at(_named(path), fh)
        if file is not None:
            self.open_files.truncate(file, length)
            return 0
        handle = self.open_files.open(_named(path))
        try:
            self.open_files.truncate(self._file(handle), length)
            self.open_files.store(self._file(handle))
        finally:
            self.open_files.close(handle)
        return 0

    @_operation
    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> int:
        if mode & ~FALLOC_FL_KEEP_SIZE:
            raise fault(OSError, ENOTSUP, f"cannot punch holes in {path!r}, nor insert or remove ranges")
        if not mode:
            self.open_files.allocate(fh, offset + size)
        return 0

    @_operation
    def flush(self, path: str, fh: int) -> int:
        self.open_files.store(self._file(fh))
        return 0

    @_operation
    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self.open_files.store(self._file(fh))
        return 0

    @_operation
    def release(self, path: str, fh: int) -> int:
        try:
            # A memory mapping may have been written after the file was closed.
            self.open_files.store(self._file(fh))
        finally:
            self.open_files.close(fh)
        return 0

    # Entries

    @_operation
    def mkdir(self, path: str, mode: int) -> int:
        name = _named(path)
        with self._together():
            self.files.mkdir(name, parents=False, exist_ok=False)
            if mode & 0o7777 != DIRECTORY_MODE:
                self.files.chmod(name, mode & 0o7777)
        return 0

    @_operation
    def mknod(self, path: str, mode: int, dev: int) -> int:
        if not modes.S_ISREG(mode):
            raise fault(
                PermissionError, EPERM, f"cannot create {path!r}: only files, directories and links can be created"
            )
        self._make(_named(path), mode)
        return 0

    @_operation
    def unlink(self, path: str) -> int:
        name = _named(path)
        if self.open_files.forget(name):
            return 0
        if self.files.stat(name).is_directory:
            raise fault(IsADirectoryError, EISDIR, f"cannot unlink {name!r}: it is a directory")
        self.files.delete(name)
        return 0

    @_operation
    def rmdir(self, path: str) -> int:
        name = _named(path)
        if not self.files.stat(name).is_directory:
            raise fault(NotADirectoryError, ENOTDIR, f"cannot remove {name!r}: it is not a directory")
        self.files.delete(name)
        return 0

    @_operation
    def symlink(self, target: str, source: str) -> int:
        self.files.symlink(_named(source), _named(target))
        return 0

    @_operation
    def rename(self, old: str, new: str, flags: int = 0) -> int:
        source, destination = _named(old), _named(new)
        if HIDDEN.fullmatch(destination) and self.open_files.at(source, None) is not None:
            self.open_files.hold(source)
            self.files.delete(source)
            self.open_files.deleted(source, destination)
            return 0
        there = self._status_or_none(destination)
        if flags & ~RENAME_NOREPLACE:
            raise fault(OSError, EINVAL, f"cannot exchange {source!r} and {destination!r}")
        if flags and there is not None:
            raise fault(FileExistsError, EEXIST, f"cannot rename {source!r} to {destination!r}: the destination exists")
        if source == destination:
            return 0
        if there is not None and there.is_directory:
            if not self.files.stat(source).is_directory:
                raise fault(
                    IsADirectoryError, EISDIR, f"cannot rename {source!r} to {destination!r}: that is a directory"
                )
            with self._together():
                # The deletion is refused unless the directory is empty.
                self.files.delete(destination)
                self.files.move(source, destination)
        else:
            self.files.move(source, destination)
        self.open_files.moved(source, destination)
        return 0

    @_operation
    def chmod(self, path: str, mode: int, fh: int | None = None) -> int:
        file = self.open_files.at(_named(path), fh)
        if file is None or file.path is not None:
            self.files.chmod(_named(path), mode & 0o7777)
        else:
            file.mode = mode & 0o7777
        return 0

    @_operation
    def chown(self, path: str, uid: int, gid: int) -> int:
        if (uid, gid) not in {(one, other) for one in (-1, os.getuid()) for other in (-1, os.getgid())}:
            raise fault(PermissionError, EPERM, f"cannot change the owner of {path!r}: all files have one owner")
        return 0

    @_operation
    def utimens(self, path: str, times: tuple[int, int] | None = None, fh: int | None = None) -> int:
        file = self.open_files.at(_named(path), fh)
        modified = UTIME_NOW if times is None else times[1]
        if modified == UTIME_OMIT or (file is not None and file.path is None):
            return 0
        if file is not None:
            self.open_files.store(file)
        # Programs may set times that a session cannot hold.
        self._set_time(_named(path), clamped(modified))
        return 0

    def _make(self, path: str, mode: int) -> None:
        with self._together():
            self.files.write_bytes(path, b"", mode="create", create_parents=False)
            if mode & 0o7777 != FILE_MODE:
                self.files.chmod(path, mode & 0o7777)

    def _together(self) -> AbstractContextManager[object]:
        """Make several changes together, or none if one fails."""
        session = getattr(self.files, "session", None)
        return nullcontext() if session is None else session.transaction()

    def _set_time(self, path: str, modified: int) -> None:
        files = self.files
        if not isinstance(files, InMemoryFilesystem):
            return
        with files.lock():
            canonical, _, node = files._locate(path, follow=False)
            files._refuse_if_read_only("change the time of", canonical)
            # The time of a directory is the time of its last change, and cannot be set.
            if node is None or type(node) is FileTree:
                return
            at = files.now()
            leaf = list(node)
            leaf[MODIFIED_AT] = at if modified == UTIME_NOW else modified
            put: Any = tuple(leaf)
            files.apply(EntryPut(canonical, tree_of({canonical.rpartition("/")[2]: put}), at))
        files.notify_subscribers()

    def _file(self, handle: int) -> OpenFile:
        file = self.open_files.at(None, handle)
        if file is None:
            raise fault(OSError, EINVAL, f"there is no open file {handle}")
        return file

    def _status_or_none(self, path: str) -> FileStat | None:
        try:
            return self.files.stat(path)
        except FileNotFoundError:
            return None


def _named(path: str) -> str:
    """Return the canonical path for a path from the kernel, which contains no links and no dots."""
    return names.from_bytes(os.fsencode(path))


def _host_name(text: str) -> str:
    return os.fsdecode(names.to_bytes(text))


def _status(found: FileStat) -> dict[str, int]:
    if found.is_directory:
        return _attributes(modes.S_IFDIR | found.mode, 0, found.modified_ns, links=2)
    if found.target is not None:
        size = len(names.to_bytes(found.target))
        return _attributes(modes.S_IFLNK | 0o777, size, found.modified_ns)
    kind = modes.S_IFREG if found.is_file else modes.S_IFIFO
    return _attributes(kind | found.mode, found.size_bytes, found.modified_ns)


def _attributes(mode: int, size: int, modified_ns: int, *, links: int = 1) -> dict[str, int]:
    return {
        "st_mode": mode,
        "st_nlink": links,
        "st_size": size,
        "st_blocks": -(-size // 512),
        "st_uid": os.getuid(),
        "st_gid": os.getgid(),
        "st_mtime": modified_ns,
        "st_ctime": modified_ns,
        "st_atime": modified_ns,
    }
