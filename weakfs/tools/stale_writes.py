"""Which version of each file a caller last saw, so that nobody overwrites what changed since."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from threading import Lock

from weakfs.editing.unified_hunks import hunks
from weakfs.filesystem import Filesystem
from weakfs.messages import clip, one_line
from weakfs.reducers import EntryCopied, EntryMoved, ExternalTrees, FileTree, TreeRestored
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.leaf import CONTENT
from weakfs.reducers.tree.line_merge import split_lines
from weakfs.reducers.tree.node import find
from weakfs.session import MissingBlob, Record, Session, SessionError
from weakfs.session.blobs.blob import digest_of
from weakfs.session.blobs.rope import joined
from weakfs.session.history.log import Log
from weakfs.tools.errors import StaleRead, UnreadFile
from weakfs.tools.slices import FileSeen, ToolCall, install, install_seen

# A larger file is known by its size and modification time: reading a page of it does not cost reading all of it.
MOST_HASHED = 1 << 23
# A change of a file up to this size is shown.
MOST_COMPARED = 1 << 18
# How much of a difference is shown.
SHOWN = 1500
# What calls without a caller saw is kept for so many files, the newest.
MOST_SIGHTS = 4096

Who = str | None
# What each path held when it was seen.
Sights = dict[str, FileSeen]


class Readings:
    """What each caller of a session last saw of each file. Any number of threads may use it.

    The session's `FileSeen` slice holds it, so that it is saved with the session and shared by all its toolsets. What
    calls without a caller saw is held here alone, and only a change by a call that has a caller makes it stale.
    """

    def __init__(self, session: Session, filesystem: Filesystem) -> None:
        self._session = session
        self._name = str(getattr(filesystem, "filesystem_id", ""))
        self._lock = Lock()
        self._anonymous: OrderedDict[str, FileSeen] = OrderedDict()
        # The sights of each caller in as many values of the slice as were looked at last.
        self._indexed: Log[FileSeen] = Log()
        self._by_caller: dict[str, Sights] = {}
        install(session)
        install_seen(session)

    def saw(self, caller: Who, path: str, version: str | None, *, seq: int, call_id: str) -> None:
        """Remember that a caller has seen a version of a file, after record `seq`."""
        if caller is None:
            with self._lock:
                self._anonymous[path] = FileSeen("", path, version, seq, self._name)
                self._anonymous.move_to_end(path)
                if len(self._anonymous) > MOST_SIGHTS:
                    self._anonymous.popitem(last=False)
            return
        known = self._sights(caller).get(path)
        if known is None or known.version != version:
            self._session.dispatch(FileSeen(caller, path, version, seq, self._name), cause=call_id)

    def changed(self, caller: Who, records: Iterable[Record], fs: Filesystem) -> dict[str, str | None]:
        """Return what a caller's call leaves in each file that it changed, or that lies in what it changed."""
        paths = dict.fromkeys(path for record in records for path in self._paths(record.event))
        known = tuple(self._sights(caller))
        inside = [path for path in known if path not in paths and any(here in paths for here in _with_parents(path))]
        return {path: version_of(fs, path) for path in (*paths, *inside)}

    def check(self, caller: Who, path: str, fs: Filesystem, *, may_show: bool) -> None:
        """Raise `StaleRead` if a file is another than this caller last saw.

        The message quotes what changed if it `may_show` it and the old contents are still there.
        """
        sight = self._sights(caller).get(path)
        now = None if sight is None else version_of(fs, path)
        if sight is None or sight.version == now:
            return
        last = self._last_change(caller, path, sight.seq)
        # A file that no other caller removed, but a rollback, is not overwritten: making it again is fine.
        if last is None and (caller is None or now is None):
            return
        raise StaleRead(_told(path, last, self._difference(sight, fs) if may_show else None))

    def check_was_read(self, caller: Who, path: str) -> None:
        """Raise `UnreadFile` for a file that this caller never saw; a call without a caller may change any."""
        if caller is not None and path not in self._sights(caller):
            raise UnreadFile(f"cannot change {path!r}: you have not read it; read it first, so that nothing is lost")

    def _sights(self, caller: Who) -> Sights:
        with self._lock:
            if caller is None:
                return self._anonymous
            values = self._values(FileSeen)
            if not values.extends(self._indexed):
                # A transaction sees less than what was indexed, or another line of history.
                return self._collected(values, {}).get(caller, {})
            self._collected(values.since(len(self._indexed)), self._by_caller)
            self._indexed = values
            return self._by_caller.get(caller, {})

    def _collected(self, values: Iterable[FileSeen], into: dict[str, Sights]) -> dict[str, Sights]:
        for seen in values:
            if seen.filesystem == self._name:
                into.setdefault(seen.caller, {})[seen.path] = seen
        return into

    def _values(self, type_: type) -> Log[FileSeen]:
        values = self._session.table("log").get(self._session.spec_of(type_).tag)
        return Log() if values is None else values

    def _last_change(self, caller: Who, path: str, seq: int) -> ToolCall | None:
        """Return the last successful call of another caller that changed a file after record `seq`."""
        own = None if caller is None else one_line(caller)
        for call in reversed(self._session[ToolCall].all()):
            first, last = call.first_seq, call.last_seq
            if call.caller == own or call.status != "ok" or first is None or last is None or last <= seq:
                continue
            made = islice(self._session.records.since(first - 1), last - first + 1)
            if any(here in self._paths(record.event) for record in made for here in _with_parents(path)):
                return call
        return None

    def _paths(self, event: object) -> tuple[str, ...]:
        return paths_of(event) if getattr(event, "filesystem", None) in (None, self._name) else ()

    def _difference(self, sight: FileSeen, fs: Filesystem) -> str | None:
        """Return what changed since a file was seen, `None` if the old contents are gone or no short text."""
        before = b"" if sight.version is None else self._content_at(sight)
        now = _content(fs, sight.path)
        if before is None or now is None or b"\0" in before[:8192] + now[:8192]:
            return None
        lines = b"".join(hunks(split_lines(before), split_lines(now))).decode("utf-8", "replace")
        return clip(lines, SHOWN)

    def _content_at(self, sight: FileSeen) -> bytes | None:
        """Find the contents that a caller saw in the history of the session."""
        with suppress(SessionError, MissingBlob, OSError):
            then = self._session.at(sight.seq)
            known = (then[ExternalTrees].latest() or ExternalTrees()).trees.get(self._name)
            tree = then[FileTree].latest()
            if known is not None:
                now = (self._session[ExternalTrees].latest() or ExternalTrees()).known(self._name)
                tree = known.completed(now)
            node = None if tree is None else find(tree, segments_of(sight.path))
            content = node[CONTENT] if type(node) is tuple else ""
            if not isinstance(content, str) and len(content) <= MOST_COMPARED:
                data = joined(content)
                return data if digest_of(data).hex() == sight.version else None
        return None


