"""The composition root: the types of all parts in one registry, for sessions that name none."""

from __future__ import annotations

from functools import cache

from weakfs.session.slices.registry import Registry


@cache
def registry() -> Registry:
    """Give the registry of everything that weakfs itself puts into sessions and their files."""
    from weakfs.filesystem.results import FilesystemSnapshot
    from weakfs.reducers.codec.tree_pool import TreePool
    from weakfs.reducers.events import EVENTS as FILE_EVENTS
    from weakfs.reducers.slices import SLICES as FILE_SLICES
    from weakfs.tools.slices import EVENTS as TOOL_EVENTS
    from weakfs.tools.slices import SLICES as TOOL_SLICES

    known = Registry.empty().with_types(*FILE_EVENTS, *TOOL_EVENTS, FilesystemSnapshot)
    return known.with_slices(*FILE_SLICES, *TOOL_SLICES).with_pools(TreePool())
