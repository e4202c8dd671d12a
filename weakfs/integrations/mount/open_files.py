"""Files that programs have open: what they write is buffered here until they close or sync the file."""

from __future__ import annotations

from collections.abc import Callable
from errno import EFBIG, ENOENT, ENOSPC
from itertools import count

from attrs import define, field

from weakfs.errors import fault
from weakfs.filesystem import Filesystem
from weakfs.filesystem.paths import is_within
from weakfs.session import MergeConflict

# The maximum size in bytes of a file that is being written, because it is in memory, and of all such files together;
# used if there is no other limit.
LARGEST = 1 << 30


@define(eq=False)
class OpenFile:
    """A file that programs have open, however many times.

    `path` is `None` once the file is deleted. `base` is the content as last stored; `written` is the content with later
    writes, `None` if there were none. If both have the same length, `start` and `stop` enclose what differs.
    """

    path: str | None
    handles: int = 0
    written: bytearray | None = None
    base: bytes = b""
    start: int = 0
    stop: int = 0
    modified_ns: int = 0
    # The permission bits of a deleted file.
    mode: int = 0o600
    # Whether a program got the error that this could not be stored.
    is_refused: bool = False

    def mark(self, start: int, stop: int) -> None:
        """Note that bytes in this range were written."""
        self.start, self.stop = min(self.start, start), max(self.stop, stop)

    @property
    def size(self) -> int | None:
        """The size with unstored writes; `None` if there are none."""
        return None if self.written is None else len(self.written)

    def difference(self) -> tuple[int, int, bytes] | None:
        """Return the writes as one replacement in the base; `None` if nothing differs."""
        assert self.written is not None
        if len(self.written) == len(self.base):
            start, stop = self.start, self.stop
            end = stop
        else:
            start = min(self.start, len(self.written), len(self.base))
            stop, end = len(self.base), len(self.written)
        content = bytes(memoryview(self.written)[start:end])
        return None if content == self.base[start:stop] else (start, stop, content)


