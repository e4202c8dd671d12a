"""`weakfs timeline --tui`: a full-screen view of a timeline, controlled by keyboard. Needs `weakfs[tui]`."""

from __future__ import annotations

try:
    import textual  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "textual":
        raise
    raise ModuleNotFoundError(
        "cannot show the timeline full-screen: the package textual is not installed; run: pip install 'weakfs[tui]'"
    ) from error
