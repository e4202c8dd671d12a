"""The types that filesystems put into sessions and their files."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from weakfs.filesystem.results import FilesystemSnapshot
from weakfs.reducers.codec.tree_pool import TreePool
from weakfs.reducers.events import EVENTS
from weakfs.reducers.slices import SLICES
from weakfs.session import Registry, Session

R = TypeVar("R", bound=Registry)


def with_file_types(registry: R) -> R:
    """Return a registry that also knows the events, slices and snapshots of filesystems."""
    return registry.with_types(*EVENTS, FilesystemSnapshot).with_slices(*SLICES).with_pools(TreePool())


def new_session() -> Session:
    """Return a session for a filesystem that is given none."""
    return Session(registry=_file_types())


@cache
def _file_types() -> Registry:
    return with_file_types(Registry.empty())
