"""Backends for deepagents that use a session: each operation is a recorded call that can be undone.

`WeakfsBackend` provides files; `WeakfsSandbox` also runs commands on them, in a sandbox or a container. Needs the extra
`weakfs[deepagents]`.
"""

from __future__ import annotations

try:
    # Versions before 0.7.10 do not have it.
    from deepagents.backends.protocol import GlobTruncationReason  # noqa: F401
except ImportError as error:
    if error.name is None or not error.name.startswith("deepagents"):
        raise
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.deepagents: the package deepagents is not installed, or is older than 0.7.10; "
        "run: pip install 'weakfs[deepagents]'"
    ) from error

from weakfs.integrations.deepagents.backend import WeakfsBackend
from weakfs.integrations.deepagents.sandbox import WeakfsSandbox

__all__ = ["WeakfsBackend", "WeakfsSandbox"]
