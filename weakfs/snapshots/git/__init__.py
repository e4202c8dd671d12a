"""Snapshots as commits in a separate git repository, independent of the user's git configuration."""

from weakfs.snapshots.git.command import GitUnavailable
from weakfs.snapshots.git.repository import GitRepository
from weakfs.snapshots.git.sink import Base, GitSink

__all__ = ["Base", "GitRepository", "GitSink", "GitUnavailable"]
