"""A filesystem whose session is stored call by call: in a folder, in a database or in an object store."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, ClassVar

from weakfs.backends.memory import InMemoryFilesystem
from weakfs.filesystem import Limits, SymlinkPolicy
from weakfs.filesystem.registry import with_file_types
from weakfs.session import Registry, Session

if TYPE_CHECKING:
    from weakfs.storage import EventStore, Storage


class StorageFilesystem(InMemoryFilesystem):
    """Files in a session that is in storage: `InMemoryFilesystem(Session.open(storage, session_id))`.

    `storage` is a folder, a URL, a `Storage` or an `EventStore`. Without `session_id`, the only session there is
    opened, or a new one is created. `registry` lists the types that the session may hold besides files.
    `weakfs.StorageFilesystem` is the same class, but its default registry includes the types of tools.
    """

    __slots__ = ()

    _session_type: ClassVar[type[Session]] = Session

    def __init__(
        self,
        storage: str | PathLike[str] | Storage | EventStore,
        session_id: str | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008  # frozen
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
        registry: Registry | None = None,
    ) -> None:
        known = with_file_types(self._session_type._registry_type.standard() if registry is None else registry)
        session = self._session_type.open(storage, session_id, registry=known)
        super().__init__(session, limits=limits, read_only=read_only, follow_symlinks=follow_symlinks)
