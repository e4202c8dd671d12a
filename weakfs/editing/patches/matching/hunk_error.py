"""The error for a hunk that has no unique place."""

from __future__ import annotations

from weakfs.editing.patches.operations import Hunk

# The maximum number of places of an ambiguous hunk that a message names.
MAX_PLACES = 20

# A range of lines (from 0): the first of a block, and the one after its last.
Block = tuple[int, int]


class Misfit(Exception):
    """A hunk has no unique place; `places` are the lines (from 1) where it fits, if there are several.

    `lines` are other lines that the reason names, `blocks` the blocks (from 0) that its anchor selects, and `hunk` is
    the hunk as last interpreted. If `is_all` is true, there is nothing to add to the reason.
    """

    def __init__(
        self,
        reason: str,
        places: tuple[int, ...] = (),
        *,
        lines: tuple[int, ...] = (),
        blocks: tuple[Block, ...] = (),
        is_all: bool = False,
    ) -> None:
        self.reason = reason
        self.is_all = is_all
        self.places = places
        self.lines = lines
        self.blocks = blocks
        self.hunk: Hunk | None = None
        super().__init__(reason)
