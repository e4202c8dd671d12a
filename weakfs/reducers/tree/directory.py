"""A directory as one node of a tree: its entries, its attributes, the totals of what is below, and its caches.

`weakfs.reducers.tree.node` adds the values that are computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attrs import field

from weakfs.class_decorators import define
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.children import Children
from weakfs.reducers.tree.leaf import DIRECTORY_MODE

# A packed directory, what has changed in it (an entry, a `Write`, or `None` for a removed name), and the directories of
# the same tree that were unpacked, by the identity of their packed form.
Unread = tuple[tuple[Any, ...], dict[str, Any], dict[int, Any]]
# A function that makes the entries. It may be called several times, by any number of threads, and returns equal entries
# in the same order.
Source = Callable[[], Children]

# The names of a directory whose entries are made when they are first read, and the size of a directory whose counts are
# computed then: see `weakfs.reducers.tree.lazy_directory`.
UNREAD: Final[dict[str, int]] = {}
UNCOUNTED: Final = -1


class Remembering:
    """Caches on a directory: they are not part of its value, and so they are not copied, pickled or saved."""

    __slots__ = ("_listing", "_packed", "_unread")

    if TYPE_CHECKING:
        # For type checkers only, so that they are not saved. Unset before the first search: see
        # weakfs.reducers.tree.listing.
        _listing: Any
        # Unset before the first permanent keyframe: see weakfs.reducers.tree.packed.
        _packed: tuple[Any, ...]
        # Set in a directory whose entries are made when they are first read: see weakfs.reducers.tree.lazy_directory.
        _unread: Unread | Source


@define(eq=False, repr=False)
class Directory(Remembering):
    """The value of a directory. Times are integer nanoseconds; counts include everything below."""

    # The entries, in the two parts that `children.parts` returns, so that a directory is one object
    # to the garbage collector. Shared with other versions of the tree, so they must never be changed.
    _places: dict[str, int] | None = field(factory=dict)
    _nodes: tuple[Any, ...] = ()
    # Read through the properties below, so that nothing outside assigns them. A frozen attrs class would do the same,
    # but its constructor takes three times as long, and every write makes one node for each directory on the way.
    _mode: int = DIRECTORY_MODE
    _modified_at: int = 0
    _created_at: int = 0
    _file_count: int = 0
    _directory_count: int = 0
    _total_size: int = 0
    # Computed on demand: see weakfs.reducers.tree.digest.
    _digest: bytes | None = field(default=None, init=False)
    _fingerprint: bytes | None = field(default=None, init=False)
    _height: int | None = field(default=None, init=False)

    @property
    def _children(self) -> Children:
        """The entries as one value for the functions of `weakfs.reducers.tree.children`."""
        places = self._places
        if places is UNREAD:
            return self._read()
        return self._nodes if places is None else (places, self._nodes)

    def _entry(self, name: str) -> Any:
        """Return the entry with a name, `None` if there is none."""
        places = self._places
        if places:
            place = places.get(name)
            return None if place is None else self._nodes[place]
        return maps.get(self._children, name)

    def _read(self) -> Children:
        """Make the entries of a directory that has not been read yet."""
        raise NotImplementedError

    def _count(self) -> None:
        """Compute the counts and the modification time of a directory that has none yet."""
        raise NotImplementedError

    @property
    def children(self) -> Mapping[str, Any]:
        """The entries by name in arbitrary order, as a read-only view. O(names)."""
        return MappingProxyType(maps.as_dict(self._children))

    @property
    def mode(self) -> int:
        """The permission bits."""
        return self._mode

    @property
    def modified_at(self) -> int:
        """When an entry was last added or removed, in nanoseconds."""
        if self._total_size == UNCOUNTED:
            self._count()
        return self._modified_at

    @property
    def created_at(self) -> int:
        """When the directory was made, in nanoseconds."""
        return self._created_at

    @property
    def file_count(self) -> int:
        """How many files and links are below."""
        if self._total_size == UNCOUNTED:
            self._count()
        return self._file_count

    @property
    def directory_count(self) -> int:
        """How many directories are below."""
        if self._total_size == UNCOUNTED:
            self._count()
        return self._directory_count

    @property
    def total_size(self) -> int:
        """The total size in bytes of the files below."""
        if self._total_size == UNCOUNTED:
            self._count()
        return self._total_size

    @property
    def node_count(self) -> int:
        """How many files, links and directories are below."""
        return self.file_count + self.directory_count
