"""A real directory as `lstat` shows it, and random changes to one, without using the library."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from attrs import frozen

ROOT = b""

# Names as the host stores them that are difficult to quote, decode or escape.
NAMES: tuple[bytes, ...] = (
    *(b"a", b"b", b"c", b"d.py", b"ignored.log", b".gitignore", b".hidden", b"A", b" ", b"-rf", b"*", b"[x]", b"..."),
    *(b"a\nb", b"\n", b"\t", b"\x01", b"back\\slash", b"\\", b"..\\..", b"\xff", b"caf\xe9", b"\xc3", b"\xed\xa0\x80"),
    *("\uf741".encode(), "\uf75c\uf72f".encode(), "\uf72e\uf72e".encode(), b"\xef\x9d", "\ufeff".encode()),
    *("\u00e9".encode(), "e\u0301".encode(), "\U0001f600".encode(), b"n" * 255, "\u00e9".encode() * 127),
    *(b".weakfs-00.tmp", b".weakfs-.tmp", b".writing-1", b"log"),
)
# Only root can read what its owner may not read, and remove entries of directories that their owner may not change.
IS_ROOT = os.geteuid() == 0
MODES = tuple(mode for mode in (0o644, 0o600, 0o755, 0o444, 0o000, 0o4755, 0o666, 0o640) if IS_ROOT or mode & 0o400)
DIRECTORY_MODES = tuple(
    mode for mode in (0o755, 0o700, 0o555, 0o500, 0o2775, 0o1777, 0o000) if IS_ROOT or mode & 0o700 == 0o700
)
# None of these leads outside the test's own files, even if it were followed by mistake.
TARGETS = (b"a", b"..", b".", b"nowhere", b"\xff\n", b"../outside/secret", b"x" * 400)
CONTENTS = (b"", b"a\n", b"a\r\nb", b"\0" * 5000, b"one\ntwo\nthree\n", bytes(range(256)), b"\xff\xfe", b"z" * 70_000)
# From before the epoch to the last second that fits in 32 bits, with nanoseconds.
TIMES = (
    1,
    999_999_999,
    1_700_000_000_123_456_789,
    2_000_000_000_000_000_000,
    -1_000_000_001,
    4_294_967_295_000_000_007,
)


@frozen
class Seen:
    """What `lstat` and a read return for one entry. `inode` and `changed_at` show whether anybody touched it."""

    kind: str
    mode: int
    content: bytes
    modified_at: int
    inode: int
    changed_at: int

    @property
    def exact(self) -> tuple[str, int, bytes, int]:
        """What a restore has to bring back."""
        return self.kind, self.mode, self.content, self.modified_at

    @property
    def essence(self) -> tuple[str, int, bytes]:
        """The same without the time."""
        return self.kind, self.mode, self.content


Record = dict[bytes, Seen]

KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


def look(path: bytes) -> Seen:
    """Examine one entry without following links; only a regular file is opened."""
    status = os.lstat(path)
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
    content = b""
    if kind == "file":
        with open(path, "rb") as stream:
            content = stream.read()
    elif kind == "link":
        content = os.readlink(path)
    mode = 0 if kind == "link" else stat.S_IMODE(status.st_mode)
    return Seen(kind, mode, content, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)


def record(root: str | Path) -> Record:
    """Record a directory with everything below it, by relative path, and the directory itself as `ROOT`."""
    top = os.fsencode(root)
    found = {ROOT: look(top)}

    def fail(error: OSError) -> None:
        raise error

    for here, directories, files in os.walk(top, onerror=fail):
        for name in (*directories, *files):
            path = os.path.join(here, name)
            found[os.path.relpath(path, top)] = look(path)
    return found


def exact(found: Record) -> dict[bytes, tuple[str, int, bytes, int]]:
    """Return everything that a restore has to bring back."""
    return {path: seen.exact for path, seen in found.items()}


def assert_restored(before: Record, between: Record, after: Record) -> None:
    """Check that everything is as it was before, and that what did not change in between was not touched.

    Directories above something that changed keep their inodes; all else keeps the time of its last change as well.
    """
    assert exact(after) == exact(before)
    changed = {path for path in before.keys() | between.keys() if before.get(path) != between.get(path)}
    above = {place for path in changed for place in places_above(path)}
    for path in before.keys() - changed:
        assert after[path].inode == before[path].inode, f"{path!r} did not change, and is another file now"
        assert path in above or after[path] == before[path], f"{path!r} did not change, and was touched"


def places_above(path: bytes) -> list[bytes]:
    """Return the directories that a path lies in."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(len(parts))]


