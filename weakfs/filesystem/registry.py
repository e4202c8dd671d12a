"""The types that filesystems add to sessions and their files."""

from __future__ import annotations

import sys
from functools import cache
from typing import TypeVar

from weakfs.filesystem.results import FilesystemSnapshot
from weakfs.messages import a_type
from weakfs.reducers.codec.tree_pool import TreePool
from weakfs.reducers.events import EVENTS
from weakfs.reducers.mount_points import MOUNT_EVENTS, MOUNT_SLICES
from weakfs.reducers.process_events import PROCESS_EVENTS, PROCESS_SLICES
from weakfs.reducers.slices import SLICES
from weakfs.session import Registry, Session, SessionView

R = TypeVar("R", bound=Registry)

_TREES = TreePool()


def with_file_types(registry: R) -> R:
    """Return a registry that also has the events, slices and snapshots of filesystems."""
    if _TREES in registry.pools:
        return registry
    types = registry.with_types(*EVENTS, *PROCESS_EVENTS, *MOUNT_EVENTS, FilesystemSnapshot)
    return types.with_slices(*SLICES, *PROCESS_SLICES, *MOUNT_SLICES).with_pools(_TREES)


def session_of_files(session: Session | None) -> Session:
    """Return the session for a filesystem, a new one for `None`; its registry gets the types of files."""
    if session is None:
        # The complete class, `weakfs.Session`. It is looked up because imports only go down.
        complete: type[Session] = sys.modules["weakfs"].Session
        return complete()
    if not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"session is {a_type(session)}; pass a Session, or leave it out for a new one")
    if _TREES not in session.registry.pools:
        session.include(_file_types())
    return session


def check_bound(session: object) -> None:
    """Raise `TypeError` for what a filesystem cannot be bound to, such as `None`, which would mean a new session."""
    if not isinstance(session, Session | SessionView):
        raise TypeError(f"cannot bind a filesystem to {a_type(session)}; pass a session, such as a fork")


@cache
def _file_types() -> Registry:
    return with_file_types(Registry.empty())
