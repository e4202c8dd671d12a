"""The guarded primitives of a filesystem: all methods derived from them are guarded as well."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from errno import EACCES
from io import BufferedReader

from weakfs.errors import fault
from weakfs.filesystem import BaseFilesystem, FileEntry, Limits, Note, SymlinkPolicy
from weakfs.filesystem.path_lookup import PathLookup, Place
from weakfs.filesystem.paths import Parsed, join
from weakfs.filesystem.primitives import Searched
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import EntryCopied, EntryDeleted, EntryMoved, Event, FileAppended, FileSpliced, FileWritten
from weakfs.reducers.tree.leaf import CONTENT, NO_FILE, Leaf, file, is_file, size_of
from weakfs.reducers.tree.node import FileTree, Listing, Node, Segments, path_of
from weakfs.session.interruption import is_interruption
from weakfs.tools.permissions.decisions import Access
from weakfs.tools.permissions.operations import Operation

OUTSIDE = ".."
# Replaces a file in a listing if its contents may not be shown.
WITHHELD: Leaf = file(b"", at=0)


class GuardedPrimitives(BaseFilesystem):
    """The files of `inner` for one operation of one call.

    Rules apply to the path after links are resolved. Searches and walks skip what may not be searched or listed, just
    as they skip unreadable files on a host.
    """

    __slots__ = (
        "_access",
        "_inner",
        "_operation",
        "_reads",
        "_scanned_bytes",
        "_scanned_files",
        "cut",
        "follow_symlinks",
        "limits",
        "withheld",
    )

    def __init__(self, inner: PathLookup, access: Access, operation: Operation, *, reads: bool = False) -> None:
        self._inner = inner
        # Whether a search reads files, and skips those that may not be read.
        self._reads = reads
        self._access = access
        self._operation: Operation = operation
        self.limits: Limits = inner.limits
        self.follow_symlinks: SymlinkPolicy = access.narrowed(inner.follow_symlinks)
        self._scanned_files = self._scanned_bytes = 0
        # Whether a search was cut because it reached its limits.
        self.cut = False
        # The number of files that a search skipped because their contents may not be shown.
        self.withheld = 0

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self._inner.read_only

    @property
    def root(self) -> str:
        """The host directory in which the files are, if they are in one."""
        return self._inner.root

    @property
    def filesystem_id(self) -> str:
        """The id of the inner filesystem."""
        return self._inner.filesystem_id

    # Judged operations

    def _locate(self, path: str | os.PathLike[str], *, follow: bool = True) -> Place:
        parsed = self._parse(path)
        canonical = parsed[0]
        searching = self._operation in ("search", "list")
        self._access.check(self._operation, canonical, passing=searching)
        place = self._locate_parsed(parsed, follow)
        found, segments, node = place
        if segments[:1] == (OUTSIDE,):
            # The entry has no path here, so no root and no rule can apply to it.
            operations: tuple[Operation, ...] = (self._operation, "read") if self._reads else (self._operation,)
            why = f"use {canonical!r}, which leads out of the root"
            self._access.check_everything(*operations, why=why, withheld=True)
        else:
            passing = searching and type(node) is FileTree
            # Most paths are canonical and were checked above.
            if found != canonical or passing != searching:
                self._access.check(self._operation, found, passing=passing)
            concealed = self._access.concealment(found) if self._reads and type(node) is tuple else None
            if concealed is not None:
                raise concealed
        return place

    def _check_link(self, path: str, here: Segments) -> None:
        # The result of an operation reveals where a link leads, and that is the content of the link.
        concealed = None if here[0] == OUTSIDE else self._access.concealment(path_of(here))
        if concealed is not None:
            raise concealed

    def _file(self, path: str | os.PathLike[str], verb: str) -> tuple[str, Leaf]:
        canonical, _, node = self._locate(path)
        if type(node) is not tuple or type(node[CONTENT]) in NO_FILE:
            canonical, node = self._file_there(path, verb)
        return canonical, self._inner._record_read(canonical, node, verb)

    def _resolved(self) -> PathLookup:
        """Return the files for a change at a resolved path, so that a link swapped in meanwhile is refused."""
        bounded = self._access.roots is not None or bool(self._access.policy.rules)
        wanted: SymlinkPolicy = "deny" if bounded else self.follow_symlinks
        if self._inner.follow_symlinks == wanted:
            return self._inner
        strict = copy(self._inner)
        strict.follow_symlinks = wanted
        return strict

    def apply(self, event: Event) -> tuple[Note, ...] | None:
        access = self._access
        if isinstance(event, EntryMoved | EntryCopied):
            self._check_transfer(event)
        elif isinstance(event, EntryDeleted):
            access.check_changes((event.path,), self._check_below(event.path))
        else:
            path: str = event.path  # type: ignore[union-attr]  # no event here replaces the whole tree
            access.check("write", path)
            access.check_changes((path,))
            if isinstance(event, FileWritten):
                access.check_size(path, len(event.content))
            elif isinstance(event, FileAppended):
                access.check_size(path, len(event.tail))
            elif isinstance(event, FileSpliced):
                access.check_size(path, sum(len(content) for _, _, content in event.pieces))
            access.check_carried(path)
            self._check_hard_links(path)
        return self._resolved().apply(event)

    def _check_hard_links(self, path: str) -> None:
        """Check a change under every name of the file: a hard link must not bypass a rule about another name."""
        for segments in self._inner.hard_links(segments_of(path)):
            if not self._access.permits("write", path_of(segments)):
                raise fault(
                    PermissionError,
                    EACCES,
                    f"cannot write {path!r}: it is a hard link to a file with a name that may not be written; write a "
                    f"new file, or delete this name first",
                )
            self._access.check_carried(path_of(segments))

    def _check_transfer(self, event: EntryMoved | EntryCopied) -> None:
        """Check both ends, entry by entry: hidden contents are not moved to where they could be seen."""
        access, source, destination = self._access, event.source, event.destination
        size = below = 0
        is_measured = isinstance(event, EntryCopied) and access.capability.max_write_bytes is not None
        for path, node in self._tree(source):
            target = destination + path[len(source) :]
            access.check_below("write", target, destination, origin=path)
            if isinstance(event, EntryMoved):
                access.check_below("write", path, source)
            access.check_transfer(path, target, named=(source, destination))
            if is_measured and type(node) is not FileTree and not access.shows("stat", path):
                access.check_unmeasured(destination, "the size of a file that would be copied may not be revealed")
            size, below = size + (0 if type(node) is FileTree else size_of(node)), below + 1
        if isinstance(event, EntryMoved):
            access.check_changes((source, destination), below - 1)
        else:
            access.check_size(destination, size)
            access.check_changes((destination,), below - 1)

    def _check_below(self, path: str) -> int:
        """Check a deletion, entry by entry; return the number of deleted entries below the path."""
        if not self._access.policy.has_rule_for("write", "edit", "patch"):
            self._access.check("write", path)
            segments = segments_of(path)
            if type(self._inner.lookup(segments)) is not FileTree:
                return 0
            _, files, directories = self._inner.totals(segments)
            return files + directories
        below = -1
        for entry, _ in self._tree(path):
            self._access.check_below("write", entry, path)
            below += 1
        return max(below, 0)

    def _tree(self, path: str) -> Iterable[tuple[str, Node]]:
        self._inner._check_repeats(segments_of(path))
        stack = [path]
        while stack:
            here = stack.pop()
            segments = segments_of(here)
            node = self._inner.lookup(segments)
            if node is None:
                continue
            yield here, node
            if type(node) is FileTree:
                stack += [join(here, name) for name, _ in self._inner.entries(segments)]

    # Entries that a search sees

    def lookup(self, segments: Segments) -> Node | None:
        node = self._inner.lookup(segments)
        if node is None or self._operation not in ("search", "list"):
            return node
        # A path that may not be read is refused, not reported as missing: see `_locate`.
        is_hidden = self._access.hides(self._operation, path_of(segments), is_directory=type(node) is FileTree)
        return None if is_hidden else node

    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        return self._seen(segments, self._inner.entries(segments))

    def readable_entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        return self._seen(segments, self._inner.readable_entries(segments))

    def search_listing(self, segments: Segments) -> Listing:
        if self._access.policy.rules or self._is_bounded:
            names, found, size = super().search_listing(segments)
        else:
            names, found, size = self._inner.search_listing(segments)
        if not self._access.withholds_some:
            return names, found, size
        prefix = path_of(segments) if segments else ""
        seen = (
            node if type(node) is FileTree or not self._access.withholds(f"{prefix}/{name}") else WITHHELD
            for name, node in zip(names, found, strict=True)
        )
        return names, tuple(seen), None

    def list_entries(self, segments: Segments, prefix: str) -> tuple[FileEntry, ...]:
        if self._operation == "list" and not self._access.policy.rules:
            return self._inner.list_entries(segments, prefix)
        return super().list_entries(segments, prefix)

    def _seen(self, segments: Segments, entries: Iterable[tuple[str, Node]]) -> Iterable[tuple[str, Node]]:
        if self._operation not in ("search", "list"):
            return entries
        prefix = path_of(segments) if segments else ""
        if self._access.policy.rules:
            entries = [(name, node) for name, node in entries if self._shows(f"{prefix}/{name}", node)]
        if self._operation == "search" and self._is_bounded:
            return self._within_budget(prefix, entries)
        return entries

    @property
    def _is_bounded(self) -> bool:
        capability = self._access.capability
        return (capability.max_scan_files, capability.max_scan_bytes) != (None, None)

    def _shows(self, path: str, node: Node) -> bool:
        # The roots need no check: everything below an allowed directory is inside, and its parents lead there.
        is_directory = type(node) is FileTree
        if self._reads and not is_directory and self._access.denial("read", path) is not None:
            return False
        return not self._access.hides(self._operation, path, is_directory=is_directory)

    def _within_budget(self, prefix: str, entries: Iterable[tuple[str, Node]]) -> Iterable[tuple[str, Node]]:
        """Return entries in order of name, as many as the search may still look at."""
        shown: list[tuple[str, Node]] = []
        for name, node in sorted(entries, key=lambda entry: entry[0]):
            if self.cut:
                break
            is_withheld = self._reads and self._access.withholds(f"{prefix}/{name}")
            if type(node) is not FileTree and not is_withheld:
                room = self._room_for(node)
                if room is not None:
                    self.cut = True
                    beginning = self._beginning(f"{prefix}/{name}", node, room) if self._reads else b""
                    if beginning:
                        shown.append((name, (beginning, *node[1:])))
                    break
            shown.append((name, node))
        return shown

    def _room_for(self, leaf: Leaf) -> int | None:
        """Count a file; return how many of its bytes may be read, `None` for all."""
        capability = self._access.capability
        size = size_of(leaf) if is_file(leaf) else 0
        self._scanned_files += 1
        if capability.max_scan_files is not None and self._scanned_files > capability.max_scan_files:
            return 0
        left = None if capability.max_scan_bytes is None else capability.max_scan_bytes - self._scanned_bytes
        self._scanned_bytes += size
        return None if left is None or size <= left else max(left, 0)

    def _beginning(self, path: str, leaf: Leaf, size: int) -> bytes:
        """Return the whole lines in the first bytes of a file; nothing if it cannot be read."""
        try:
            data = self._inner.content_range(path, leaf, 0, size) if size else b""
        except OSError as error:
            if is_interruption(error):
                raise
            return b""
        return data[: data.rfind(b"\n") + 1]

    def _content_searched_alone(self, path: str, leaf: Leaf) -> bytes | None:
        room = self._room_for(leaf) if self._is_bounded else None
        if room is None:
            return self._inner.readable_content(path, leaf)
        self.cut = True
        return self._beginning(path, leaf, room) or None

    # Methods passed on to the inner filesystem

    def _parse(self, path: str | os.PathLike[str]) -> Parsed:
        return self._inner._parse(path)

    def _below_host_root(self, path: str) -> str | None:
        return self._inner._below_host_root(path)

    def _climb(self, done: list[str], path: str) -> None:
        self._inner._climb(done, path)
        self._keep_inside(done, path)

    def _from_the_top(self, target: str, path: str) -> tuple[list[str], str]:
        done, rest = self._inner._from_the_top(target, path)
        self._keep_inside(done, path)
        return done, rest

    def _keep_inside(self, done: list[str], path: str) -> None:
        if self.follow_symlinks != "allow" and done[:1] == [OUTSIDE]:
            raise self._outside(path)

    def content(self, path: str, leaf: Leaf) -> bytes:
        return self._inner.content(path, leaf)

    def content_range(self, path: str, leaf: Leaf, start: int, stop: int) -> bytes:
        return self._inner.content_range(path, leaf, start, stop)

    def content_stream(self, path: str, leaf: Leaf) -> BufferedReader:
        return self._inner.content_stream(path, leaf)

    def readable_contents(self, segments: Segments, prefix: str, files: Sequence[Searched]) -> Iterator[bytes | None]:
        contents = self._inner.readable_contents(segments, prefix, [one for one in files if one[1] is not WITHHELD])
        for _, searched in files:
            if searched is WITHHELD:
                self.withheld += 1
                yield None
            else:
                yield next(contents)

    def _check_repeats(self, segments: Segments) -> None:
        self._inner._check_repeats(segments)

    def totals(self, segments: Segments) -> tuple[int, int, int]:
        return self._inner.totals(segments)

    def height(self, segments: Segments) -> int:
        return self._inner.height(segments)

    def tree(self) -> FileTree:
        self._access.check_everything("read", why="read the whole tree")
        return self._inner.tree()

    def now(self) -> int:
        return self._inner.now()

    def lock(self) -> AbstractContextManager[object]:
        return self._inner.lock()

    def creation_time(self, segments: Segments, node: Node) -> int:
        return self._inner.creation_time(segments, node)

    def notify_subscribers(self) -> None:
        self._inner.notify_subscribers()

    def read_view(self) -> GuardedPrimitives:
        self._inner = self._inner._view()
        return self
