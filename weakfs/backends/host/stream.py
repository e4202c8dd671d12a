"""A host file open for reading, as a raw stream."""

from __future__ import annotations

import io
import os

from weakfs.backends.host.os_errors import described_errors


class HostStream(io.RawIOBase):
    """Reads an open descriptor from the start, and closes it when the stream is closed; errors name `path`.

    The opened file is read to its end even if it is written in the meantime: the library's writes replace the file.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # any writable buffer
        self._check_open()
        with described_errors("read", self._path):
            size = os.preadv(self._descriptor, [buffer], self._offset)
        self._offset += size
        return size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check_open()
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset}
        start = starts[whence] if whence in starts else os.fstat(self._descriptor).st_size
        if start + offset < 0:
            raise ValueError(f"cannot seek {self._path!r} to {start + offset}; use a position of 0 or more")
        self._offset = start + offset
        return self._offset

    def tell(self) -> int:
        self._check_open()
        return self._offset

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"cannot read {self._path!r}: the stream is closed; open it again")
