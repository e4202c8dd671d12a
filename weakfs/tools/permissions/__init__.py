"""Permissions of calls: a capability and a policy, enforced in one place below all tools.

A handler that is to be restricted gets a `GuardedFilesystem` for its `context.filesystem`, so that custom
tools are held to the same rules as the built-in ones.
"""

from weakfs.tools.permissions.capability import CONTENTS, Capability, Operation
from weakfs.tools.permissions.decisions import Access
from weakfs.tools.permissions.guard import guarded, may_show
from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem
from weakfs.tools.permissions.rules import PathPolicy, PolicyRule, Visibility

__all__ = [
    "CONTENTS",
    "Access",
    "Capability",
    "GuardedFilesystem",
    "Operation",
    "PathPolicy",
    "PolicyRule",
    "Visibility",
    "guarded",
    "may_show",
]
