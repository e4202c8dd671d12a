"""Which version of a file each caller last saw, so that nobody overwrites what somebody else did since."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import Lock
from typing import TypeVar

from attrs import frozen

from weakfs.editing.difference import hunks
from weakfs.filesystem import Filesystem
from weakfs.reducers import EntryCopied, EntryMoved, FileWritten, TreeRestored
from weakfs.reducers.lines import split_lines
from weakfs.session import Record
from weakfs.tools.errors import StaleRead
from weakfs.tools.results import clip

K = TypeVar("K")
V = TypeVar("V")

# What a caller saw of a file is kept up to this size, to show what changed; of a larger one only that it was seen.
MOST_KEPT = 1 << 18
# So many sights and so many changes are kept, the newest.
MOST_SIGHTS = 4096
MOST_CHANGES = 65536
# How much of a difference is shown.
SHOWN = 1500

Who = str | None


@frozen
class _Sight:
    """After how many changes a caller saw a file, and what it held; `None` if that was not kept."""

    version: int
    content: bytes | None


@frozen
class _Change:
    """Which change of all a caller's last one of a path was, and in which call."""

    version: int
    caller: Who
    call_id: str


class Readings:
    """What each caller of a toolset last saw of each file, and who changed what. Any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._version = 0
        self._sights: OrderedDict[tuple[Who, str], _Sight] = OrderedDict()
        self._changes: OrderedDict[tuple[Who, str], _Change] = OrderedDict()
        self._callers: set[Who] = set()

    @property
    def version(self) -> int:
        """How many changes there were; a call takes it when it begins, since it may see none that come later."""
        return self._version

    def has_others(self, caller: Who) -> bool:
        """Tell whether anybody but this caller has seen or changed something."""
        return len(self._callers) > 1 or caller not in self._callers

    def saw(self, caller: Who, path: str, fs: Filesystem, *, version: int) -> None:
        """Remember that a caller, in a call that began at a version, has seen a file."""
        content = _content(fs, path)
        with self._lock:
            # What it holds now may be more than the caller saw.
            self._see(caller, path, _Sight(version, content if self._version == version else None))

    def changed(
        self, caller: Who, call_id: str, records: Iterable[Record], fs: Filesystem, *, version: int
    ) -> Callable[[], None]:
        """Remember what a caller's call, begun at a version, has changed. What it left in a file it has seen.

        Gives what takes that back, for a call that fails after all.
        """
        own = getattr(fs, "filesystem_id", None)
        contents: dict[str, bytes | None] = {}
        for record in records:
            event = record.event
            if getattr(event, "filesystem", None) in (None, own):
                for path in _paths(event):
                    # Written as a whole it holds what was written; anything else is looked at when all is done.
                    contents[path] = event.content if isinstance(event, FileWritten) else None
        for path, written in contents.items():
            contents[path] = _kept(written) if written is not None else _content(fs, path)
        with self._lock:
            self._version += 1
            before = [(path, self._sights.get((caller, path)), self._changes.get((caller, path))) for path in contents]
            for path, content in contents.items():
                self._see(caller, path, _Sight(version, content))
                self._note(caller, path, _Change(self._version, caller, call_id))
        return partial(self._take_back, caller, before)

    def _take_back(self, caller: Who, before: list[tuple[str, _Sight | None, _Change | None]]) -> None:
        with self._lock:
            for path, sight, change in before:
                self._see(caller, path, sight)
                self._note(caller, path, change)

    def _see(self, caller: Who, path: str, sight: _Sight | None) -> None:
        self._callers.add(caller)
        _put(self._sights, (caller, path), sight, MOST_SIGHTS)

    def _note(self, caller: Who, path: str, change: _Change | None) -> None:
        _put(self._changes, (caller, path), change, MOST_CHANGES)

    def check(self, caller: Who, path: str, fs: Filesystem, *, may_show: bool) -> None:
        """Raise `StaleRead` if somebody else changed a file since this caller last saw it, and it shows.

        The message quotes what changed if it `may_show` it.
        """
        with self._lock:
            sight = self._sights.get((caller, path))
            if sight is None:
                return
            others = [other for other in self._callers if other != caller]
            since = [
                change
                for here in _with_parents(path)
                for other in others
                if (change := self._changes.get((other, here))) is not None and change.version > sight.version
            ]
        if not since:
            return
        now = _content(fs, path)
        if sight.content is not None and now == sight.content:
            return
        last = max(since, key=lambda change: change.version)
        raise StaleRead(_told(path, last, sight.content if may_show else None, now))


def _put(table: OrderedDict[K, V], key: K, value: V | None, most: int) -> None:
    if value is None:
        table.pop(key, None)
        return
    table[key] = value
    table.move_to_end(key)
    if len(table) > most:
        table.popitem(last=False)


def _with_parents(path: str) -> Iterator[str]:
    """Give a path and the directories that it lies in."""
    while path != "/":
        yield path
        path = path.rpartition("/")[0] or "/"
    yield path


def _paths(event: object) -> Iterable[str]:
    path = getattr(event, "path", None)
    if isinstance(path, str):
        return (path,)
    if isinstance(event, EntryMoved):
        return (event.source, event.destination)
    if isinstance(event, EntryCopied):
        return (event.destination,)
    # A tree that became another as a whole names no path.
    return ("/",) if isinstance(event, TreeRestored) else ()


def _content(fs: Filesystem, path: str) -> bytes | None:
    """Give what a file holds; empty if there is none, `None` if it is not to be kept."""
    try:
        return _kept(fs.read_bytes(path, limit=MOST_KEPT + 1).content)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""
    except (OSError, ValueError):
        return None


def _kept(content: bytes) -> bytes | None:
    return content if len(content) <= MOST_KEPT else None


def _told(path: str, change: _Change, before: bytes | None, now: bytes | None) -> str:
    who = "another caller" if change.caller is None else f"{change.caller!r}"
    said = f"cannot change {path!r}: {who} changed it since you last read it (call {change.call_id})"
    if before is None or now is None or b"\0" in before[:8192] + now[:8192]:
        return f"{said}; read it again first"
    lines = b"".join(hunks(split_lines(before), split_lines(now))).decode("utf-8", "replace")
    return f"{said}; this changed, read the file again before you change it:\n{clip(lines, SHOWN)}"
