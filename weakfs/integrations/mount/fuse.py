"""The loop of FUSE 3, which passes handles and flags to operations that libfuse 2 does not know."""

from __future__ import annotations

from typing import Any

import mfusepy


class Fuse(mfusepy.FUSE):  # type: ignore[misc,unused-ignore]  # mfusepy has no types
    """The loop that answers the kernel, with the additions of FUSE 3: handles and the flags of renames."""

    def truncate_fuse_3(self, path: bytes | None, length: int, fip: Any) -> int:
        return int(self.operations.truncate(self._text(path), length, _handle(fip)))

    def chmod_fuse_3(self, path: bytes | None, mode: int, fip: Any) -> int:
        return int(self.operations.chmod(self._text(path), mode, _handle(fip)))

    def utimens_fuse_3(self, path: bytes | None, buf: Any, fip: Any) -> int:
        times = None
        if buf:
            both = (buf.contents.actime, buf.contents.modtime)
            times = tuple(mfusepy.time_of_timespec(one, use_ns=True) for one in both)
        return int(self.operations.utimens(self._text(path), times, _handle(fip)))

    def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
        return int(self.operations.rename(self._text(old), self._text(new), flags))

    def _text(self, path: bytes | None) -> str:
        assert path is not None
        return path.decode(self.encoding, self.errors)


def _handle(fip: Any) -> int | None:
    return fip.contents.fh if fip else None