def version_of(fs: Filesystem, path: str) -> str | None:
    """Return what identifies a file's contents, its digest unless it is very large; `None` for no file."""
    try:
        found = fs.read_bytes(path, limit=0)
        if found.size_bytes > MOST_HASHED:
            return f"{found.size_bytes} bytes of {fs.stat(found.path).modified_ns}"
        return digest_of(fs.read_bytes(path).content).hex()
    except (OSError, ValueError):
        return None


def paths_of(event: object) -> tuple[str, ...]:
    """Return the paths that an event changes; the root for a tree that became another as a whole."""
    path = getattr(event, "path", None)
    if isinstance(path, str):
        return (path,)
    if isinstance(event, EntryMoved):
        return (event.source, event.destination)
    if isinstance(event, EntryCopied):
        return (event.destination,)
    return ("/",) if isinstance(event, TreeRestored) else ()


def _with_parents(path: str) -> Iterator[str]:
    """Go through a path and the directories that it lies in."""
    while path != "/":
        yield path
        path = path.rpartition("/")[0] or "/"
    yield path


def _content(fs: Filesystem, path: str) -> bytes | None:
    """Return the contents of a file; empty if there is none, `None` if it is too large to be compared."""
    try:
        content = fs.read_bytes(path, limit=MOST_COMPARED + 1).content
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""
    except (OSError, ValueError):
        return None
    return content if len(content) <= MOST_COMPARED else None


def _told(path: str, change: ToolCall | None, difference: str | None) -> str:
    if change is None:
        said = f"cannot change {path!r}: it changed since you last read it"
    else:
        who = "another caller" if change.caller is None else f"{change.caller!r}"
        said = f"cannot change {path!r}: {who} changed it since you last read it (call {change.call_id})"
    if difference is None:
        return f"{said}; read it again first"
    return f"{said}; this changed, read the file again before you change it:\n{difference}"
