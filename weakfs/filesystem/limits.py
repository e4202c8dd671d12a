"""Size limits of a filesystem, checked before every change."""

from __future__ import annotations

from errno import EDQUOT, EFBIG, ENAMETOOLONG

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.filesystem.errors import quoted
from weakfs.messages import a_type
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import size_of
from weakfs.reducers.tree.node import MAX_NODES, FileTree, walk

MIB = 1 << 20

# Adding at most this many entries never exceeds what a tree can hold.
FEW = 1000


def _not_negative(instance: object, attribute: object, value: int | None) -> None:
    name = getattr(attribute, "name", "a limit")
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError(f"{name} is {value!r}; use a whole number of 0 or more, or None for no limit")


@frozen
class Limits:
    """Limits of one filesystem; `None` means no limit.

    `max_file_size` and `max_total_size` are in bytes, `max_path_depth` in segments, `max_segment_length` in
    bytes of UTF-8. `default_read_limit` is how many lines `read` returns, and `max_grep_matches` how many lines
    `grep` returns, unless the caller passes a limit.
    """

    max_file_size: int | None = field(default=32 * MIB, validator=_not_negative)
    max_path_depth: int | None = field(default=64, validator=_not_negative)
    max_segment_length: int | None = field(default=255, validator=_not_negative)
    default_read_limit: int | None = field(default=None, validator=_not_negative)
    max_grep_matches: int | None = field(default=1000, validator=_not_negative)
    max_total_size: int | None = field(default=None, validator=_not_negative)
    max_node_count: int | None = field(default=None, validator=_not_negative)

    @classmethod
    def tools(cls) -> Limits:
        """Return limits for answers to a model: 2,000 lines per read, 100 grep matches, and 1,000,000 entries.

        The quota of entries is larger than any real project. It keeps a tree from being copied into itself a few dozen
        times, after which no search of it would ever end.
        """
        return cls(default_read_limit=2000, max_grep_matches=100, max_node_count=1_000_000)

    @classmethod
    def strict(cls) -> Limits:
        """Return the tight preset: 48,000 bytes per file, 16 segments of 80 bytes, 2,000 lines, 1,000 matches."""
        return cls(
            max_file_size=48_000,
            max_path_depth=16,
            max_segment_length=80,
            default_read_limit=2000,
            max_grep_matches=1000,
        )

    def for_files(self) -> Limits:
        """Return these limits without the limits on answers, for the filesystem that tools work on.

        A tool that reads a file to change it and write it back needs all of it: only the answer to the model is cut.
        """
        return evolve(self, default_read_limit=None, max_grep_matches=None)

    def check_path(self, path: str, segments: tuple[str, ...]) -> None:
        """Raise `OSError` (ENAMETOOLONG) if a path is too deep or has a segment that is too long."""
        if self.max_path_depth is not None and len(segments) > self.max_path_depth:
            raise fault(
                OSError,
                ENAMETOOLONG,
                f"cannot create {quoted(path)}: it is {len(segments)} segments deep and {self.max_path_depth} are "
                f"allowed; use a shorter path",
            )
        longest = self.max_segment_length
        if longest is not None and len(path) * 4 > longest:
            for segment in segments:
                size = len(names.to_bytes(segment))
                if size > longest:
                    raise fault(
                        OSError,
                        ENAMETOOLONG,
                        f"cannot create {quoted(path)}: the name {quoted(segment)} is {size} bytes long and "
                        f"{longest} are allowed; use a shorter name",
                    )

    def check_size(self, path: str, size: int) -> None:
        """Raise `OSError` (EFBIG) if a file is too large."""
        if self.max_file_size is not None and size > self.max_file_size:
            raise fault(
                OSError,
                EFBIG,
                f"cannot write {quoted(path)}: it would be {size} bytes and the limit for a file is "
                f"{self.max_file_size}; split it, or raise Limits.max_file_size",
            )

    def check_tree(self, tree: FileTree) -> None:
        """Raise `OSError` if a whole tree exceeds any of these limits. O(entries)."""
        self.check_quota("/", size=0, more_size=tree.total_size, nodes=0, more_nodes=tree.node_count)
        for path, node in walk(tree):
            self.check_path(path, tuple(path[1:].split("/")))
            if type(node) is not FileTree:
                self.check_size(path, size_of(node))

    def may_refuse(self, more_nodes: int) -> bool:
        """Return whether a quota could refuse this many more entries."""
        return self.max_total_size is not None or self.max_node_count is not None or more_nodes > FEW

    def check_quota(self, path: str, *, size: int, more_size: int, nodes: int, more_nodes: int) -> None:
        """Raise `OSError` (EDQUOT) if a change would exceed a quota. Changes that shrink the tree are never refused."""
        if self.max_total_size is not None and more_size > 0 and size + more_size > self.max_total_size:
            raise fault(
                OSError,
                EDQUOT,
                f"cannot change {quoted(path)}: all files would take {size + more_size} bytes and "
                f"{self.max_total_size} are allowed; delete something first",
            )
        most = MAX_NODES if self.max_node_count is None else self.max_node_count
        if more_nodes > 0 and nodes + more_nodes > most:
            raise fault(
                OSError,
                EDQUOT,
                f"cannot create {quoted(path)}: there would be {nodes + more_nodes} files and directories and {most} "
                f"are allowed; delete something first",
            )


def checked_limits(limits: Limits) -> Limits:
    """Return `limits`. Raises `TypeError` for anything else."""
    if not isinstance(limits, Limits):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"limits is {a_type(limits)}; pass Limits, such as Limits(max_file_size=10_000)")
    return limits
