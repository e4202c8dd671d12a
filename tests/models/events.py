"""Random events, sensible and odd ones, for reducers, which apply any event."""

from __future__ import annotations

from random import Random

from weakfs.reducers import (
    DirectoryMade,
    EntryCopied,
    EntryDeleted,
    EntryMoved,
    FileAppended,
    FileSpliced,
    FileWritten,
    LinkMade,
    ModeChanged,
    TreeMounted,
    TreeRestored,
)
from weakfs.reducers.events import Event

from .trees import PLAIN_NAMES, random_tree


def random_path(random: Random, names: tuple[str, ...] = PLAIN_NAMES) -> str:
    """Return a path of one to four segments."""
    return "/" + "/".join(random.choice(names) for _ in range(random.randint(1, 4)))


def random_events(random: Random, count: int, *, names: tuple[str, ...] = PLAIN_NAMES) -> list[Event]:
    """Generate events whose paths may or may not exist, with entries of any kind."""
    return [_one(random, at, names) for at in range(1, count + 1)]


def _one(random: Random, at: int, names: tuple[str, ...]) -> Event:
    path, other = random_path(random, names), random_path(random, names)
    content = random.randbytes(random.randint(0, 20))
    kind = random.randrange(40)
    if kind < 10:
        return FileWritten(path, content, at, random.choice((None, None, 0o600, 0o755)))
    if kind < 15:
        return FileAppended(path, content, at)
    if kind < 18:
        start = random.randint(0, 5)
        return FileSpliced(path, ((start, start + random.randint(0, 3), content),), at)
    if kind < 23:
        return DirectoryMade(path, at)
    if kind < 27:
        return EntryDeleted(path, at)
    if kind < 31:
        return EntryMoved(path, other, at)
    if kind < 35:
        return EntryCopied(path, other, at)
    if kind < 37:
        return ModeChanged(random.choice((path, "/")), random.choice((0o755, 0o700, 0o644)), at)
    if kind < 39:
        return LinkMade(path, other, at)
    tree = random_tree(random, names=names, contents=(b"", b"x\n", b"y"))
    return TreeMounted(path, "host", tree, (), at) if random.random() < 0.7 else TreeRestored(tree, "s", at)
