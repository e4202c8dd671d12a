"""Sessions for Google's Agent Development Kit: an environment, artifacts, and rewinds that also restore files.

`WeakfsEnvironment` is for an `EnvironmentToolset`; `WeakfsArtifactService` and `RewindPlugin` are for a runner. Needs
the extra `weakfs[google-adk]`.
"""

from __future__ import annotations

try:
    # Versions before 2 do not have it.
    from google.adk.environment import BaseEnvironment  # noqa: F401
except ImportError as error:
    if error.name is None or not error.name.startswith("google"):
        raise
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.google_adk: the package google-adk is not installed, or is older than 2.13; "
        "run: pip install 'weakfs[google-adk]'"
    ) from error

from weakfs.integrations.google_adk.artifacts import WeakfsArtifactService
from weakfs.integrations.google_adk.environment import WeakfsEnvironment
from weakfs.integrations.google_adk.rewind import RewindPlugin

__all__ = ["RewindPlugin", "WeakfsArtifactService", "WeakfsEnvironment"]
