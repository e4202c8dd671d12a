"""The primitives of a host filesystem: reading the directory, and applying events to it atomically."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BufferedReader
from typing import Any, cast

import attrs

from weakfs.backends.host.apply_to_disk import CHANGES_ENTRY, CHANGES_FILE, apply
from weakfs.backends.host.foreign_changes import by_program, found_before, looks_like
from weakfs.backends.host.host_paths import HostPaths
from weakfs.backends.host.os_errors import described_errors
from weakfs.backends.host.root import HostRoot, Part, Work
from weakfs.backends.host.stream import HostStream
from weakfs.filesystem import FileEntry, Note
from weakfs.filesystem.operations.read import PathArg
from weakfs.filesystem.primitives import UNSEARCHABLE, Searched
from weakfs.platforms import garbage_collection_paused
from weakfs.processes.background import BackgroundProcesses
from weakfs.reducers.apply import REDUCERS, reduce, segments_of
from weakfs.reducers.events import (
    DirectoryMade,
    EntryCopied,
    EntryFound,
    EntryMoved,
    Event,
    FileAppended,
    FileSpliced,
    FileWritten,
    ModeChanged,
)
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.tree.leaf import CONTENT, CREATED_AT, MODIFIED_AT, Leaf, content_of, file, size_of
from weakfs.reducers.tree.listing import listing_of
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Listing, Node, Segments, find, path_of
from weakfs.session import Session
from weakfs.session.blobs.rope import Content
from weakfs.session.external_filesystems import InexactNote
from weakfs.snapshots.directory.entries import host_bytes
from weakfs.snapshots.directory.hard_links import SharedFile
from weakfs.snapshots.directory.held_directory import PASSAGE
from weakfs.snapshots.directory.nodes import Kind, OnDisk, read_examined

# Searches skip larger files, because they would have to be held in memory.
MOST_SEARCHED = 256 << 20

# For these events, a link at the path is followed if the policy allows it. All others concern the link itself.
FOLLOWING = (FileWritten, FileAppended, FileSpliced, DirectoryMade, ModeChanged)

# Where a path leads, and the status of what is there.
Place = tuple[Segments, os.stat_result | None]

# How a listing shows each kind of entry: is it a file, a directory, a link?
KINDS = {"file": (True, False, False), "directory": (False, True, False), "link": (False, False, True)}
NO_KIND = (False, False, False)

# Stand-ins for entries in a search: a directory, or a file whose size and content are known once it is opened.
LISTED: dict[Kind, Node] = {
    "directory": EMPTY_TREE,
    "file": file(cast(Content, object()), at=0),
}


class HostFiles(HostPaths):
    """Entries of a host directory, each looked up on demand."""

    __slots__ = ("_filesystem_id", "_root", "_session")

    _filesystem_id: str
    _root: HostRoot
    _session: Session

    @property
    def background(self) -> BackgroundProcesses:
        """The background processes that work in the directory."""
        raise NotImplementedError

    @property
    def filesystem_id(self) -> str:
        """The id of this filesystem in snapshots."""
        return self._filesystem_id

    def lookup(self, segments: Segments) -> Node | None:
        self._root.check_in_place()
        with described_errors("look at", path_of(segments)):
            return self._root.directory.node(segments)

    def _file(self, path: PathArg, verb: str) -> tuple[str, Leaf]:
        canonical, segments = self._parse(path)
        self._root.check_in_place()
        with described_errors(verb, canonical):
            leaf = self._root.directory.file(segments) if segments else None
        return self._file_there(path, verb) if leaf is None else (canonical, leaf)

    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        with described_errors("list", path_of(segments)):
            return self._root.directory.entries(segments)

    def readable_entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        self._root.check_in_place()
        return super().readable_entries(segments)

    def _names(self, segments: Segments) -> list[tuple[str, Kind]]:
        """Return the name and kind of each entry of a directory."""
        return self._root.directory.names(segments)

    def search_listing(self, segments: Segments) -> Listing:
        self._root.check_in_place()
        try:
            with described_errors("list", path_of(segments)):
                found = self._names(segments)
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            found = []
        return listing_of((name, LISTED[kind]) for name, kind in found if kind in LISTED)

    def list_entries(self, segments: Segments, prefix: str) -> tuple[FileEntry, ...]:
        with described_errors("list", path_of(segments)):
            listed = sorted(self._names(segments))
        # For 100,000 entries, the garbage collector would take as long as the listing itself.
        with garbage_collection_paused():
            return tuple([FileEntry(name, prefix + name, *KINDS.get(kind, NO_KIND)) for name, kind in listed])

    def content(self, path: str, leaf: Leaf) -> bytes:
        with described_errors("read", path):
            return content_of(leaf)

    def readable_content(self, path: str, leaf: Leaf) -> bytes | None:
        return None if size_of(leaf) > MOST_SEARCHED else super().readable_content(path, leaf)

    def readable_contents(self, segments: Segments, prefix: str, files: Sequence[Searched]) -> Iterator[bytes | None]:
        try:
            # Opened once for all files: opening the parents for each file took three times as long as reading 2 kB.
            directory = self._root.directory.open_directory(segments, PASSAGE)
        except OSError as error:
            if error.errno not in UNSEARCHABLE:
                with described_errors("search", prefix):
                    raise
            yield from (None for _ in files)
            return
        try:
            for name, searched in files:
                if type(searched) is bytes:
                    yield searched
                    continue
                try:
                    data = read_examined(directory, host_bytes(name), MOST_SEARCHED)
                except OSError as error:
                    if error.errno not in UNSEARCHABLE:
                        with described_errors("read", f"{prefix}/{name}"):
                            raise
                    data = None
                yield data
        finally:
            os.close(directory)

    def content_range(self, path: str, leaf: Leaf, start: int, stop: int) -> bytes:
        content = leaf[CONTENT]
        if not isinstance(content, OnDisk):
            return super().content_range(path, leaf, start, stop)
        with described_errors("read", path):
            return content.piece(start, stop)

    def content_stream(self, path: str, leaf: Leaf) -> BufferedReader:
        content = leaf[CONTENT]
        if not isinstance(content, OnDisk):
            return super().content_stream(path, leaf)
        with described_errors("read", path):
            return BufferedReader(HostStream(content.open(), path))

    def totals(self, segments: Segments) -> tuple[int, int, int]:
        self._root.check_in_place()
        with described_errors("scan", path_of(segments)):
            tree = self._root.directory.whole_directory(segments)
            return tree.total_size, tree.file_count, tree.directory_count

    def height(self, segments: Segments) -> int:
        from weakfs.reducers.tree.node import height

        with described_errors("scan", path_of(segments)):
            return height(self._root.directory.whole_directory(segments))

    def now(self) -> int:
        return self._session.now()

    def notify_subscribers(self) -> None:
        self._session._notify()

    @contextmanager
    def lock(self) -> Iterator[None]:
        with self._session.lock, self._root.lock:
            yield

    def apply(self, event: Event) -> tuple[Note, ...] | None:
        self._session._check_writable()
        (first, status), *second = self._places(event)
        places = [first, *(place for place, _ in second)]
        verb, path = _wording(event)
        may_be_shared = status is not None and status.st_nlink > 1 and isinstance(event, CHANGES_FILE)
        shared = self._shared(first) if may_be_shared else None
        others = [] if shared is None else [name for name in shared.names if name != first]
        claimed = [first if status is not None else self._claimed(first)]
        claimed += map(self._claimed, (*places[1:], *others))
        with self._work(verb, path, *claimed) as work:
            mark = len(work.journal.notes)
            # To the session, each name is a separate file.
            events = [event, *(_at(event, name) for name in others)]
            found: list[EntryFound] = []
            with self._parent_kept_open(event, first, claimed[0]):
                for one, at in zip(events, (places, *([name] for name in others)), strict=True):
                    found += found_before(self._root, self._session, one, at, self.filesystem_id)
                apply(self._root.directory, work.journal, event, *places, shared=shared)
            cause = self.background.cause if found else None
            for seen in self._attributed(found):
                self._session.dispatch(seen, cause=cause)
            own = self._session._cause_of_one_change() if others else None
            for one in events:
                self._session.dispatch(attrs.evolve(one, filesystem=self.filesystem_id), cause=own)
            return tuple(work.journal.notes[mark:])

    def _attributed(self, found: list[EntryFound]) -> Iterable[Event]:
        """Return the events for the entries that were found before a change."""
        began = self._root.began
        if began is None or not found:
            return found
        known = external_trees(self._session).tree(self.filesystem_id)
        return list(by_program(found, known, self._expected(*began)))

    def _expected(self, before: FileTree, began: int) -> FileTree:
        """Return a tree with the changes that were recorded after record `began`."""
        for record in self._session.records.since(began):
            if getattr(record.event, "filesystem", None) == self.filesystem_id and type(record.event) in REDUCERS:
                before = reduce(before, cast(Event, record.event))
        return before

    def creation_time(self, segments: Segments, node: Node) -> int:
        born = self._root.directory.born_at(segments, _modified_at(node))
        known = find(external_trees(self._session).tree(self.filesystem_id), segments)
        # An edit replaces the file; the session keeps the original creation time until somebody else changes the file.
        return min(born, known[CREATED_AT]) if type(known) is tuple and looks_like(node, known) else born

    def hard_links(self, segments: Segments) -> tuple[Segments, ...]:
        shared = self._shared(segments)
        return () if shared is None else tuple(name for name in shared.names if name != segments)

    def _shared(self, segments: Segments) -> SharedFile | None:
        running = self._running()
        return self._root.links.shared(segments, None if running is None else running.journal)

    def _places(self, event: Any) -> list[Place]:
        if isinstance(event, EntryMoved | EntryCopied):
            return [self._place(path, follow=False) for path in (event.source, event.destination)]
        return [self._place(event.path, follow=isinstance(event, FOLLOWING))]

    def _place(self, path: str, *, follow: bool) -> Place:
        """Return where a path leads, and the status of what is there."""
        # Canonical already: if it starts like the root, parsing it again would take it for a host path.
        segments = segments_of(path)
        status = self._status(path, segments)
        # An entry that is not a link, or a free name in a directory, does not lead anywhere else.
        above = self._status(path, segments[:-1]) if status is None else None
        is_free = above is not None and stat.S_ISDIR(above.st_mode)
        if not is_free and (status is None or stat.S_ISLNK(status.st_mode)):
            segments = self._locate_parsed((path, segments), follow)[1]
            status = self._status(path, segments)
        return segments, status

    def _status(self, path: str, segments: Segments) -> os.stat_result | None:
        with described_errors("look at", path):
            return self._root.directory.status(segments)

    def _claimed(self, segments: Segments) -> Segments:
        """Return the topmost path that a change at a path creates: its first missing parent, or the path itself."""
        while len(segments) > 1 and self._root.directory.status(segments[:-1]) is None:
            segments = segments[:-1]
        return segments

    def _parent_kept_open(self, event: Event, place: Segments, claimed: Segments) -> AbstractContextManager[None]:
        """Keep the directory of an entry open while the entry alone is changed."""
        is_alone = isinstance(event, CHANGES_ENTRY) and place and claimed == place
        return self._root.directory.keeping_open(place[:-1]) if is_alone else nullcontext()

    def _running(self) -> Work | None:
        """Return the unit of work of the current transaction, if any."""
        running = cast("Work | Part | None", self._session._journal(self.filesystem_id))
        return running.work if isinstance(running, Part) else running

    def _take(self, work: Work, *claimed: Segments) -> None:
        with self._root.lock:
            self._root.claim(work, *claimed)

    @contextmanager
    def _work(self, verb: str, path: str, *claimed: Segments) -> Iterator[Work]:
        """Change the disk atomically: as part of the current transaction's work, or as a separate unit of work."""
        running = self._running()
        if running is None and self._session.is_durable:
            # The events of the work are stored as one commit: both take effect, or neither does.
            with self._session.transaction(), self._work(verb, path, *claimed) as work:
                yield work
            return
        work = self._root.work() if running is None else running
        if running is not None:
            self._take(work, *claimed)
        mark = work.journal.mark
        try:
            if running is None:
                self._take(work, *claimed)
            with described_errors(verb, path):
                yield work
        except BaseException as error:
            try:
                for note in work.journal.undo(mark):
                    error.add_note(InexactNote.of(note, self.filesystem_id))
            except BaseException as second:
                raise self._session._needs_repair(self.filesystem_id, work.undo, second) from error
            if running is None:
                work.undo()
            raise
        if running is None:
            work.close()


def _modified_at(node: Node) -> int:
    return node.modified_at if type(node) is FileTree else node[MODIFIED_AT]


def _at(event: Any, segments: Segments) -> Event:
    """Return a change of one file as a change at another path."""
    moved: Event = attrs.evolve(event, path=path_of(segments))
    return moved


def _wording(event: Any) -> tuple[str, str]:
    if isinstance(event, EntryMoved | EntryCopied):
        return ("move" if isinstance(event, EntryMoved) else "copy"), event.source
    return "change", event.path
