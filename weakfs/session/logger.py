"""The logger of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger() -> Logger:
    """Return the logger; `logging` is imported when it is called, as few processes log anything."""
    import logging

    return logging.getLogger("weakfs.session")
