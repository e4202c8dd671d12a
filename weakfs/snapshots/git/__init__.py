"""Snapshots as commits of a git repository of their own, whatever the user's git is told to do."""

from weakfs.snapshots.git.command import GitUnavailable
from weakfs.snapshots.git.repository import GitRepository
from weakfs.snapshots.git.sink import Base, GitSink

__all__ = ["Base", "GitRepository", "GitSink", "GitUnavailable"]
