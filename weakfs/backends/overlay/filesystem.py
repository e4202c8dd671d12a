"""A writable layer over other files, which are read in place; changes stay in a session until they are committed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from copy import copy
from typing import Self, cast

from weakfs.backends.deep_recursion import Steps, run
from weakfs.backends.mounted import MountedFilesystem
from weakfs.backends.overlay.commit import refuse_inside_transaction, write_down
from weakfs.backends.overlay.copy_up_and_whiteouts import after, before, describe_entry
from weakfs.backends.overlay.layers import (
    Layers,
    Totals,
    counterpart,
    is_untouched,
    merged,
    totals_of,
    upper_for,
)
from weakfs.backends.overlay.lower_changes import LowerEntries, conflicts, refuse_conflicts
from weakfs.backends.session_backed import SessionFilesystem
from weakfs.filesystem import BaseFilesystem, Filesystem, Limits, SymlinkPolicy
from weakfs.filesystem.paths import Parsed
from weakfs.filesystem.registry import check_bound
from weakfs.reducers import FileTree, LowerEntry, LowerFound, TreeDiff, TreeRestored, diff
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import EntryCopied, EntryDeleted, EntryFound, EntryMoved, Event, LayerEmptied
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import Leaf, content_of
from weakfs.reducers.tree.node import EMPTY_TREE, Node, Segments, is_whiteout
from weakfs.reducers.tree.repeated_subtrees import check_repeats
from weakfs.session import Session, SessionError, SessionView


class OverlayFilesystem(SessionFilesystem):
    """The files of `lower`, with changes stored in a session's `FileTree` slice.

    Nothing is copied in advance: a file is copied up before its first change, and a deletion is a whiteout.
    `commit()` writes all changes to `lower` or none, `discard()` drops them, `diff()` returns them. Changes that other
    programs make in `lower` are visible, except where the upper layer has its own entry. `lower` is one of
    weakfs's own backends; a memory filesystem needs its own session.

    Raises `TypeError` if `lower` does not derive from `BaseFilesystem`, and `ValueError` if it is a mounted filesystem,
    or if its files are in the same slice as those of the overlay.
    """

    __slots__ = ("_known", "_lower", "_read")

    def __init__(
        self,
        lower: Filesystem,
        session: Session | SessionView | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008  # frozen
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> None:
        if not isinstance(lower, BaseFilesystem):
            raise TypeError(
                f"cannot overlay {lower!r:.60}: it does not derive from BaseFilesystem; use an InMemoryFilesystem or a "
                f"HostFilesystem"
            )
        if isinstance(lower, MountedFilesystem):
            raise ValueError(
                f"cannot overlay {lower!r}: its paths start with its mount point; overlay the files in it, and mount "
                f"the overlay"
            )
        super().__init__(session, limits, read_only, follow_symlinks)
        own = getattr(lower, "session", None)
        if own is self._session and getattr(lower, "filesystem_id", "").startswith(("memory:", "overlay:")):
            raise ValueError(
                f"cannot overlay {lower!r}: its files are in the same slice of the same session; give the overlay its "
                f"own session"
            )
        self._lower = lower
        # The upper and lower trees of the last merge, and its result.
        self._known: tuple[FileTree, FileTree, FileTree] | None = None
        self._read = LowerEntries()

    def __repr__(self) -> str:
        return f"<OverlayFilesystem of {self._session!r} over {self._lower!r}>"

    @property
    def lower(self) -> Filesystem:
        """The lower filesystem."""
        return cast(Filesystem, self._lower)

    @property
    def root(self) -> str:
        """The root of the lower filesystem."""
        return str(self.lower.root)

    @property
    def filesystem_id(self) -> str:
        """The id of this filesystem in snapshots: that of the session, or of the one it was forked from."""
        session = self._session
        return f"overlay:{session.origin_id}" if isinstance(session, Session) else "overlay:view"

    def bind(self, session: Session) -> OverlayFilesystem:
        """Return the same overlay over the same files in another session, such as a fork."""
        check_bound(session)
        return OverlayFilesystem(
            self.lower,
            session,
            limits=self.limits,
            read_only=self._read_only,
            follow_symlinks=self.follow_symlinks,
        )

    # The upper layer

    def diff(self) -> TreeDiff:
        """Return how the files differ from the lower ones. O(upper layer), plus the lower tree."""
        below = self.lower.tree()
        return diff(below, self._over(below))

    def commit(self) -> TreeDiff:
        """Write all changes to `lower`, or none, and return them; the upper layer is empty afterwards.

        Raises `OSError` (EBUSY) naming every path that changed in `lower` since it was read, copied up or hidden;
        nothing is written then. If writing to `lower` fails, raises that error and leaves `lower` unchanged. Raises
        `SessionError` inside a transaction if `lower` has another session, because a rollback could not undo it.
        """
        session = self._changing("write down", "the layer")
        refuse_inside_transaction(self.lower, session)
        with session.lock:
            below = self.lower.tree()
            now = self._over(below)
            layers = Layers(self._upper(), self._lower)
            refuse_conflicts(conflicts(layers, self._found(), self._entries_read(), below, now))
            found = diff(below, now)
            with session.transaction(cause=session._cause_of_one_change("commit")):
                write_down(self.lower, session, below, now)
                session.dispatch(LayerEmptied("commit", session.now()))
        self.notify_subscribers()
        return found

    def discard(self) -> TreeDiff:
        """Drop all changes and return them. This is recorded as an event, so a rollback brings them back."""
        session = self._changing("discard", "the layer")
        with session.lock:
            found = self.diff()
            session.dispatch(LayerEmptied("discard", session.now()))
        self.notify_subscribers()
        return found

    # Whole trees

    def tree(self) -> FileTree:
        """Return all files as one immutable value. O(upper layer), plus the lower tree."""
        return self._over(self.lower.tree())

    def _over(self, lower: FileTree) -> FileTree:
        upper, known = self._upper(), self._known
        check_repeats(upper)
        if known is None or known[0] is not upper or known[1] is not lower:
            self._known = known = (upper, lower, merged(upper, lower))
        return known[2]

    # Primitives

    def _parse(self, path: str | os.PathLike[str]) -> Parsed:
        return self._lower._parse(path)

    def _below_host_root(self, path: str) -> str | None:
        return self._lower._below_host_root(path)

    def _by_canonical_paths(self) -> Self:
        made = copy(self)
        made._lower = self._lower._by_canonical_paths()
        return made

    def read_view(self) -> BaseFilesystem:
        session = self._session
        if isinstance(session, SessionView):
            return self
        lower = self._lower._view()
        if not isinstance(lower, BaseFilesystem):
            return self
        return OverlayFilesystem(
            cast(Filesystem, lower), session.view(), limits=self.limits, follow_symlinks=self.follow_symlinks
        )

    def _upper(self) -> FileTree:
        return self._slice.latest() or EMPTY_TREE

    def lookup(self, segments: Segments) -> Node | None:
        node: Node | None = self._upper()
        if not segments:
            return self._lower.lookup(()) if is_untouched(cast(FileTree, node)) else node
        for name in segments:
            if type(node) is not FileTree:
                return None
            node = node._entry(name)
            if node is None:
                return self._lower.lookup(segments)
        return None if is_whiteout(node) else node

    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        held = Layers(self._upper(), self._lower).held(segments)
        below = list(self._lower.entries(segments)) if type(self._lower.lookup(segments)) is FileTree else []
        if type(held) is not FileTree:
            return below
        own = [(name, node) for name, node in maps.items(held._children) if not is_whiteout(node)]
        return [*((name, node) for name, node in below if held._entry(name) is None), *own]

    def content(self, path: str, leaf: Leaf) -> bytes:
        segments = segments_of(path)
        if Layers(self._upper(), self._lower).held(segments) is not None:
            return content_of(leaf)
        return self._lower.content(path, leaf)

    def _file(self, path: str | os.PathLike[str], verb: str) -> tuple[str, Leaf]:
        canonical, leaf = super()._file(path, verb)
        return canonical, self._record_read(canonical, leaf, verb)

    def _record_read(self, path: str, leaf: Leaf, verb: str) -> Leaf:
        segments = segments_of(path)
        if verb != "read" or Layers(self._upper(), self._lower).held(segments) is not None:
            return leaf
        content = self._lower.content(path, leaf)
        self._remember(path, segments, leaf, content)
        return (content, *leaf[1:])

    def _remember(self, path: str, segments: Segments, leaf: Leaf, content: bytes) -> None:
        """Record what was read, unless it is already recorded."""
        session = self._session
        if not isinstance(session, Session) or self._read_only:
            return
        entry = describe_entry(self._lower, segments, leaf, content)
        if self._entries_read().get(path) == entry:
            return
        try:
            session.dispatch(entry)
        except SessionError:
            # The session accepts no more changes. It can still be read, and will never be committed.
            return

    def _entries_read(self) -> Mapping[str, LowerEntry]:
        return self._read.newest(self._session._table("state"))

    def _found(self) -> FileTree:
        found = self._session[LowerFound].latest()
        return EMPTY_TREE if found is None else found.tree

    def _check_repeats(self, segments: Segments) -> None:
        held = Layers(self._upper(), self._lower).held(segments)
        if type(held) is FileTree:
            check_repeats(held)
        if type(self._lower.lookup(segments)) is FileTree:
            self._lower._check_repeats(segments)

    def totals(self, segments: Segments) -> Totals:
        held = Layers(self._upper(), self._lower).held(segments)
        is_below = type(self._lower.lookup(segments)) is FileTree
        below = self._lower.totals(segments) if is_below else (0, 0, 0)
        if type(held) is not FileTree:
            return below
        check_repeats(held)
        return _plus(below, run(self._difference(segments, held)))

    def _difference(self, segments: Segments, held: FileTree) -> Steps[Totals]:
        """Return what a directory of the upper tree adds to the totals of the lower one."""
        found: Totals = (0, 0, 0)
        for name, node in maps.items(held._children):
            here = (*segments, name)
            below = self._lower.lookup(here)
            if type(node) is FileTree:
                found = _plus(found, (yield self._difference(here, node)))
                if type(below) is FileTree:
                    # A merged directory is already counted in the lower totals, which are computed by walking it.
                    continue
            own = (0, 0, 1) if type(node) is FileTree else (0, 0, 0) if is_whiteout(node) else totals_of(node)
            found = _plus(found, own)
            if below is not None:
                size, files, directories = totals_of(below)
                if type(below) is FileTree:
                    size, files, directories = _plus(self._lower.totals(here), (0, 0, 1))
                found = _plus(found, (-size, -files, -directories))
        return found

    def height(self, segments: Segments) -> int:
        return run(self._measured(segments))

    def _measured(self, segments: Segments) -> Steps[int]:
        if type(Layers(self._upper(), self._lower).held(segments)) is not FileTree:
            return self._lower.height(segments)
        highest = 0
        for name, node in self.entries(segments):
            height = (yield self._measured((*segments, name))) if type(node) is FileTree else 0
            highest = max(highest, height + 1)
        return highest

    def apply(self, event: Event) -> None:
        session = cast(Session, self._session)
        if isinstance(event, TreeRestored):
            lower = self.lower.tree()
            upper = upper_for(lower, event.tree)
            first: list[Event] = [EntryFound("/", counterpart(lower, upper), event.at)]
            event = TreeRestored(upper, event.source, event.at)
        else:
            first = before(Layers(self._upper(), self._lower), event)
        may_hide = isinstance(event, EntryDeleted | EntryMoved | EntryCopied)
        is_one = not first and not may_hide
        with nullcontext() if is_one else session.transaction(cause=session._cause_of_one_change()):
            for one in (*first, event):
                session.dispatch(one)
            for one in after(Layers(self._upper(), self._lower), event) if may_hide else ():
                session.dispatch(one)


def _plus(one: Totals, other: Totals) -> Totals:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