class Disorder:
    """Random changes to a directory through the operating system. `outside` is where links may lead."""

    def __init__(self, root: Path, outside: Path) -> None:
        self.root, self.outside = os.fsencode(root), os.fsencode(outside)

    def act(self, seed: int) -> None:
        """Make one change, which may turn out to be impossible."""
        random = Random(seed)
        change = random.choice(CHANGES)
        with suppress(OSError):
            change(self, random)

    def write(self, path: bytes, content: bytes, random: Random) -> None:
        """Write a file with a random mode and time; never through a link, and never a file with a name outside."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            if not self.is_ours(os.fstat(descriptor), stat.S_ISREG):
                raise FileExistsError
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, content, 0)
            os.fchmod(descriptor, random.choice(MODES))
            if random.random() < 0.5:
                os.utime(descriptor, ns=(0, random.choice(TIMES)))
        finally:
            os.close(descriptor)

    def is_ours(self, status: os.stat_result, is_kind: Callable[[int], bool] = lambda _: True) -> bool:
        """Return whether an entry may be changed in place."""
        return is_kind(status.st_mode) and status.st_ino != os.lstat(os.path.join(self.outside, b"secret")).st_ino

    def entries(self, kind: str | None = None) -> list[bytes]:
        """Return the paths of all entries of a kind."""
        found: list[bytes] = []
        for here, directories, files in os.walk(self.root):
            for name in (*directories, *files):
                path = os.path.join(here, name)
                if kind is None or KINDS.get(stat.S_IFMT(os.lstat(path).st_mode)) == kind:
                    found.append(path)
        return sorted(found)

    def somewhere(self, random: Random) -> bytes:
        """Return a path in some directory, at which there may be an entry."""
        return os.path.join(random.choice([self.root, *self.entries("directory")]), random.choice(NAMES))

    def some(self, random: Random, kind: str | None = None) -> bytes:
        """Return an entry; the change is impossible if there is none."""
        found = self.entries(kind)
        if not found:
            raise FileNotFoundError
        return random.choice(found)


def new_file(self: Disorder, random: Random) -> None:
    self.write(self.somewhere(random), random.choice(CONTENTS), random)


def new_directory(self: Disorder, random: Random) -> None:
    path = self.somewhere(random)
    os.mkdir(path)
    for _ in range(random.choice((0, 0, 1, 3))):
        with suppress(OSError):
            self.write(os.path.join(path, random.choice(NAMES)), random.choice(CONTENTS), random)
    os.chmod(path, random.choice(DIRECTORY_MODES))


def new_deep_tree(self: Disorder, random: Random) -> None:
    path = self.somewhere(random)
    os.mkdir(path)
    os.makedirs(os.path.join(path, *[b"d"] * random.choice((5, 30, 130))))


def new_link(self: Disorder, random: Random) -> None:
    path = self.somewhere(random)
    os.symlink(random.choice((*TARGETS, self.outside)), path)
    os.utime(path, ns=(0, random.choice(TIMES)), follow_symlinks=False)


def new_special(self: Disorder, random: Random) -> None:
    os.mknod(self.somewhere(random), random.choice((stat.S_IFIFO, stat.S_IFSOCK)) | 0o640)


def new_hard_link(self: Disorder, random: Random) -> None:
    os.link(self.some(random, "file"), self.somewhere(random), follow_symlinks=False)


def hard_link_outwards(self: Disorder, random: Random) -> None:
    os.link(os.path.join(self.outside, b"secret"), self.somewhere(random))


def edit(self: Disorder, random: Random) -> None:
    self.write(self.some(random, "file"), random.choice(CONTENTS), random)


def forge(self: Disorder, random: Random) -> None:
    """Change bytes, and leave size and time as they were."""
    path = self.some(random, "file")
    status = os.lstat(path)
    if not self.is_ours(status) or not status.st_size:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        os.pwrite(descriptor, bytes((random.randrange(256),)), random.randrange(status.st_size))
    finally:
        os.close(descriptor)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace(self: Disorder, random: Random) -> None:
    """Put another file at a path by renaming, as editors do."""
    path, beside = self.some(random, "file"), os.path.join(self.root, b"beside")
    self.write(beside, random.choice(CONTENTS), random)
    os.rename(beside, path)


def chmod(self: Disorder, random: Random) -> None:
    path = self.some(random)
    if not os.path.islink(path) and self.is_ours(os.lstat(path)):
        os.chmod(path, random.choice(DIRECTORY_MODES if os.path.isdir(path) else MODES))


def touch(self: Disorder, random: Random) -> None:
    path = self.some(random)
    if self.is_ours(os.lstat(path)):
        os.utime(path, ns=(0, random.choice(TIMES)), follow_symlinks=False)


def remove(self: Disorder, random: Random) -> None:
    path = self.some(random)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def move(self: Disorder, random: Random) -> None:
    os.rename(self.some(random), self.somewhere(random))


def swap_directory_for_link(self: Disorder, random: Random) -> None:
    path = self.some(random, "directory")
    shutil.rmtree(path)
    os.symlink(self.outside, path)


def swap_kind(self: Disorder, random: Random) -> None:
    path = self.some(random)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
        self.write(path, b"was a directory", random)
    else:
        os.unlink(path)
        os.mkdir(path)
        self.write(os.path.join(path, b"inside"), b"was a file", random)


CHANGES: tuple[Callable[[Disorder, Random], None], ...] = (
    *(new_file, new_file, new_file, new_directory, new_directory, new_deep_tree, new_link, new_special),
    *(new_hard_link, hard_link_outwards, edit, edit, forge, forge, replace, chmod, touch, remove, move),
    *(swap_directory_for_link, swap_kind),
)


def left_in_journals(store: Path, *, after_interrupt: bool = False) -> list[Path]:
    """Return what is in the journals of a store, except empty ones, which are kept for later work.

    A kill or an interrupt may also leave the directory of a journal whose log was not created yet, or was removed.
    """
    found = [(one, [(path.name, path.stat().st_size) for path in one.glob("*")]) for one in store.glob("journals/*")]
    left = [(one, names) for one, names in found if names != [("log", 0)]]
    return [one for one, names in left if not after_interrupt or "log" in dict(names)]
