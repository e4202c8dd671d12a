"""The files that a patch names, in their current state and as the patch leaves them, before anything is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import ELOOP, ENAMETOOLONG

from weakfs.class_decorators import frozen
from weakfs.editing.patches.document import Document
from weakfs.fast_init import fast_init
from weakfs.filesystem import missing_path as absence
from weakfs.filesystem.path_lookup import by_canonical_paths, canonical_path
from weakfs.filesystem.paths import is_within, join, normalize, parent
from weakfs.filesystem.protocol import Filesystem, check_size
from weakfs.filesystem.results import FileStat

# The cost of looking up a path grows with the square of its depth.
DEEPEST = 4096


class Unusable(Exception):
    """A path of a patch cannot be used; the text says why."""


@fast_init
@frozen(eq=False)
class Entry:
    """A file, or a symbolic link if it has a `target`.

    `origin` is the path of the entry before the patch, and `size` its size then; a `content` of `None` is the current
    one, a `mode` of `None` the mode of new files.
    """

    origin: str | None
    mode: int | None
    content: bytes | Document | None = None
    target: str | None = None
    size: int = 0

    @property
    def is_link(self) -> bool:
        """Whether the entry is a symbolic link."""
        return self.target is not None

    def data(self, fs: Filesystem) -> bytes:
        """Return the bytes of a file."""
        if self.content is None:
            assert self.origin is not None
            check_size(self.origin, self.size)
            return fs.read_bytes(self.origin).content
        return self.content if isinstance(self.content, bytes) else self.content.text().encode()


class Places:
    """The entries at each path: looked up once, then as the operations leave them."""

    def __init__(self, fs: Filesystem) -> None:
        self._given = fs
        self.fs = by_canonical_paths(fs)
        self.now: dict[str, Entry | None] = {}
        self.giving_way: list[str] = []
        # Entries that the patch will delete or move are no obstacles: the order of files in a diff is irrelevant.
        self.vacating: set[str] = set()
        self._before: dict[str, FileStat | None] = {}
        self._canonical: dict[str, str] = {}
        self._directories: dict[str, str] = {}
        # The number of entries that the patch creates below each directory, and paths known not to be files.
        self._below: defaultdict[str, int] = defaultdict(int)
        self._no_files: set[str] = set()

    def canonical(self, path: str) -> str:
        """Return a path in the filesystem's own form. Raises `Unusable` if there is none."""
        found = self._canonical.get(path)
        if found is None:
            try:
                found = self._canonical[path] = self._resolved(path)
            except (PermissionError, ValueError) as error:
                # The original error is more specific than this one would be.
                if type(error) not in (PermissionError, ValueError):
                    raise
                raise Unusable(str(error)) from error
            if found == "/":
                raise Unusable(f"cannot use {path!r}: it is the root; name a file inside it")
        self._refuse_below_lost_link(canonical_path(self._given, path))
        return found

    def _refuse_below_lost_link(self, path: str) -> None:
        """Raise `Unusable` for a path that leads through a link that the patch removes."""
        for above in _ancestors(path):
            there = self._before.get(above)
            if there is not None and there.is_symlink and self._is_gone(above) and self.now.get(above) is None:
                raise Unusable(
                    f"cannot use {path!r}: {above!r} is a symbolic link that this patch removes; name the real "
                    "path, or change what is below it in a patch of its own"
                )

    def _resolved(self, path: str) -> str:
        lexical = canonical_path(self._given, path)
        if lexical.count("/") > DEEPEST:
            raise Unusable(
                f"cannot use {lexical[:100]!r}: it is more than {DEEPEST} directories deep; use a shorter path"
            )
        there = self._stat(lexical)
        if there is not None:
            self._before[there.path] = there
            return there.path
        above, _, name = lexical.rpartition("/")
        found = join(self._directory(above or "/"), name)
        self._before[found] = None
        return found

    def _directory(self, path: str) -> str:
        """Return a directory, which need not exist, in the filesystem's own form."""
        found = self._directories.get(path)
        if found is not None:
            return found
        waiting: list[str] = []
        top = path
        while top != "/" and top not in self._directories:
            try:
                there = self._stat(top)
            except PermissionError:
                # If the directories above a permitted place may not be examined, no link can be followed there.
                break
            if there is not None:
                self._directories[top] = self._behind(there) if there.is_symlink else there.path
                break
            waiting.append(top)
            top = parent(top)
        found = self._directories.get(top, top)
        for lower in reversed(waiting):
            found = self._directories[lower] = join(found, lower.rpartition("/")[2])
        return found

    def _behind(self, link: FileStat) -> str:
        """Return the directory a link leads to, which need not exist; for one outside, return the link's own path."""
        found = self._target(parent(link.path), link.target or "")
        if found is None:
            # Ask the filesystem for the entry that the link leads to, which works for any link.
            with suppress(OSError):
                for entry in self.fs.walk(link.path):
                    return parent(entry.path)
        return link.path if found is None else found

    def _target(self, here: str, target: str) -> str | None:
        """Follow a link's target from the directory `here`; `None` if unknown or left to the filesystem."""
        if not target:
            return None
        if target.startswith("/"):
            here, top = "/", self.fs.root.rstrip("/")
            if not is_within(target, top or "/"):
                return None
            target = target[len(top) :]
        # Circular links were refused when the whole path was looked up.
        for name in target.split("/"):
            if name == "..":
                if here == "/":
                    return None
                here = parent(here)
            elif name not in ("", "."):
                below = join(here, name)
                if normalize(below) != below:
                    return None
                here = self._directory(below)
        return here

    def _stat(self, path: str) -> FileStat | None:
        try:
            return self.fs.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in (ENAMETOOLONG, ELOOP):
                raise Unusable(str(error)) from error
            raise

    def before(self, path: str) -> FileStat | None:
        """Return what was at a canonical path before the patch."""
        if path not in self._before:
            self._before[path] = self._stat(path)
        return self._before[path]

    def entry(self, path: str) -> Entry | None:
        """Return the file or link currently at a canonical path. Raises `Unusable` for any other entry."""
        if path in self.now:
            found = self.now[path]
            if found is None and self._below[path]:
                raise _is_directory(path)
            return found
        there = self.before(path)
        if there is None:
            if self._below[path]:
                raise _is_directory(path)
            return None
        if there.is_directory:
            raise _is_directory(path)
        if not there.is_file and not there.is_symlink:
            raise Unusable(f"cannot use {path!r}: it is neither a file nor a link; name a file")
        return Entry(path, there.mode, None, there.target, there.size_bytes)

    def behind_link(self, path: str, entry: Entry) -> str:
        """Return the path of the file that a link stands for. Raises `Unusable` if links are not followed."""
        try:
            if path in self.now:
                raise Unusable(f"cannot use {path!r}: it is a symbolic link that this patch makes; name the real path")
            return self.fs.read_bytes(path, limit=0).path
        except (OSError, ValueError) as error:
            raise Unusable(str(error)) from error

    def room_for(self, path: str) -> Entry | None:
        """Return the file or link that a new one at this path replaces. Raises `Unusable` if none can be there."""
        for above in _ancestors(path):
            if self.now.get(above) is not None or (not self._is_gone(above) and self._is_file(above)):
                raise Unusable(f"cannot use {path!r}: {above!r} is a file, not a directory; use another path")
        there = None if path in self.now else self.before(path)
        if there is not None and there.is_directory and not self._below[path] and self._is_emptied(path):
            self.giving_way.append(path)
            self.now[path] = None
        if path not in self.now and path in self.vacating and not self._below[path]:
            return None
        found = self.entry(path)
        if found is None:
            try:
                self.fs.limits.check_path(path, tuple(path[1:].split("/")))
            except OSError as error:
                raise Unusable(str(error)) from error
        return found

    def _is_gone(self, path: str) -> bool:
        return path in self.now or path in self.vacating

    def _is_file(self, path: str) -> bool:
        if path in self._no_files:
            return False
        try:
            there = self.before(path)
        except PermissionError:
            there = None
        if there is None or there.is_directory or there.is_symlink:
            self._no_files.add(path)
            return False
        return True

    def _is_emptied(self, path: str) -> bool:
        """Return whether the patch removes everything from a directory, and at least one entry."""
        gone = 0
        for entry in self.fs.walk(path):
            if not entry.is_directory:
                if self.now.get(entry.path) is not None or not self._is_gone(entry.path):
                    return False
                gone += 1
        return gone > 0

    def take(self, path: str) -> Entry | None:
        """Return the entry that a diff deletes or moves: as it was before, if it has not been taken yet."""
        if not self._is_reoccupied(path):
            return self.entry(path)
        there = self.before(path)
        assert there is not None
        return Entry(path, there.mode, None, there.target, there.size_bytes)

    def vacate(self, path: str) -> None:
        """Remove the entry that was taken; keep one that the patch has put there in the meantime."""
        if not self._is_reoccupied(path):
            self.remove(path)
        self.vacating.discard(path)

    def _is_reoccupied(self, path: str) -> bool:
        """Return whether the patch has put another entry where a diff deletes or moves one."""
        found = self.now.get(path)
        return path in self.vacating and found is not None and found.origin != path

    def put(self, path: str, entry: Entry) -> None:
        """Put a file or link at a path."""
        if self.now.get(path) is None:
            self._count_below(path, 1)
        self.now[path] = entry

    def remove(self, path: str) -> None:
        """Remove whatever is at a path."""
        if self.now.get(path) is not None:
            self._count_below(path, -1)
        self.now[path] = None

    def _count_below(self, path: str, change: int) -> None:
        for above in _ancestors(path):
            self._below[above] += change

    def is_emptied_by(self, path: str) -> bool:
        """Return whether a path is in a directory that is replaced by a file."""
        return any(path != directory and is_within(path, directory) for directory in self.giving_way)


def _ancestors(path: str) -> Iterator[str]:
    at = path.rfind("/")
    while at > 0:
        yield path[:at]
        at = path.rfind("/", 0, at)


def _is_directory(path: str) -> Unusable:
    return Unusable(f"cannot use {path!r}: it is a directory; name a file inside it")


def why_absent(fs: Filesystem, path: str, gone: Mapping[str, str | None]) -> str:
    """Return why there is no file at a path, and the remedy; `gone` maps paths to where the patch moved the file."""
    if path not in gone:
        return absence.why_absent(fs, path, excluded=gone.__contains__)
    to = gone[path]
    reason = "there is no such file at that point: an earlier operation of this patch"
    if to is None:
        return f"{reason} deletes it; put this one before it, or leave it out"
    return f"{reason} moves it to {to!r}; use that path"
