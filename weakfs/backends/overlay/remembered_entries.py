"""Lower entries: descriptions of entries in the lower layer that a session remembers, by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from weakfs.reducers import LowerEntry
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table


class Reads:
    """An index of the newest description of each path. It reads each value of the slice once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # A single pair, so that concurrent readers see matching values.
        self._known: tuple[Log[LowerEntry], dict[str, LowerEntry]] = (Log(), {})

    def newest(self, state: Table) -> Mapping[str, LowerEntry]:
        """Return the newest description of each path that was read or hidden. O(new descriptions)."""
        values = cast("Log[LowerEntry]", state.get("fs/lower_entry", Log()))
        known, newest = self._known
        if values is not known:
            goes_on = values.extends(known)
            newest = dict(newest) if goes_on else {}
            newest.update({one.path: one for one in values.since(len(known) if goes_on else 0)})
            self._known = (values, newest)
        return newest
