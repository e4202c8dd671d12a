"""`FolderStorage`: keys as files in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from struct import Struct
from threading import Lock
from typing import TypeVar
from zlib import crc32

from weakfs.platforms import fcntl
from weakfs.storage.engines.urls import folder_url
from weakfs.storage.errors import StorageError
from weakfs.storage.folder.errors import JournalDamaged, failure
from weakfs.storage.folder.files import Descriptor, read_all, remove
from weakfs.storage.folder.names import children, components, walk
from weakfs.storage.folder.store import Durability, require_file_locks
from weakfs.storage.folder.stream.root import Root
from weakfs.storage.keys import check_item, check_key
from weakfs.storage.storage import Versioned

SUFFIX = ".value"
MAGIC = b"weakfs\0V"
_HEADER = Struct("<8sI16s")
_PAGE = 256

T = TypeVar("T")


class FolderStorage:
    """A key-value engine over a folder of a local disk: each key is a file, replaced as a whole.

    With durability "power" a change waits for the disk. Needs flock(2): raises `StorageError` (ENOTSUP) on Windows.
    """

    atomic_batches = False

    def __init__(self, path: str | os.PathLike[str], durability: Durability = "process") -> None:
        self.path = os.path.abspath(os.fspath(path))
        require_file_locks(self.path)
        self._is_synced = durability == "power"
        self._root = Root(self.path, is_synced=self._is_synced)
        self._mutex = Lock()
        self._is_closed = False

    @property
    def url(self) -> str:
        """The URL of the folder, for `weakfs.storage.open`."""
        return folder_url(self.path)

    def get(self, key: str) -> bytes | None:
        """Return the value of a key, or `None` if the key is not set."""
        found = self.get_versioned(key)
        return found.value if found is not None else None

    def get_versioned(self, key: str) -> Versioned | None:
        """Return the value of a key with its version, or `None` if the key is not set.

        Raises `JournalDamaged`, a `StorageError`, if the file of the key is damaged.
        """
        self._check()
        parts = components(check_key(key), SUFFIX)
        with self._errors("read", key):
            try:
                folder = self._root.find(parts[:-1])
                data = read_all(parts[-1], folder) if folder is not None else None
            except FileNotFoundError:
                return None
        if data is None:
            return None
        path = os.path.join(self.path, *parts)
        if len(data) < _HEADER.size:
            raise JournalDamaged(path, len(data), None, "the value is cut off")
        magic, checksum, version = _HEADER.unpack_from(data)
        if magic != MAGIC or crc32(memoryview(data)[12:]) != checksum:
            raise JournalDamaged(path, 0, None, "the value does not match its checksum")
        return Versioned(data[_HEADER.size :], version.hex())

    def set(self, key: str, value: bytes) -> None:
        """Set a key, whether it was set before or not."""
        check_item(key, value)
        self._change(key, lambda folder, name: self._write(folder, name, value))

    def create(self, key: str, value: bytes) -> str | None:
        """Set a key that is not set yet, and return its version. Return `None`, with nothing changed, if it is set."""
        check_item(key, value)

        def change(folder: Descriptor, name: str) -> str | None:
            try:
                return self._write(folder, name, value, is_new=True)
            except FileExistsError:
                return None

        return self._change(key, change)

    def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        """Set a key whose value still has `version`, and return its new version.

        Return `None`, with nothing changed, if it has another version or is not set.
        """
        check_item(key, value)

        def change(folder: Descriptor, name: str) -> str | None:
            found = self.get_versioned(key)
            if found is None or found.version != version:
                return None
            return self._write(folder, name, value)

        return self._change(key, change)

    def delete(self, key: str) -> bool:
        """Delete a key. Return whether it was set."""
        if not self.exists(key):
            return False
        return self._change(key, lambda folder, name: remove(name, folder))

    def exists(self, key: str) -> bool:
        """Return whether a key is set."""
        self._check()
        parts = components(check_key(key), SUFFIX)
        with self._errors("read", key):
            try:
                folder = self._root.find(parts[:-1])
                if folder is not None:
                    os.stat(parts[-1], dir_fd=folder.number, follow_symlinks=False)
            except FileNotFoundError:
                return False
        return folder is not None

    def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the keys that start with `prefix` and follow `after`, in order, at most `limit` of them."""
        self._check()
        root = self._root.folder()
        if root is None:
            return []
        return list(islice(walk(root, SUFFIX, prefix=prefix.encode(), after=after.encode()), limit))

    def children(self, directory: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the names directly below a directory, in order: `name` for a key and `name/` for a directory."""
        self._check()
        with self._errors("list", directory):
            try:
                folder = self._root.find(components(check_key(directory), "") if directory else [])
                return list(islice(children(folder, SUFFIX, after=after.encode()), limit)) if folder is not None else []
            except FileNotFoundError:
                return []

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the values of these keys, except those that are not set."""
        return {key: value for key in dict.fromkeys(keys) if (value := self.get(key)) is not None}

    def set_many(self, values: Mapping[str, bytes]) -> None:
        """Set several keys, one after another."""
        for key, value in values.items():
            check_item(key, value)
        for key, value in values.items():
            self.set(key, value)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield all keys that start with `prefix`, in order, with their values."""
        after = ""
        while keys := self.keys(prefix, after=after, limit=_PAGE):
            for key in keys:
                value = self.get(key)
                if value is not None:
                    yield key, value
            after = keys[-1]

    def clear(self, prefix: str = "") -> int:
        """Delete all keys that start with `prefix`. Return how many there were."""
        return sum(self.delete(key) for key in self.keys(prefix))

    def close(self) -> None:
        """Release descriptors; closing again does nothing."""
        self._is_closed = True
        self._root = Root(self.path, is_synced=self._is_synced)

    def _check(self) -> None:
        if self._is_closed:
            raise StorageError(f"cannot use {self.url!r}: the storage is closed; open it again")

    def _change(self, key: str, change: Callable[[Descriptor, str], T]) -> T:
        """Change a key's file while no other thread or process changes a file in the same directory."""
        self._check()
        parts = components(check_key(key), SUFFIX)
        with self._errors("change", key):
            folder = self._root.make(parts[:-1])
            with self._mutex:
                fcntl.flock(folder.number, fcntl.LOCK_EX)
                try:
                    return change(folder, parts[-1])
                finally:
                    fcntl.flock(folder.number, fcntl.LOCK_UN)

    def _write(self, folder: Descriptor, name: str, value: bytes, *, is_new: bool = False) -> str:
        version = os.urandom(16)
        pieces = [_HEADER.pack(MAGIC, crc32(value, crc32(version)), version), value]
        self._root.temporary_folder().publish(pieces, name, folder, is_synced=self._is_synced, is_new=is_new)
        return version.hex()

    @contextmanager
    def _errors(self, action: str, key: str) -> Iterator[None]:
        """Raise an error of the engine unchanged, and any other as `StorageError`."""
        try:
            yield
        except StorageError:
            raise
        except OSError as error:
            raise failure(f"{action} the key {key!r} in {self.path!r}", error) from error
