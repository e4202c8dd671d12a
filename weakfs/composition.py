"""The composition root: sessions, and files in storage, that know the types of every part of the library."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Self

from attrs import frozen

from weakfs import backends, session
from weakfs.filesystem.paths import normalize
from weakfs.filesystem.registry import with_file_types
from weakfs.session import Attachable, BlameLine, External, Snapshot
from weakfs.session.merging.resolver import same_path
from weakfs.tools.slices import EVENTS, SLICES

if TYPE_CHECKING:
    from weakfs.history.blame.lines import Blames


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

    __slots__ = ("_blames",)

    _registry_type: ClassVar[type[session.Registry]] = Registry

    def blame(
        self,
        path: str,
        *,
        at: int | str | Snapshot | None = None,
        filesystem: str | Attachable | External | None = None,
    ) -> tuple[BlameLine, ...]:
        from weakfs.history.blame.lines import Blames

        with self.lock:
            blames: Blames | None = getattr(self, "_blames", None)
            if blames is None:
                self._blames = blames = Blames()
        return blames.of(self, path, at=at, filesystem=filesystem)

    blame.__doc__ = session.Session.blame.__doc__

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


class StorageFilesystem(backends.StorageFilesystem):
    __doc__ = backends.StorageFilesystem.__doc__

    __slots__ = ()

    _session_type: ClassVar[type[session.Session]] = Session
