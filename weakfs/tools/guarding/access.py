"""The decisions of one call: may this operation be done at this path, and how much may it change?"""

from __future__ import annotations

from errno import EACCES

from attrs import define, field

from weakfs.filesystem import SymlinkPolicy
from weakfs.filesystem.errors import fault
from weakfs.filesystem.paths import is_within
from weakfs.tools.errors import LimitExceeded, OperationForbidden, PolicyDenied
from weakfs.tools.guarding.capability import Capability
from weakfs.tools.guarding.operations import Operation, judged_as
from weakfs.tools.guarding.policy import Policy

# From the narrowest to the widest.
_LINKS: tuple[SymlinkPolicy, ...] = ("deny", "within_root_only", "allow")


@define(eq=False)
class Access:
    """What one call may do. `operation` is that of its tool, `roots` the capability's as canonical paths.

    Counts what the call has changed, so that one object serves one call.
    """

    capability: Capability
    policy: Policy
    operation: Operation | None
    roots: tuple[str, ...] | None
    _changed: set[str] = field(factory=set[str])
    _changed_more: int = 0

    def plain(self) -> Access:
        """Give the same for no tool's own operation: each is judged as what it is."""
        return Access(self.capability, self.policy, None, self.roots)

    def check_operation(self, operation: Operation) -> None:
        """Raise `OperationForbidden` for an operation that the capability lacks."""
        allowed = self.capability.allowed_fs_ops
        if allowed is not None and operation not in allowed:
            names = ", ".join(sorted(allowed)) or "none"
            raise OperationForbidden(f"cannot {operation} here: allowed are {names}; do without it")

    def check(self, operation: Operation, path: str, *, passing: bool = False) -> None:
        """Raise the `PermissionError` that stands against an operation at a canonical path, if one does."""
        refused = self.refusal(operation, path, passing=passing)
        if refused is not None:
            raise refused

    def permits(self, operation: Operation, path: str, *, passing: bool = False) -> bool:
        """Tell whether an operation may be done at a canonical path."""
        return self.refusal(operation, path, passing=passing) is None

    def refusal(self, operation: Operation, path: str, *, passing: bool = False) -> PermissionError | None:
        """Give what stands against an operation at a canonical path."""
        judged = judged_as(self.operation, operation)
        try:
            self.check_operation(judged)
        except OperationForbidden as error:
            return error
        if self.roots is not None and not any(is_within(path, root) for root in self.roots):
            places = ", ".join(self.roots) or "none"
            return fault(
                PermissionError,
                EACCES,
                f"cannot {judged} {path!r}: it lies outside the directories that may be used; stay inside {places}",
            )
        return self.denial(judged, path, passing=passing)

    def denial(self, operation: Operation, path: str, *, passing: bool = False) -> PolicyDenied | None:
        """Give what the policy has against an operation at a canonical path, taken for itself."""
        rule = self.policy.against(operation, path, passing=passing)
        if rule is None:
            return None
        places = f"; it is allowed in {', '.join(rule.paths)}" if rule.effect == "only" else "; leave it as it is"
        return PolicyDenied(f"cannot {operation} {path!r}: {rule.reason}{places}", rule.reason)

    def hides(self, operation: Operation, path: str, *, is_directory: bool) -> bool:
        """Tell whether a rule of the policy keeps an entry from a search or a listing."""
        judged = judged_as(self.operation, operation)
        return self.policy.against(judged, path, passing=is_directory) is not None

    def check_everything(self, *operations: Operation, why: str) -> None:
        """Raise unless these operations may be done everywhere: for what cannot be divided by paths."""
        for operation in operations:
            self.check(operation, "/")
            self.check_undivided(judged_as(self.operation, operation), why=why)

    def check_undivided(self, *operations: Operation, why: str) -> None:
        """Raise if the policy forbids one of these operations anywhere."""
        if self.policy.speaks_of(*operations):
            raise fault(
                PermissionError,
                EACCES,
                f"cannot {why}: it concerns all files, and the policy has rules about some; use other tools",
            )

    def check_size(self, path: str, size: int) -> None:
        """Raise `LimitExceeded` for so many bytes in one write."""
        most = self.capability.max_write_bytes
        if most is not None and size > most:
            raise LimitExceeded(
                f"cannot write {path!r}: it is {size} bytes and {most} may be written at once; split it"
            )

    def check_unbounded(self, why: str) -> None:
        """Raise `LimitExceeded` where changes are bounded: for what replaces all files at once."""
        capability = self.capability
        if (capability.max_changed_files, capability.max_write_bytes) != (None, None):
            raise LimitExceeded(f"cannot {why}: it replaces all files, and what a call may change is bounded")

    def check_changes(self, paths: tuple[str, ...], below: int = 0) -> None:
        """Count entries that are to change, `below` of them under these paths; raise `LimitExceeded` if too many."""
        most = self.capability.max_changed_files
        if most is None:
            return
        count = len(self._changed.union(paths)) + self._changed_more + below
        if count > most:
            raise LimitExceeded(
                f"cannot change {paths[0]!r}: one call may change {most} entries and this makes {count}; do it in parts"
            )
        self._changed.update(paths)
        self._changed_more += below

    def narrowed(self, policy: SymlinkPolicy) -> SymlinkPolicy:
        """Give the narrower of a filesystem's way with links and the capability's."""
        own = self.capability.follow_symlinks
        return policy if own is None or _LINKS.index(policy) <= _LINKS.index(own) else own


def clamped(asked: int | None, most: int | None) -> int | None:
    """Give what is asked for, at most `most`; `None` and -1 ask for all."""
    if most is None:
        return asked
    return most if asked is None or asked == -1 else min(asked, most)
