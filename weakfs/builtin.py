"""The composition root: the types of all parts in one registry, for sessions that name none."""

from __future__ import annotations

from functools import cache

from weakfs.session.registry import Registry


@cache
def registry() -> Registry:
    """Give the registry of everything that weakfs itself puts into sessions and their files."""
    from weakfs.reducers.events import EVENTS
    from weakfs.reducers.pool import TreePool
    from weakfs.reducers.slice import SLICES

    return Registry.empty().with_types(*EVENTS).with_slices(*SLICES).with_pools(TreePool())
