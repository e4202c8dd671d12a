"""A filesystem stored in a slice of a session: its snapshots are the session's own, O(1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, TypeVar, cast

from weakfs.backends.session_backed import SessionFilesystem
from weakfs.filesystem import Limits, SymlinkPolicy
from weakfs.filesystem.operations.read import PathArg
from weakfs.filesystem.path_lookup import Place
from weakfs.filesystem.registry import check_bound
from weakfs.messages import a_type
from weakfs.reducers import FileTree, MountReport
from weakfs.reducers.events import Event
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import NO_FILE, Leaf, content_of, is_link
from weakfs.reducers.tree.listing import listing
from weakfs.reducers.tree.node import EMPTY_TREE, Listing, Node, Segments, height
from weakfs.session import MissingBlob, Session, SessionView

if TYPE_CHECKING:
    from weakfs.backends.host_mount import HostMount

Self = TypeVar("Self", bound="InMemoryFilesystem")


class InMemoryFilesystem(SessionFilesystem):
    """Files in a session's `FileTree` slice.

    Without a session it creates its own. Each of `mounts` is copied in as one event; a mount that a loaded session
    already holds is not repeated. With a `SessionView` it shows the files of that moment, read-only.
    The limits belong to this object: another one with the same session may have different limits.
    """

    __slots__ = ()

    def __init__(
        self,
        session: Session | SessionView | None = None,
        *,
        mounts: Sequence[HostMount] = (),
        limits: Limits = Limits(),  # noqa: B008  # frozen
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> None:
        if isinstance(session, str | PathLike):
            raise TypeError(
                f"cannot open {session!r} as an InMemoryFilesystem: it takes a Session; use "
                f"HostFilesystem({session!r}) for a host directory, or mounts=[HostMount({session!r})] for a "
                f"copy of it in memory"
            )
        if session is not None and not isinstance(session, Session | SessionView):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot keep files in {a_type(session)}: an InMemoryFilesystem takes a Session; use "
                f"InMemoryFilesystem(Session())"
            )
        super().__init__(session, limits, read_only, follow_symlinks)
        own = self.session
        if own is not None and mounts:
            from weakfs.backends.host_mount import checked_mounts, mount

            for wanted in checked_mounts(mounts):
                mount(own, wanted, limits)

    def __repr__(self) -> str:
        return f"<InMemoryFilesystem of {self._session!r}>"

    @property
    def root(self) -> str:
        """The root, always `/`: the files have no other location."""
        return "/"

    @property
    def filesystem_id(self) -> str:
        """The id of this filesystem in snapshots: that of the session, or of the one it was forked from."""
        session = self._session
        return f"memory:{session.origin_id}" if isinstance(session, Session) else "memory:view"

    @property
    def mounts(self) -> tuple[MountReport, ...]:
        """Reports of what was mounted into the session, and of what was left out."""
        return self._session[MountReport].all()

    def bind(self, session: Session) -> InMemoryFilesystem:
        """Return the same filesystem bound to another session, such as a fork."""
        check_bound(session)
        return InMemoryFilesystem(
            session, limits=self.limits, read_only=self._read_only, follow_symlinks=self.follow_symlinks
        )

    # Whole trees

    def tree(self) -> FileTree:
        """Return all files as one immutable value. O(1)."""
        return self._slice.latest() or EMPTY_TREE

    # Primitives

    def read_view(self) -> InMemoryFilesystem:
        session = self._session
        if isinstance(session, SessionView):
            return self
        return InMemoryFilesystem(session.view(), limits=self.limits, follow_symlinks=self.follow_symlinks)

    def lookup(self, segments: Sequence[str]) -> Node | None:
        # The same as `find(self.tree(), segments)`, inlined because every call uses it.
        node: Node | None = self._slice.latest() or EMPTY_TREE
        for name in segments:
            if type(node) is not FileTree:
                return None
            places = node._places
            if places:
                place = places.get(name)
                node = None if place is None else node._nodes[place]
            else:
                node = maps.get(node._children, name)
        return node

    def _locate(self, path: PathArg, *, follow: bool = True) -> Place:
        if type(path) is str:
            # Where every segment is the name of an entry, the path is canonical. With 100,000 files this takes 1 µs
            # less than parsing the path first, because their paths do not fit into the parser's cache.
            names = path.split("/")
            # The empty path is the root under another spelling.
            if not names.pop(0) and names:
                node = self.lookup(names)
                if type(node) is FileTree or (type(node) is tuple and not (follow and is_link(node))):
                    return path, tuple(names), node
        return super()._locate(path, follow=follow)

    def exists(self, path: PathArg) -> bool:
        """Return whether there is an entry; a symbolic link counts, wherever it points."""
        if type(path) is str:
            names = path.split("/")
            if not names.pop(0) and names and self.lookup(names) is not None:
                return True
            canonical, segments = self._parse(path)
            if canonical == path and segments:
                # Not found: a link may be on the way.
                return self._follow(path, segments, False, None)[2] is not None
        return super()._locate(path, follow=False)[2] is not None

    def _file(self, path: PathArg, verb: str) -> tuple[str, Leaf]:
        if type(path) is str:
            names = path.split("/")
            if not names.pop(0):
                node = self.lookup(names)
                if type(node) is tuple and type(node[0]) not in NO_FILE:
                    return path, node
        return self._file_there(path, verb)

    def entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        return maps.items(cast(FileTree, self.lookup(segments))._children)

    def search_listing(self, segments: Segments) -> Listing:
        return listing(cast(FileTree, self.lookup(segments)))

    def content(self, path: str, leaf: Leaf) -> bytes:
        try:
            return content_of(leaf)
        except MissingBlob:
            # Another process may have deleted or replaced the file, and dropped what it held.
            if self.session is None or not self.session._catches_up():
                raise
        return self.content(*self._file(path, "read"))

    def totals(self, segments: Segments) -> tuple[int, int, int]:
        tree = cast(FileTree, self.lookup(segments))
        return tree.total_size, tree.file_count, tree.directory_count

    def height(self, segments: Segments) -> int:
        return height(cast(FileTree, self.lookup(segments)))

    def apply(self, event: Event) -> None:
        cast(Session, self._session)._dispatch(event)
