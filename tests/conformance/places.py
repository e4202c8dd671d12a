"""Shared by the conformance tests of several backends: a clock that ticks, and a place for each filesystem."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeAlias, TypedDict

import pytest

from weakfs.filesystem import Filesystem, Limits, SymlinkPolicy
from weakfs.testing import Prepare
from weakfs.testing.conformance.harness import FilesystemCases

MILLISECOND = 1_000_000


def ticking() -> Callable[[], int]:
    """Return a clock that advances by a millisecond whenever it is read."""
    return count(1_700_000_000_000 * MILLISECOND, MILLISECOND).__next__


class Options(TypedDict, total=False):
    """The options of a test; the prepared files are written without any."""

    limits: Limits
    read_only: bool
    follow_symlinks: SymlinkPolicy


Open: TypeAlias = Callable[[Options], Filesystem]


class Places(FilesystemCases):
    """Opens each filesystem of a test in a new place: once to prepare it, and once with the options of the test."""

    def new_place(self) -> Open:
        raise NotImplementedError

    def make_fs(
        self,
        *,
        prepare: Prepare | None = None,
        limits: Limits | None = None,
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> Filesystem:
        opened = self.new_place()
        if prepare is not None:
            prepare(opened({}))
        return opened({"limits": limits or Limits(), "read_only": read_only, "follow_symlinks": follow_symlinks})


class HostPlaces(Places):
    """Gives each filesystem of a test its own directory and store."""

    numbers = count()

    @pytest.fixture(autouse=True)
    def _places(self, place: Path) -> None:
        self.place = place

    def new_directory(self) -> tuple[Path, Path]:
        """Make an empty root, and name a store for it."""
        number = next(self.numbers)
        root = self.place / f"root{number}"
        root.mkdir(mode=0o755)
        return root, self.place / f"store{number}"
