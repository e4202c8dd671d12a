"""The trees that every subject holds: the same paths and the same text for all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

DIRECTORY_SIZE = 20
"""The number of files in each lowest directory, which the `list` row lists."""

BRANCHES = 20
"""The number of lowest directories in each top directory, so that a top directory holds 400 files."""

NEEDLE_EVERY = 100
"""One file in this many contains the line that the grep row searches for."""


@dataclass(frozen=True)
class Tree:
    """A tree of `size` small files in directories of 20, below directories of 400, below `top`."""

    size: int
    lines: int = 5
    top: str = ""

    def path(self, index: int) -> str:
        return f"{self.directory(index // DIRECTORY_SIZE)}/file{index % DIRECTORY_SIZE}.txt"

    def directory(self, index: int) -> str:
        return f"{self.top}/dir{index // BRANCHES}/part{index % BRANCHES}"

    def text(self, index: int) -> str:
        """Return about 45 bytes per line, different in every file, so that deduplication has no advantage."""
        lines = [f"line {n} of file {index}: the quick brown fox {n * index}\n" for n in range(self.lines)]
        if index % NEEDLE_EVERY == 0:
            lines[-1] = f"def needle_{index}(fox): return fox  # the one to find\n"
        return "".join(lines)

    @property
    def directories(self) -> int:
        return self.size // DIRECTORY_SIZE

    @property
    def needles(self) -> int:
        return -(-self.size // NEEDLE_EVERY)

    def files(self) -> Iterator[tuple[str, str]]:
        return ((self.path(index), self.text(index)) for index in range(self.size))

    def sample_paths(self, count: int, *, seed: int = 7) -> list[str]:
        """Return `count` paths in a random order that is the same for every subject."""
        chooser = random.Random(seed)
        return [self.path(chooser.randrange(self.size)) for _ in range(count)]

    def sample_directories(self, count: int, *, seed: int = 7) -> list[str]:
        chooser = random.Random(seed)
        return [self.directory(chooser.randrange(self.directories)) for _ in range(count)]
