"""Why a hunk has no place of its own."""

from __future__ import annotations

from weakfs.editing.patches.operations import Hunk

# A message names so many of the places where a hunk fits.
MAX_PLACES = 20

# Lines (from 0): the first of a block, and the one behind its last.
Block = tuple[int, int]


class Misfit(Exception):
    """A hunk has no place of its own; `places` are the lines (from 1) where it fits, if it does in several.

    `lines` are others that the reason names, `blocks` those (from 0) in which an anchor wants it, `hunk` is the hunk
    as it was read at last. `is_all` says that there is no more to tell than the reason.
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
