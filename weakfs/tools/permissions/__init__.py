"""What a call may do: a capability and a policy, enforced once, below all tools.

A handler that is to be restricted gets a `GuardedFilesystem` for its `context.filesystem`, so that a tool of yours is
held to the same rules as those of weakfs.
"""

from weakfs.tools.permissions.call_rules import CallToJudge, check_call, check_result
from weakfs.tools.permissions.capability import Capability
from weakfs.tools.permissions.decisions import Access
from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem, guarded, may_show
from weakfs.tools.permissions.operations import CONTENTS, Operation
from weakfs.tools.permissions.policy import Policy, PolicyRule, Visibility

__all__ = [
    "CONTENTS",
    "Access",
    "CallToJudge",
    "Capability",
    "GuardedFilesystem",
    "Operation",
    "Policy",
    "PolicyRule",
    "Visibility",
    "check_call",
    "check_result",
    "guarded",
    "may_show",
]
