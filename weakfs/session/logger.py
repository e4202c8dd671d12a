"""The logger of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger() -> Logger:
    """Return the logger. Few sessions log anything, and `logging` is 5 % of what a first write and read imports."""
    import logging

    return logging.getLogger("weakfs.session")
