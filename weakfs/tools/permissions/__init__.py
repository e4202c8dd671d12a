"""Permissions of calls: a capability and a policy, enforced in one place below all tools.

A restricted handler gets a `GuardedFilesystem` as its `context.filesystem`, so that custom tools follow the same rules
as the built-in ones.

Names are imported from their modules when they are first used: a call without a capability or a policy needs none of
them.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.tools.permissions.capability import Capability
    from weakfs.tools.permissions.decisions import Access
    from weakfs.tools.permissions.guard import (
        check_fits_inline,
        check_may_show,
        check_shows_size,
        guarded,
        may_show,
        read_shown,
        shows,
    )
    from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem
    from weakfs.tools.permissions.operations import CONTENTS, Operation
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
    "check_fits_inline",
    "check_may_show",
    "check_shows_size",
    "guarded",
    "may_show",
    "read_shown",
    "shows",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "capability": "Capability",
        "decisions": "Access",
        "guard": "check_fits_inline check_may_show check_shows_size guarded may_show read_shown shows",
        "guarded_filesystem": "GuardedFilesystem",
        "operations": "CONTENTS Operation",
        "rules": "PathPolicy PolicyRule Visibility",
    },
)
