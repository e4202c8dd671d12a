"""What the cases stand on: the two hooks of an implementer, and `refused`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

import pytest

from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy

__all__ = ["FilesystemCases", "Prepare", "refused"]

Prepare: TypeAlias = Callable[[Filesystem], object]


class FilesystemCases:
    """Give the cases their filesystems. `make_fs` must be overridden, `advance_clock` may be."""

    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        """Make an empty filesystem, or one that holds what `prepare` wrote.

        Each call gives a filesystem of its own: two of them share no files. `prepare` is called with a
        writable filesystem with the default limits, over the same files as the one that is returned.
        """
        raise NotImplementedError(
            f"{type(self).__name__} gives no filesystem; override make_fs(self, *, prepare=None, limits=None,"
            " read_only=False, follow_symlinks='deny')"
        )

    def advance_clock(self, fs: Filesystem) -> None:
        """Let the next change of `fs` be later than the last one.

        The default does nothing. Override it where two changes in a row can have the same time.
        """

    @pytest.fixture
    def fs(self) -> Filesystem:
        return self.make_fs()

    def write_in_turn(self, fs: Filesystem, *paths: str) -> None:
        """Write each path, each later than the one before it."""
        for path in paths:
            self.advance_clock(fs)
            fs.write(path, path)
        self.advance_clock(fs)


@contextmanager
def refused(
    fs: Filesystem,
    error: type[Exception] | tuple[type[Exception], ...],
    errno: int | None = None,
) -> Generator[pytest.ExceptionInfo[Exception]]:
    """Expect that the block raises `error`, and that the tree is afterwards what it was before."""
    before = fs.tree().fingerprint
    with pytest.raises(error) as caught:
        yield caught
    if errno is not None:
        assert isinstance(caught.value, OSError)
        assert caught.value.errno == errno
    assert fs.tree().fingerprint == before, "a refused call left something behind"
