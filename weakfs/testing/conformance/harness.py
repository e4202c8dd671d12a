"""The base class of the cases, with its two hooks for implementers, and `refused`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

import pytest

from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy

__all__ = ["FilesystemCases", "Prepare", "refused"]

Prepare: TypeAlias = Callable[[Filesystem], object]


class FilesystemCases:
    """The base class of the cases. Override `make_fs`, and `advance_clock` if necessary."""

    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        """Return an empty filesystem, or one with the files that `prepare` wrote.

        Each call returns an independent filesystem: two of them share no files. `prepare` is called with a
        writable filesystem with the default limits, on the same files as the one that is returned.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no filesystem; override make_fs(self, *, prepare=None, limits=None,"
            " read_only=False, follow_symlinks='deny')"
        )

    def advance_clock(self, fs: Filesystem) -> None:
        """Make the next change of `fs` later than the last one.

        The default does nothing. Override it if two consecutive changes can have the same time.
        """

    @pytest.fixture
    def fs(self) -> Filesystem:
        return self.make_fs()

    def write_in_turn(self, fs: Filesystem, *paths: str) -> None:
        """Write the paths one after another, each with a later time than the previous one."""
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
    """Expect the block to raise `error` and to leave the tree unchanged."""
    before = fs.tree().fingerprint
    with pytest.raises(error) as caught:
        yield caught
    if errno is not None:
        assert isinstance(caught.value, OSError)
        assert caught.value.errno == errno
    assert fs.tree().fingerprint == before, "a refused call left something behind"
