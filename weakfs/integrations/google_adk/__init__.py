"""Sessions for Google's Agent Development Kit: an environment, artifacts, and rewinds that also restore files.

`WeakfsEnvironment` is for an `EnvironmentToolset`; `WeakfsArtifactService` and `RewindPlugin` are for a runner. Needs
the extra `weakfs[google-adk]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("google_adk", modules=("google",), at_least="2.13"):
    # Versions before 2 do not have this name.
    from google.adk.environment import BaseEnvironment  # noqa: F401

from weakfs.integrations.google_adk.artifacts import WeakfsArtifactService
from weakfs.integrations.google_adk.environment import WeakfsEnvironment
from weakfs.integrations.google_adk.rewind import RewindPlugin

__all__ = ["RewindPlugin", "WeakfsArtifactService", "WeakfsEnvironment"]
