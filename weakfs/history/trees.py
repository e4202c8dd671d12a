"""The files of a session at any of its moments, with everything that the session knows about them."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.reducers import FileTree, LowerEntry, LowerFound
from weakfs.reducers.apply import segments_of
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.partial_trees import filled, missing, without_whiteouts
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import EMPTY_TREE, Node, Segments, is_whiteout, walk
from weakfs.session import Session, SessionView


class Trees:
    """The files of a session at any of its moments, including everything the session knows about them at its end.

    Files of a lower layer that were read only later are included: they existed, with the same contents, at that moment.
    """

    def __init__(self, session: Session) -> None:
        self._external = external_trees(session)
        self._found = _found(session)
        # A session that is not a layer over other files needs nothing else.
        self._is_layer = bool(self._found.node_count or session[LowerEntry].all())
        self._hidden = tuple(_hidden(session)) if self._is_layer else ()

    def at(self, moment: Session | SessionView, filesystem: str | None) -> FileTree:
        """Return the files at a moment. O(its entries) for a layer, otherwise O(files first read later)."""
        if filesystem is not None:
            return external_trees(moment).known(filesystem).completed(self._external.known(filesystem))
        own = moment[FileTree].latest() or EMPTY_TREE
        if not self._is_layer:
            return own
        completed = filled(own, missing(_found(moment), self._found), ())
        return without_whiteouts(filled(completed, self._hidden, ()))

    def all(self, moment: Session | SessionView) -> dict[str | None, FileTree]:
        """Return the files of each filesystem at a moment: first the session's own, whose name is `None`."""
        return {name: self.at(moment, name) for name in (None, *sorted(external_trees(moment).trees))}

    def changed(self, before: SessionView, after: SessionView) -> dict[str | None, tuple[FileTree, FileTree]]:
        """Return the files before and after a change, by filesystem; only those that may have changed."""
        names: list[str | None] = []
        if before[FileTree].latest() is not after[FileTree].latest():
            names.append(None)
        old, new = external_trees(before), external_trees(after)
        if old is not new:
            names += [name for name in sorted(new.trees) if old.tree(name) is not new.tree(name)]
        return {name: (self.at(before, name), self.at(after, name)) for name in names}


def chosen_filesystem(moment: Session | SessionView, wanted: str | None) -> str | None:
    """Return the id of the requested external filesystem; `None` means the session's own files.

    If the session has no files of its own, the default is its only external filesystem. Raises `ValueError` if the
    requested one does not exist, or if there are several and none is requested.
    """
    known = sorted(external_trees(moment).trees)
    there = ", ".join(map(repr, known)) or "none"
    if wanted is not None:
        if wanted not in known:
            raise ValueError(f"the session has no filesystem {wanted!r}; it has: {there}")
        return wanted
    own = moment[FileTree].latest()
    if not known or (own is not None and own.node_count):
        return None
    if len(known) > 1:
        raise ValueError(f"the session has several filesystems: {there}; pass one as filesystem")
    return known[0]


def _found(moment: Session | SessionView) -> FileTree:
    return (moment[LowerFound].latest() or LowerFound()).tree


def _hidden(session: Session) -> Iterator[tuple[Segments, Node]]:
    """Yield the entries that a layer hides at the session's end, as far as known, without their contents."""
    seen = {entry.path: entry for entry in session[LowerEntry].all()}
    for path, node in walk(session[FileTree].latest() or EMPTY_TREE):
        entry = seen.get(path)
        if is_whiteout(node) and entry is not None:
            at = entry.modified_ns
            directory = FileTree({}, (), entry.mode, at, at)
            yield (
                segments_of(path),
                directory if entry.kind == "directory" else leaves.file(b"", mode=entry.mode, at=at),
            )
