"""The differences between two trees of a repository, and the file events that apply them to a session's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.history.git_import.foreign_repository import ImportRefused
from weakfs.history.git_import.objects import Objects, TreeEntry
from weakfs.reducers import FileTree
from weakfs.reducers.events import EntryDeleted, FileWritten, LinkMade, ModeChanged
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import CONTENT, MODE, content_of, is_file, is_link
from weakfs.reducers.tree.node import entries, find, is_tree
from weakfs.snapshots.git.reserved_names import is_refused

DIRECTORY, LINK, SUBMODULE = 0o040000, 0o120000, 0o160000
FILES = {0o100644: 0o644, 0o100755: 0o755, 0o100664: 0o644}
MAX_DEPTH, MAX_NAME = 64, 255
# A commit that changes more files is refused: a few objects can represent any number of files.
MAX_CHANGES = 1_000_000
MAX_LINK = 4_096

Segments = tuple[str, ...]


@frozen
class SkippedEntry:
    """An entry of a commit that was left out, and why."""

    commit: str
    path: str
    reason: str


@define(eq=False)
class Changes:
    """Finds differences between trees, and reads contents. `skip` is called for each entry that is left out."""

    objects: Objects
    max_file_size: int | None
    skip: Callable[[str, str], object]
    # The contents of one commit by id, so that equal contents are one object.
    _contents: dict[str, bytes | None] = field(factory=dict[str, "bytes | None"])

    def between(self, old: str | None, new: str) -> dict[Segments, TreeEntry | None]:
        """Return the entries that differ: the new file or link, or `None` for a removed entry and all inside it."""
        found: dict[Segments, TreeEntry | None] = {}
        stack: list[tuple[Segments, str | None, str]] = [((), old, new)]
        visited = 0
        while stack:
            above, before_id, after_id = stack.pop()
            visited += 1
            before = {} if before_id is None else self.objects.tree(before_id)
            after = self.objects.tree(after_id)
            for name in dict.fromkeys((*before, *after)):
                was, entry = before.get(name), after.get(name)
                if was == entry:
                    continue
                segments = self._segments(above, name, entry)
                if segments is None:
                    continue
                if entry is not None and entry.mode == DIRECTORY:
                    below = was.object_id if was is not None and was.mode == DIRECTORY else None
                    stack.append((segments, below, entry.object_id))
                    if was is not None and below is None:
                        found[segments] = None
                else:
                    found[segments] = entry
            if len(found) + len(stack) + visited > MAX_CHANGES:
                raise ImportRefused(
                    f"cannot import {self.objects.git_dir!r}: one of its commits changes more than {MAX_CHANGES} files"
                )
        return found

    def _segments(self, above: Segments, name: bytes, entry: TreeEntry | None) -> Segments | None:
        """Return the path of an entry; if a session cannot have that name, report that and return `None`."""
        text = names.from_bytes(name)
        reason = None
        if not name or name in (b".", b"..") or b"/" in name:
            reason = "its name is not a valid file name"
        elif is_refused(text, is_link=entry is not None and entry.mode == LINK):
            reason = "its name is reserved for git"
        elif len(name) > MAX_NAME or len(above) >= MAX_DEPTH:
            reason = "its path is too long"
        if reason is None:
            return (*above, text)
        if entry is not None:
            self.skip("/".join(("", *above, text)), reason)
        return None

    def events(self, tree: FileTree, changes: dict[Segments, TreeEntry | None], at: int) -> Iterator[object]:
        """Yield the events that change the files of a session; `tree` has the files before the first event."""
        self._contents.clear()
        gone: list[Segments] = []
        for segments, entry in sorted(changes.items(), key=lambda item: item[0]):
            goes = entry is None or not self._can_have(segments, entry)
            if goes and find(tree, segments) is not None:
                gone.append(segments)
        blocked = {
            segments[:length]
            for segments, entry in changes.items()
            if entry is not None
            for length in range(1, len(segments))
            if (node := find(tree, segments[:length])) is not None and not is_tree(node)
        }
        removed = _with_empty_directories(tree, {*gone, *blocked})
        for segments in sorted(removed):
            yield EntryDeleted(_path(segments), at)
        for segments, entry in sorted(changes.items(), key=lambda item: item[0]):
            if entry is not None and self._can_have(segments, entry, report=False):
                node = None if _is_below(segments, removed) else find(tree, segments)
                yield from self._put(segments, entry, node, at)

    def _can_have(self, segments: Segments, entry: TreeEntry, *, report: bool = True) -> bool:
        """Return whether a session can have a file or a link."""
        reason = None
        if entry.mode == SUBMODULE:
            reason = "it is a submodule"
        elif entry.mode != LINK and entry.mode not in FILES:
            reason = f"its mode is {entry.mode:06o}"
        else:
            size = self.objects.size(entry.object_id)
            most = MAX_LINK if entry.mode == LINK else self.max_file_size
            if size is None:
                reason = "its contents are missing"
            elif most is not None and size > most:
                reason = f"it has {size} bytes, more than {most}"
            elif entry.mode == LINK and (not size or b"\0" in (self._content(entry.object_id) or b"\0")):
                reason = "its target is not a path"
        if reason is not None and report:
            self.skip(_path(segments), reason)
        return reason is None

    def _put(self, segments: Segments, entry: TreeEntry, node: object, at: int) -> Iterator[object]:
        path = _path(segments)
        content = self._content(entry.object_id) or b""
        leaf = node if isinstance(node, tuple) else None
        if entry.mode == LINK:
            target = names.from_bytes(content)
            if leaf is not None and is_link(leaf) and leaf[CONTENT] == target:
                return
            if node is not None:
                yield EntryDeleted(path, at)
            yield LinkMade(path, target, at)
            return
        mode = FILES[entry.mode]
        if leaf is None or not is_file(leaf):
            if node is not None:
                yield EntryDeleted(path, at)
            yield FileWritten(path, content, at, mode)
        elif content_of(leaf) != content:
            yield FileWritten(path, content, at, mode)
        elif leaf[MODE] != mode:
            yield ModeChanged(path, mode, at)

    def _content(self, object_id: str) -> bytes | None:
        if object_id not in self._contents:
            self._contents[object_id] = self.objects.blob(object_id)
        return self._contents[object_id]


def _path(segments: Segments) -> str:
    return "/" + "/".join(segments)


def _is_below(segments: Segments, removed: set[Segments]) -> bool:
    return any(segments[:length] in removed for length in range(1, len(segments) + 1))


def _with_empty_directories(tree: FileTree, gone: set[Segments]) -> set[Segments]:
    """Return the removed paths, with a directory in place of its entries if it becomes empty, as in git."""
    found: set[Segments] = set()
    left: dict[Segments, int] = {}
    waiting = list(gone)
    while waiting:
        segments = waiting.pop()
        above = segments[:-1]
        if segments in found:
            continue
        found.add(segments)
        if above:
            if above not in left:
                parent = find(tree, above)
                left[above] = len(entries(parent)) if isinstance(parent, FileTree) else 0
            left[above] -= 1
            if not left[above]:
                waiting.append(above)
    return {one for one in found if not any(one[:length] in found for length in range(1, len(one)))}
