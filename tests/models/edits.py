"""Random operations on a filesystem, recorded as plain values so that they can be repeated elsewhere."""

from __future__ import annotations

from random import Random

from weakfs.filesystem import Filesystem

from .trees import PLAIN_NAMES

# An operation's name and its arguments.
Edit = tuple[str, tuple[object, ...]]

TEXTS = ("", "x", "a\nb\nc\n", "a\nB\nc\n", "a\nb\nC\n", "a\nb\nc\nd\n", "\0", "1\n2", "1\n2\n")


def random_path(random: Random, depth: int = 3) -> str:
    """Return a path of one to `depth` segments, with only a few names, so that paths coincide."""
    return "/" + "/".join(random.choice(PLAIN_NAMES[:3]) for _ in range(random.randint(1, depth)))


def random_edits(random: Random, count: int) -> list[Edit]:
    """Generate operations that may or may not be possible when they are tried."""
    return [_random_edit(random) for _ in range(count)]


def _random_edit(random: Random) -> Edit:
    path = random_path(random)
    kind = random.randrange(24)
    if kind < 8:
        return "write", (path, random.choice(TEXTS))
    if kind < 10:
        return "append", (path, random.choice(TEXTS))
    if kind < 12:
        return "mkdir", (path,)
    if kind < 16:
        return "delete", (path,)
    if kind < 18:
        return "move", (path, random_path(random))
    if kind < 20:
        return "copy", (path, random_path(random))
    if kind < 22:
        return "chmod", (path, random.choice((0o644, 0o755, 0o700)))
    return "symlink", (random.choice(("t", "u")), path)


def make(fs: Filesystem, edit: Edit) -> None:
    """Perform one operation; if the filesystem refuses it, skip it."""
    name, arguments = edit
    options = {"recursive": True} if name == "delete" else {}
    try:
        getattr(fs, name)(*arguments, **options)
    except (OSError, ValueError):
        return


def edit_line(fs: Filesystem, path: str, old: str, new: str) -> None:
    """Replace the only line `old` with `new`."""
    content = fs.read(path).content
    assert content.count(old) == 1
    fs.write(path, content.replace(old, new))
