"""A search can be interrupted anywhere: among files, and among directories without files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weakfs import InMemoryFilesystem
from weakfs.filesystem.operations.search import CHECKED
from weakfs.session.interruption import interruptible

DIRECTORIES = 20 * CHECKED

SEARCHES: dict[str, Callable[[InMemoryFilesystem], object]] = {
    "grep": lambda fs: fs.grep("text"),
    "grep in some files": lambda fs: fs.grep("text", glob="**/*.py"),
    "glob": lambda fs: fs.glob("**/*.py"),
}


class Deadline:
    """A deadline that passes at one of the checks."""

    def __init__(self, passes_at: int) -> None:
        self.checks = 0
        self.passes_at = passes_at

    def check(self) -> None:
        self.checks += 1
        if self.checks == self.passes_at:
            raise TimeoutError("past the deadline")


def checks_of(search: Callable[[InMemoryFilesystem], object], fs: InMemoryFilesystem) -> int:
    deadline = Deadline(0)
    with interruptible(deadline.check):
        search(fs)
    return deadline.checks


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("files", [0, 1])
def test_searches_check_the_deadline_throughout_many_directories(name: str, files: int) -> None:
    fs = InMemoryFilesystem()
    for number in range(DIRECTORIES):
        fs.mkdir(f"/{number}")
        if files:
            fs.write(f"/{number}/a.py", "text\n")
    search = SEARCHES[name]
    checks = checks_of(search, fs)
    assert DIRECTORIES // CHECKED <= checks <= DIRECTORIES // CHECKED + 3
    for passes_at in (1, checks // 2, checks):
        deadline = Deadline(passes_at)
        with pytest.raises(TimeoutError, match="past the deadline"), interruptible(deadline.check):
            search(fs)
        assert deadline.checks == passes_at
