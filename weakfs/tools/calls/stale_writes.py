"""The version of each file that a caller last saw, so that no caller overwrites a change that it has not seen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from threading import Lock

from weakfs.backends import InMemoryFilesystem
from weakfs.filesystem import Filesystem
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.messages import clip, one_line
from weakfs.reducers import FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import FileAppended, FileSpliced, FileWritten
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.tree.leaf import CELL, CONTENT, blob_digest, size_of
from weakfs.reducers.tree.node import find
from weakfs.session import MissingBlob, Record, Reverted, Session, SessionError
from weakfs.session.blobs.blob import digest_of
from weakfs.session.blobs.rope import joined
from weakfs.session.history.reduction import Row, event_of
from weakfs.session.slices.tags import tag_of
from weakfs.tools.calls.caller_changes import CallerChange, CallerChanges, paths_of, with_parents
from weakfs.tools.errors import StaleRead, UnreadFile
from weakfs.tools.permissions.guard import may_show, point_of
from weakfs.tools.slices import FileSeen, ToolCall, install_seen

# A larger file is identified by its size and modification time, so that reading a page of it does not read all of it.
MOST_HASHED = 1 << 23
# The maximum size of a file whose change a message shows.
MOST_COMPARED = 1 << 18
# How many characters of a difference a message shows.
SHOWN = 1500
# For calls without a caller, the versions of this many files are stored, those seen most recently.
MOST_SIGHTS = 4096
# The search for the call that changed a file reads this many records at a time, newest first. Naming the call in
# a message is not worth reading a long history, so the search ends after this many windows.
WINDOW = 512
MOST_WINDOWS = 64

Who = str | None
# What identifies the contents of a file; `None` if there is no file. For a caller it is text that a session can store:
# the digest, unless the file is very large. For calls without a caller it is only kept in memory, as the object that
# holds the contents in a leaf, so that no digest is computed.
Version = str | bytearray | None
# These events change the file at their path, and nothing below it. Their first field is the path, the last one the
# filesystem.
REVERTED = tag_of(Reverted)
OF_FILES = {tag_of(type_) for type_ in (FileWritten, FileAppended, FileSpliced)}


class SeenVersions:
    """What each caller of a session last saw of each file. Thread-safe.

    The session's `FilesSeen` slice stores it, so that it is saved with the session and shared by all its toolsets. What
    calls without a caller saw is stored only here, and only a change by a call that has a caller makes it stale.
    """

    def __init__(self, session: Session, filesystem: Filesystem) -> None:
        self._session = session
        self._files = filesystem
        self._name = str(getattr(filesystem, "filesystem_id", ""))
        self._lock = Lock()
        self._anonymous: OrderedDict[str, tuple[Version, int]] = OrderedDict()
        self._seen = install_seen(session)
        point = point_of(filesystem)
        # Records have paths without the mount point, calls have paths below it.
        self._named: Callable[[str], str] = str if point is None else point.mounted
        self._own: Callable[[str], str | None] = str if point is None else point.own
        self._by_callers = CallerChanges(session, self._name, self._named)

    def matter_to(self, caller: Who) -> bool:
        """Return whether a call can be stale. A call without a caller can be stale only if another call had one."""
        return caller is not None or self._by_callers.may_exist()

    def version(self, caller: Who, path: str) -> Version:
        """Return what identifies the contents of a file for a caller; `None` if there is no file."""
        files = self._files
        if type(files) is not InMemoryFilesystem:
            return version_of(files, path)
        try:
            leaf = files._file(path, "read")[1]
        except (OSError, ValueError):
            return None
        if caller is None:
            return leaf[CELL]
        return version_of(files, path) if size_of(leaf) > MOST_HASHED else blob_digest(leaf).hex()

    def path_of(self, path: str) -> str:
        """Return the path of a file after following links; raises the errors of reading it."""
        files = self._files
        if type(files) is InMemoryFilesystem:
            return files._file(path, "read")[0]
        return files.read_bytes(path, limit=0).path

    def saw(self, path: str, version: Version, *, seq: int) -> None:
        """Remember that a call without a caller has seen a version of a file, after record `seq`."""
        with self._lock:
            self._anonymous[path] = (version, seq)
            self._anonymous.move_to_end(path)
            if len(self._anonymous) > MOST_SIGHTS:
                self._anonymous.popitem(last=False)

    def sighting(self, caller: str, path: str, version: Version, *, seq: int) -> FileSeen | None:
        """Return the event that a caller saw a version of a file after record `seq`; `None` if already recorded."""
        known = self._sight(caller, path)
        if isinstance(version, bytearray) or (known is not None and known[0] == version):
            return None
        return FileSeen(caller, path, version, seq, self._name)

    def changed(self, caller: Who, rows: Iterable[Row]) -> dict[str, Version]:
        """Return the versions of the files that a caller's call changed, including those in directories it changed.

        Files that the call reverted are left out: its caller has not seen their present contents.
        """
        rows = list(rows)
        if any(row[2] == REVERTED for row in rows):
            return {}
        paths: dict[str, None] = {}
        above: set[str] = set()
        for row in rows:
            tag, fields = row[2], row[3]
            if tag in OF_FILES:
                if fields[-1] is None or fields[-1] == self._name:
                    paths[self._named(fields[0])] = None
            else:
                changed = self._paths(event_of(self._session._rules, row))
                paths.update(dict.fromkeys(changed))
                above.update(changed)
        inside: list[str] = []
        if above:
            known = [path for path in self._known_paths(caller) if path not in paths]
            inside = [path for path in known if not above.isdisjoint(with_parents(path))]
        return {path: self.version(caller, path) for path in (*paths, *inside)}

    def check(self, caller: Who, path: str, *, shown_by: Filesystem | None = None) -> None:
        """Raise `StaleRead` if a file is not as this caller last saw it.

        The message quotes the change if the filesystem may show it and the old contents are still stored.
        """
        sight = self._sight(caller, path)
        now = None if sight is None else self.version(caller, path)
        if sight is None or _is_same(sight[0], now):
            return
        last = self._by_callers.newest(path, sight[1]) if caller is None else self._last_change(caller, path, sight[1])
        # If the file was removed by a rollback, and not by another caller, creating it again overwrites nothing.
        if last is None and (caller is None or now is None):
            return
        is_shown = shown_by is not None and may_show(shown_by, path)
        raise StaleRead(_message(path, last, self._difference(path, sight) if is_shown else None))

    def check_was_read(self, caller: Who, path: str) -> None:
        """Raise `UnreadFile` if this caller never saw the file; a call without a caller may change any file."""
        if caller is not None and self._sight(caller, path) is None:
            raise UnreadFile(f"cannot change {path!r}: you have not read it; read it first, so that nothing is lost")

    def _sight(self, caller: Who, path: str) -> tuple[Version, int] | None:
        if caller is None:
            with self._lock:
                return self._anonymous.get(path)
        seen = self._seen.latest()
        return None if seen is None else seen.sight(self._name, caller, path)

    def _known_paths(self, caller: Who) -> list[str]:
        if caller is None:
            with self._lock:
                return [*self._anonymous]
        seen = self._seen.latest()
        return [] if seen is None else seen.paths(self._name, caller)

    def _last_change(self, caller: str, path: str, seq: int) -> ToolCall | None:
        """Return the last successful call of another caller that changed a file after record `seq`, for a message.

        Reads up to `MOST_WINDOWS` windows of records. O(records since the change).
        """
        own = one_line(caller)
        above = set(with_parents(path))
        calls: list[ToolCall] = []
        for record in islice(self._backwards(seq), MOST_WINDOWS * WINDOW):
            event = record.event
            if isinstance(event, ToolCall):
                calls = [call for call in calls if (call.first_seq or 0) < record.seq]
                if event.caller != own and event.status == "ok" and (event.last_seq or 0) > seq:
                    calls.append(event)
            elif not above.isdisjoint(self._paths(event)):
                for call in calls:
                    if (call.first_seq or 0) <= record.seq <= (call.last_seq or 0):
                        return call
        return None

    def _backwards(self, seq: int) -> Iterator[Record]:
        """Yield the records after number `seq`, newest first."""
        with self._session.lock:
            records, end = self._session.records, self._session.seq
        oldest = max(seq, end - len(records))
        while end > oldest:
            start = max(end - WINDOW, oldest)
            yield from reversed(tuple(islice(records.since(start), end - start)))
            end = start

    def _paths(self, event: object) -> tuple[str, ...]:
        own = paths_of(event) if getattr(event, "filesystem", None) in (None, self._name) else ()
        return tuple(map(self._named, own))

    def _difference(self, path: str, sight: tuple[Version, int]) -> str | None:
        """Return what changed since a file was seen; `None` if the old contents are gone or are not a short text."""
        before = b"" if sight[0] is None else self._content_at(path, sight)
        now = _content(self._files, path)
        if before is None or now is None or b"\0" in before[:8192] + now[:8192]:
            return None
        from weakfs.editing.unified_hunks import hunks
        from weakfs.reducers.merging.line_merge import split_lines

        lines = b"".join(hunks(split_lines(before), split_lines(now))).decode("utf-8", "replace")
        return clip(lines, SHOWN)

    def _content_at(self, path: str, sight: tuple[Version, int]) -> bytes | None:
        """Find in the session's history the contents that a caller saw."""
        with suppress(SessionError, MissingBlob, OSError):
            then = self._session.at(sight[1])
            known = external_trees(then).trees.get(self._name)
            tree = then[FileTree].latest()
            if known is not None:
                now = external_trees(self._session).known(self._name)
                tree = known.completed(now)
            own = self._own(path)
            node = None if tree is None or own is None else find(tree, segments_of(own))
            content = node[CONTENT] if type(node) is tuple else ""
            if not isinstance(content, str) and len(content) <= MOST_COMPARED:
                data = joined(content)
                digest = digest_of(data)
                return data if sight[0] in (digest, digest.hex()) else None
        return None


