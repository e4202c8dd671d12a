"""The logger of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger() -> Logger:
    """Return the logger.

    `logging` is imported only when it is needed: it takes 5 % of the time of the imports for a first write and read.
    """
    import logging

    return logging.getLogger("weakfs.session")
