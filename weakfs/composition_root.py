"""The composition root: sessions, and files in storage, that know the types of all parts of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Self

import weakfs.backends as backends
import weakfs.session as session
from weakfs.filesystem.paths import normalize
from weakfs.filesystem.registry import with_file_types
from weakfs.tools.slices import EVENTS, SLICES

if TYPE_CHECKING:
    from weakfs.history.blame.lines import BlameLine, Blames
    from weakfs.history.sql import QueryResult, Value
    from weakfs.session import Attachable, External, SessionSnapshot


class Registry(session.Registry):
    """An immutable table of the types, by tag, that a session and its file may hold.

    `Registry.with_types(*T)` has the types of weakfs and your own; `Registry.empty()` has only the session's own
    events.
    """

    __slots__ = ()

    @classmethod
    def standard(cls) -> Self:
        """Return the default registry of a session, with all types of weakfs."""
        known = _standard()
        return cls(known.by_tag, known.by_type, known.slices, known.pools)


@cache
def _standard() -> session.Registry:
    return with_file_types(session.Registry.empty()).with_types(*EVENTS).with_slices(*SLICES)


class Session(session.Session):
    __doc__ = session.Session.__doc__

    __slots__ = ("_blames",)

    _registry_type: ClassVar[type[session.Registry]] = Registry

    def blame(
        self,
        path: str,
        *,
        at: int | str | SessionSnapshot | None = None,
        filesystem: str | Attachable | External | None = None,
    ) -> tuple[BlameLine, ...]:
        """Return the lines of a file, each with the record that added it and the call that made the record.

        Lines are followed through edits, moves, copies, merges and rollbacks. Changes that were undone are not blamed,
        and lines that are restored keep their old blame. `at` is a record number, a snapshot, its id or its tag.
        `filesystem` is an external filesystem or its id; the default is the only one, if the session has no files of
        its own.

        The first call takes O(records), plus the edits of the file; later calls read only the new records. Raises
        `FileNotFoundError` or `IsADirectoryError` if there is no such file, `ValueError` for a binary file or a link,
        and `MissingBlob` if contents are missing.
        """
        from weakfs.history.blame.lines import Blames

        with self.lock:
            blames: Blames | None = getattr(self, "_blames", None)
            if blames is None:
                self._blames = blames = Blames()
        return self._reading(lambda: blames.of(self, path, at=at, filesystem=filesystem))

    @staticmethod
    def _canonical_path(path: str) -> str:
        return normalize(path)

    @staticmethod
    def _path_matcher(path: str) -> Callable[[str], bool]:
        """Return a test for a path or glob."""
        from weakfs.search import compile_glob
        from weakfs.session.merging.resolver import same_path

        try:
            glob = compile_glob(path, hidden=True)
        except ValueError:
            # A path with a bracket that is invalid in a glob.
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

        `weakfs.history` describes the tables. `timeout` is in seconds. If there are more than `max_rows` rows, the rest
        is left out, and `truncated` of the result is true. Raises `ValueError` if the query is invalid or would do
        anything but read, and `TimeoutError` if it runs too long.
        """
        from weakfs.history.sql import run_query

        return run_query(self, query, parameters, max_rows=max_rows, timeout=timeout)


class StorageFilesystem(backends.StorageFilesystem):
    __doc__ = backends.StorageFilesystem.__doc__

    __slots__ = ()

    _session_type: ClassVar[type[session.Session]] = Session
