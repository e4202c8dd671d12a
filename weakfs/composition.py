"""The composition root: sessions, and files in storage, that know the types of every part of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Self

from attrs import frozen

from weakfs import backends, session
from weakfs.filesystem.paths import normalize
from weakfs.filesystem.registry import with_file_types
from weakfs.session.merging.resolver import same_path
from weakfs.tools.slices import EVENTS, SLICES

if TYPE_CHECKING:
    from weakfs.history.sql import QueryResult, Value


@frozen(eq=False)
class Registry(session.Registry):
    """An immutable table of types by tag: what a session and its file may hold.

    `Registry.with_types(*T)` has the types of weakfs and yours; `Registry.empty()` only the session's own events.
    """

    @classmethod
    def standard(cls) -> Self:
        """Return the registry of a session that is given none: all types of weakfs."""
        known = _standard()
        return cls(known.by_tag, known.by_type, known.slices, known.pools)


@cache
def _standard() -> session.Registry:
    return with_file_types(session.Registry.empty()).with_types(*EVENTS).with_slices(*SLICES)


class Session(session.Session):
    __doc__ = session.Session.__doc__

    __slots__ = ()

    _registry_type: ClassVar[type[session.Registry]] = Registry

    @staticmethod
    def _canonical_path(path: str) -> str:
        return normalize(path)

    @staticmethod
    def _path_matcher(path: str) -> Callable[[str], bool]:
        """Return a test for a path or glob."""
        from weakfs.search import compile_glob

        try:
            glob = compile_glob(path, hidden=True)
        except ValueError:
            # A path with a bracket that no glob would have.
            if path.startswith("/"):
                return same_path(path)
            raise
        return lambda other: other == path or glob.matches_path(other)

    def sql(
        self,
        query: str,
        parameters: Sequence[Value] | Mapping[str, Value] = (),
        *,
        max_rows: int = 10_000,
        timeout: float = 10.0,
    ) -> QueryResult:
        """Run a SELECT over the calls, records, changes, files, lines and snapshots of this session.

        `weakfs.history` describes the tables. `timeout` is in seconds. Raise `ValueError` if the query is invalid or
        would do anything but read, and `TimeoutError` if it runs too long.
        """
        from weakfs.history.sql import run_query

        return run_query(self, query, parameters, max_rows=max_rows, timeout=timeout)


class StorageFilesystem(backends.StorageFilesystem):
    __doc__ = backends.StorageFilesystem.__doc__

    __slots__ = ()

    _session_type: ClassVar[type[session.Session]] = Session