@define(eq=False)
class OpenFiles:
    """The open files of a mount, by handle and by path."""

    files: Filesystem
    now: Callable[[], int]
    _by_handle: dict[int, OpenFile] = field(factory=dict[int, OpenFile])
    _by_path: dict[str, OpenFile] = field(factory=dict[str, OpenFile])
    # Files that were deleted while open, by the names that FUSE gave them.
    _deleted: dict[str, OpenFile] = field(factory=dict[str, OpenFile])
    _numbers: count[int] = field(factory=lambda: count(1))

    def open(self, path: str) -> int:
        """Return a handle of the file at a canonical path."""
        file = self._by_path.setdefault(path, OpenFile(path))
        file.handles += 1
        handle = next(self._numbers)
        self._by_handle[handle] = file
        return handle

    def close(self, handle: int) -> None:
        """Forget a handle, and the file with its last handle. Its writes are stored already."""
        file = self._by_handle.pop(handle)
        file.handles -= 1
        if not file.handles and file.path is not None and self._by_path.get(file.path) is file:
            del self._by_path[file.path]

    def at(self, path: str | None, handle: int | None) -> OpenFile | None:
        """Return the file of a handle or, without one, the file that is open at a path; `None` if there is none."""
        if handle is not None and (file := self._by_handle.get(handle)) is not None:
            return file
        return None if path is None else self._by_path.get(path) or self._deleted.get(path)

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """Return bytes, including unstored writes."""
        file = self._by_handle[handle]
        if file.written is not None:
            return bytes(memoryview(file.written)[offset : offset + size])
        return self.files.read_bytes(_path_of(file), offset=offset, limit=size).content

    def write(self, handle: int, data: bytes, offset: int) -> None:
        """Write bytes; a gap before them reads as zeros."""
        file = self._by_handle[handle]
        written = self._writable(file, offset + len(data))
        if offset > len(written):
            file.mark(len(written), offset)
            written.extend(bytes(offset - len(written)))
        written[offset : offset + len(data)] = data
        file.mark(offset, offset + len(data))

    def truncate(self, file: OpenFile, length: int) -> None:
        """Truncate the file, or extend it with zeros."""
        written = self._writable(file, length, keeps_content=length > 0)
        file.mark(min(length, len(written)), max(length, len(written)))
        if length < len(written):
            del written[length:]
        else:
            written.extend(bytes(length - len(written)))

    def allocate(self, handle: int, end: int) -> None:
        """Extend a file with zeros to a size, unless it is larger."""
        file = self._by_handle[handle]
        written = self._writable(file, end)
        if end > len(written):
            self.truncate(file, end)

    def store(self, file: OpenFile) -> None:
        """Store the writes as one event. If that fails, nothing is lost and it can be tried again."""
        if file.written is None or file.path is None:
            return
        file.is_refused = True
        try:
            self._store(file.path, file, file.written)
        except MergeConflict:
            # Another process changed the file first. The session has that now, and the program's write is the last.
            self._store(file.path, file, file.written)
        file.written, file.is_refused = None, False

    def _store(self, path: str, file: OpenFile, written: bytearray) -> None:
        difference = file.difference()
        if not self._holds(path, file.base):
            # The file was changed or reverted while the program had it open; the program's write wins, as it is the
            # last.
            self.files.write_bytes(path, bytes(written), create_parents=False)
        elif difference is not None:
            start, _, content = difference
            if start == len(file.base):
                self.files.write_bytes(path, content, mode="append")
            elif start == 0 and len(content) == len(written):
                self.files.write_bytes(path, content)
            else:
                self.files.splice(path, [difference])

    def store_all(self) -> None:
        """Store the writes to all files, except those whose failure was already reported to a program."""
        for file in list(self._by_path.values()):
            if not file.is_refused:
                self.store(file)

    def discard(self) -> None:
        """Discard writes that were not stored."""
        for file in self._by_path.values():
            file.written = None

    def hold(self, path: str) -> None:
        """Keep the content of a file that is about to be deleted, for programs that have it open."""
        file = self._by_path.get(path)
        if file is not None:
            file.mode = self.files.stat(path).mode
            self._writable(file, 0)

    def deleted(self, path: str, name: str) -> None:
        """Handle the deletion of a held file: programs that have it open keep using it under another name."""
        file = self._by_path.pop(path)
        file.path = None
        self._deleted[name] = file

    def forget(self, name: str) -> bool:
        """Forget a deleted file once no program has it open."""
        return self._deleted.pop(name, None) is not None

    def moved(self, source: str, destination: str) -> None:
        """Update the paths after a move of a file or a directory."""
        for known in (self._by_path, self._deleted):
            for path in [path for path in known if is_within(path, source)]:
                file = known.pop(path)
                now = destination + path[len(source) :]
                known[now] = file
                if file.path is not None:
                    file.path = now

    def _writable(self, file: OpenFile, size: int, *, keeps_content: bool = True) -> bytearray:
        """Return the content of a file for a write after which it has at least this size.

        Without `keeps_content`, the content may be empty instead, if it is too large.
        """
        self._check_room(file, size)
        if file.written is None:
            path, base = _path_of(file), b""
            known = self.files.stat(path).size_bytes
            if known <= self._largest or keeps_content:
                self._check_room(file, max(size, known))
                base = self.files.read_bytes(path).content
            file.base, file.written = base, bytearray(base)
            file.start, file.stop = len(base), 0
        file.modified_ns, file.is_refused = self.now(), False
        return file.written

    @property
    def _largest(self) -> int:
        limit = self.files.limits.max_file_size
        return LARGEST if limit is None else limit

    def _check_room(self, file: OpenFile, size: int) -> None:
        """Raise `OSError` if a file of this size may not be written, or not together with other unstored writes."""
        if size > self._largest:
            raise fault(OSError, EFBIG, f"cannot write {size} bytes to {file.path!r}: {self._largest} are allowed")
        quota = self.files.limits.max_total_size
        most = max(LARGEST, self._largest) if quota is None else quota
        others = (one for known in (self._by_path, self._deleted) for one in known.values() if one is not file)
        held = sum(len(one.written) for one in others if one.written is not None)
        if held + size > most:
            raise fault(
                OSError,
                ENOSPC,
                f"cannot write {size} bytes to {file.path!r}: other files have {held} bytes that are not stored yet, "
                f"and {most} are allowed; close or sync files",
            )

    def _holds(self, path: str, content: bytes) -> bool:
        try:
            return self.files.read_bytes(path).content == content
        except FileNotFoundError:
            return False


def _path_of(file: OpenFile) -> str:
    if file.path is None:
        raise fault(OSError, ENOENT, "cannot use the file: it was deleted")
    return file.path