def _is_same(one: Version, other: Version) -> bool:
    if isinstance(one, bytearray) or isinstance(other, bytearray):
        # Empty until the digest of the contents is computed.
        return one is other or (bool(one) and one == other)
    return one == other


def version_of(fs: Filesystem, path: str) -> str | None:
    """Return what identifies a file's contents, its digest unless it is very large; `None` if there is no file."""
    try:
        fs = by_canonical_paths(fs)
        found = fs.read_bytes(path, limit=0)
        if found.size_bytes > MOST_HASHED:
            return f"{found.size_bytes} bytes of {fs.stat(found.path).modified_ns}"
        return digest_of(fs.read_bytes(path).content).hex()
    except (OSError, ValueError):
        return None


def _content(fs: Filesystem, path: str) -> bytes | None:
    """Return the contents of a file: empty if there is no file, `None` if it is too large to compare."""
    try:
        content = by_canonical_paths(fs).read_bytes(path, limit=MOST_COMPARED + 1).content
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""
    except (OSError, ValueError):
        return None
    return content if len(content) <= MOST_COMPARED else None


def _message(path: str, change: ToolCall | CallerChange | None, difference: str | None) -> str:
    if change is None:
        said = f"cannot change {path!r}: it has changed since you last read it"
    else:
        who = "another caller" if change.caller is None else f"{change.caller!r}"
        said = f"cannot change {path!r}: {who} has changed it since you last read it (call {change.call_id})"
    if difference is None:
        return f"{said}; read it again first"
    return f"{said}; read the file again before you change it. This is what changed:\n{difference}"
