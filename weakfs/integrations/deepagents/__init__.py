"""Backends for deepagents that use a session: each operation is a recorded call that can be undone.

`WeakfsBackend` provides files; `WeakfsSandbox` also runs commands on them, in a sandbox or a container. Needs the extra
`weakfs[deepagents]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("deepagents", at_least="0.7.10"):
    # Versions before 0.7.10 do not have this name.
    from deepagents.backends.protocol import GlobTruncationReason  # noqa: F401

from weakfs.integrations.deepagents.backend import WeakfsBackend
from weakfs.integrations.deepagents.sandbox import WeakfsSandbox

__all__ = ["WeakfsBackend", "WeakfsSandbox"]
