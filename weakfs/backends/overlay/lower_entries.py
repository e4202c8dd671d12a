"""What a session remembers of the entries below a layer, by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from weakfs.reducers import LowerEntry
from weakfs.session.history.log import Log
from weakfs.session.slices.table import Table


class Reads:
    """Finds the newest description of each path, going through each value of the slice once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # One pair, so that threads that read at once see what belongs together.
        self._known: tuple[Log[LowerEntry], dict[str, LowerEntry]] = (Log(), {})

    def newest(self, state: Table) -> Mapping[str, LowerEntry]:
        """Give the newest description of each path that was read or hidden. O(what is new)."""
        values = cast("Log[LowerEntry]", state.get("fs/lower_entry", Log()))
        known, newest = self._known
        if values is not known:
            goes_on = values.extends(known)
            newest = dict(newest) if goes_on else {}
            newest.update({one.path: one for one in values.since(len(known) if goes_on else 0)})
            self._known = (values, newest)
        return newest
