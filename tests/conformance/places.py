"""What the conformance tests of several backends stand on: a clock that ticks, and directories of the host."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

MILLISECOND = 1_000_000


def ticking() -> Callable[[], int]:
    """Give a clock that goes on by a millisecond whenever it is read."""
    return count(1_700_000_000_000 * MILLISECOND, MILLISECOND).__next__


class HostPlaces:
    """Gives each filesystem of a test a directory and a store of its own."""

    numbers = count()

    @pytest.fixture(autouse=True)
    def _places(self, place: Path) -> None:
        self.place = place

    def next_place(self) -> tuple[Path, Path]:
        """Make an empty root, and name a store for it."""
        number = next(self.numbers)
        root = self.place / f"root{number}"
        root.mkdir(mode=0o755)
        return root, self.place / f"store{number}"
