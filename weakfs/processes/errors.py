"""Errors of running commands."""

from __future__ import annotations

from weakfs.errors import WeakfsError


class SandboxUnavailable(WeakfsError, OSError):
    """A command requires the sandbox, and it is not available."""
