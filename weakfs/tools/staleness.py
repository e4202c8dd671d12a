"""Which version of a file each caller last saw, so that nobody overwrites what somebody else did since."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from attrs import frozen

from weakfs.editing.difference import hunks
from weakfs.filesystem import Filesystem
from weakfs.filesystem.paths import is_within
from weakfs.reducers import EntryCopied, EntryMoved, FileWritten, TreeRestored
from weakfs.reducers.lines import split_lines
from weakfs.session import Record
from weakfs.tools.errors import StaleRead
from weakfs.tools.results import clip

# What a caller saw of a file is kept up to this size, to show what changed; of a larger one only that it was seen.
MOST_KEPT = 1 << 18
# How many sights are kept, the newest ones.
MOST_SIGHTS = 4096
# How much of a difference is shown.
SHOWN = 1500


@frozen
class _Sight:
    """When a caller saw a file, counted in sights and changes, and what it held; `None` if that was not kept."""

    order: int
    content: bytes | None


@frozen
class _Change:
    """When a path was last changed, by whom, and in which call."""

    order: int
    caller: str | None
    call_id: str


class Readings:
    """What each caller of a toolset last saw of each file, and who changed what. Any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._order = 0
        self._sights: OrderedDict[tuple[str | None, str], _Sight] = OrderedDict()
        self._changes: dict[str, _Change] = {}
        self._callers: set[str | None] = set()

    def saw(self, caller: str | None, path: str, fs: Filesystem) -> None:
        """Remember that a caller has seen a file as it is now."""
        content = _content(fs, path)
        with self._lock:
            self._see(caller, path, content)

    def changed(self, caller: str | None, call_id: str, records: Iterable[Record], fs: Filesystem) -> None:
        """Remember what a caller's call has changed. What it left in a file it has seen."""
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
            for path, content in contents.items():
                self._see(caller, path, content)
                self._changes[path] = _Change(self._order, caller, call_id)

    def has_others(self, caller: str | None) -> bool:
        """Tell whether anybody but this caller has seen or changed something."""
        return len(self._callers) > 1 or caller not in self._callers

    def _see(self, caller: str | None, path: str, content: bytes | None) -> None:
        self._order += 1
        self._callers.add(caller)
        self._sights[caller, path] = _Sight(self._order, content)
        self._sights.move_to_end((caller, path))
        if len(self._sights) > MOST_SIGHTS:
            self._sights.popitem(last=False)

    def check(self, caller: str | None, path: str, fs: Filesystem) -> None:
        """Raise `StaleRead` if somebody else changed a file since this caller last saw it, and it shows."""
        with self._lock:
            sight = self._sights.get((caller, path))
            if sight is None:
                return
            since = [
                change
                for changed, change in self._changes_around(path)
                if change.order > sight.order and change.caller != caller
            ]
        if not since:
            return
        now = _content(fs, path)
        if sight.content is not None and now == sight.content:
            return
        last = max(since, key=lambda change: change.order)
        raise StaleRead(_told(path, last, sight.content, now))

    def _changes_around(self, path: str) -> list[tuple[str, _Change]]:
        """Give the changes of a path and of the directories that it lies in."""
        found: list[tuple[str, _Change]] = []
        here = path
        while True:
            change = self._changes.get(here)
            if change is not None and is_within(path, here):
                found.append((here, change))
            if here == "/":
                return found
            here = here.rpartition("/")[0] or "/"


def _paths(event: object) -> Iterable[str]:
    path = getattr(event, "path", None)
    if isinstance(path, str):
        return (path,)
    if isinstance(event, EntryMoved | EntryCopied):
        return (event.source, event.destination)
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
