"""The decisions about one call: whether an operation is allowed at a path, and how much it may change."""

from __future__ import annotations

from collections.abc import Iterable
from errno import EACCES

from weakfs.class_decorators import define
from weakfs.errors import fault
from weakfs.filesystem import SymlinkPolicy
from weakfs.filesystem.paths import is_within
from weakfs.messages import plural
from weakfs.tools.errors import LimitExceeded, OperationForbidden, PolicyDenied
from weakfs.tools.permissions.capability import Capability
from weakfs.tools.permissions.operations import JUDGED_AS, Operation
from weakfs.tools.permissions.rules import PathPolicy, PolicyRule, Visibility

# The operations whose rules still apply to a file after it is moved or copied.
FOLLOWING: tuple[Operation, ...] = ("read", "search")

# From the narrowest to the widest.
_LINKS: tuple[SymlinkPolicy, ...] = ("deny", "within_root_only", "allow")


@define(eq=False)
class Access:
    """What one call may do. `operation` is that of its tool, `roots` are the canonical paths of the capability's roots.

    Each object serves one call, because it counts what the call has changed.
    """

    capability: Capability
    policy: PathPolicy
    operation: Operation | None
    roots: tuple[str, ...] | None
    _changed: frozenset[str] = frozenset()
    _changed_more: int = 0
    # The files whose withheld contents the call was given: the rules for them apply to what it writes.
    _carried: frozenset[str] = frozenset()

    def plain(self) -> Access:
        """Return the same access without the operation of a tool: each operation is checked separately."""
        return Access(self.capability, self.policy, None, self.roots)

    def check(self, operation: Operation, path: str, *, passing: bool = False) -> None:
        """Raise `PermissionError` if an operation is not allowed at a canonical path."""
        refused = self.refusal(operation, path, passing=passing)
        if refused is not None:
            raise refused

    def check_included(self, operation: Operation) -> None:
        """Raise `OperationForbidden` if the capability does not include an operation, for calls without paths."""
        allowed = self.capability.allowed_fs_ops
        if allowed is not None and operation not in allowed:
            raise _not_among(allowed, operation)

    def check_below(self, operation: Operation, path: str, directory: str, *, origin: str | None = None) -> None:
        """Raise as `check` does for an entry below a directory that the call named.

        The message does not name an entry that may not be listed. For a copy, `origin` is the entry copied.
        """
        refused = self.refusal(operation, path)
        if refused is None:
            return
        is_listed = self.may_list(path) and (origin is None or self.may_list(origin))
        if isinstance(refused, PolicyDenied) and path != directory and not is_listed:
            raise PolicyDenied(
                f"cannot {operation} {directory!r} as a whole: {refused.reason}; name the entries one by one",
                refused.reason,
            )
        raise refused

    def permits(self, operation: Operation, path: str) -> bool:
        """Return whether an operation is allowed at a canonical path."""
        return self.refusal(operation, path) is None

    def refusal(self, operation: Operation, path: str, *, passing: bool = False) -> PermissionError | None:
        """Return the error for an operation that is not allowed at a canonical path."""
        judged = JUDGED_AS[self.operation][operation]
        allowed = self.capability.allowed_fs_ops
        if allowed is not None and judged not in allowed:
            return _not_among(allowed, judged)
        if self.roots is not None and not any(is_within(path, root) for root in self.roots):
            outside = f"it is outside the allowed directories; use a path in {', '.join(self.roots)}"
            why = outside if self.roots else "no directory is allowed; use another tool"
            return fault(PermissionError, EACCES, f"cannot {judged} {path!r}: {why}")
        rule = self.policy.against(judged, path, passing=passing)
        if rule is not None:
            return _denied(rule, judged, path)
        if judged != operation and (operation == "read" or judged == "list"):
            # An edit and a patch read the file, and a listing shows sizes; reading and sizes may be forbidden
            # separately.
            return self.denial(operation, path)
        return None

    def denial(self, operation: Operation, path: str) -> PolicyDenied | None:
        """Return the error for an operation that the policy forbids at a canonical path."""
        rule = self.policy.against(operation, path)
        return None if rule is None else _denied(rule, operation, path)

    @property
    def withholds_some(self) -> bool:
        """Whether answers may not show the contents of some files, or of all."""
        return self.policy.withholds(("read",)) or not self._includes_reading

    def withholds(self, path: str) -> bool:
        """Return whether a file may be read but answers may not show its contents."""
        return not self._includes_reading or self.policy.withholding("read", path) is not None

    @property
    def _includes_reading(self) -> bool:
        allowed = self.capability.allowed_fs_ops
        return allowed is None or "read" in allowed

    def concealment(self, path: str) -> PermissionError | None:
        """Return the error for an action that would reveal an entry's contents, if answers may not show them."""
        refused = self.plain().refusal("read", path)
        rule = None if refused is not None else self.policy.withholding("read", path)
        if rule is None:
            return refused
        why = f"{rule.reason}, and this would show what is in it"
        return PolicyDenied(f"cannot use {path!r} here: {why}; use other files", rule.reason)

    def may_show(self, path: str) -> bool:
        """Return whether an answer of this call may quote the file at a canonical path."""
        if not self.plain().permits("read", path):
            return False
        operations: tuple[Operation, ...] = ("read",) if self.operation is None else ("read", self.operation)
        return all(self.policy.visibility(operation, path) != Visibility.WITHHELD for operation in operations)

    def may_name(self, path: str) -> bool:
        """Return whether a message may suggest a path: one that may be shown, listed and found."""
        if not (self.may_show(path) and self.plain().permits("list", path)):
            return False
        looking: tuple[Operation, ...] = ("list", "search", "stat")
        return all(self.policy.visibility(operation, path) == Visibility.SHOWN for operation in looking)

    def may_list(self, path: str) -> bool:
        """Return whether a listing shows a path."""
        return self.plain().permits("list", path) and self.policy.visibility("list", path) == Visibility.SHOWN

    def shows(self, operation: Operation, path: str) -> bool:
        """Return whether an answer may show what an operation finds at a path; the capability is not consulted."""
        return self.policy.visibility(operation, path) == Visibility.SHOWN

    def check_transfer(
        self,
        source: str,
        destination: str,
        operations: Iterable[Operation] = FOLLOWING,
        *,
        named: tuple[str, str] | None = None,
    ) -> None:
        """Raise `PolicyDenied` if the contents of `source` may not be seen there but could be seen at `destination`.

        `named` are the two paths that the call named, for entries below them.
        """
        rule = self.policy.loosened(operations, source, destination)
        if rule is not None:
            if named is not None and not self.may_list(source):
                source, destination = named
            raise PolicyDenied(
                f"cannot move the contents of {source!r} to {destination!r}: {rule.reason}, and that rule does not "
                "apply there; choose a path where it does",
                rule.reason,
            )

    def carry(self, origins: Iterable[str]) -> None:
        """Note that the call was given the contents of files that answers may not show."""
        self._carried = self._carried.union(origins)

    def check_carried(self, path: str) -> None:
        """Raise `PolicyDenied` for a path where withheld contents that the call was given could be seen."""
        for origin in sorted(self._carried):
            self.check_transfer(origin, path, (*FOLLOWING, "list"))

    def hides(self, operation: Operation, path: str, *, is_directory: bool) -> bool:
        """Return whether a rule of the policy hides an entry from a search or a listing."""
        judged = JUDGED_AS[self.operation][operation]
        return self.policy.against(judged, path, passing=is_directory) is not None

    def check_everything(self, *operations: Operation, why: str, withheld: bool = False) -> None:
        """Raise unless these operations are allowed everywhere: for actions that cannot be divided by paths.

        With `withheld`, also raise if answers may not show everything that they find.
        """
        for operation in operations:
            self.check(operation, "/")
            judged = JUDGED_AS[self.operation][operation]
            both: tuple[Operation, ...] = (judged, "read") if operation == "read" else (judged,)
            self.check_undivided(*both, why=why, withheld=withheld)

    def check_command(self) -> None:
        """Raise unless a command may run: it can read, change and print any file."""
        self.check("shell", "/")
        allowed = self.capability.allowed_fs_ops
        needed: tuple[tuple[Operation, str], ...] = (("write", "change"), ("read", "read"))
        for operation, verb in needed:
            if allowed is not None and operation not in allowed:
                raise OperationForbidden(
                    f"cannot run a command here: it may {verb} any file, and {operation!r} is not among the allowed "
                    f"operations, which are {', '.join(sorted(allowed))}; use other tools"
                )
        self.check_undivided("read", "search", "list", "stat", "shell", why="run a program", withheld=True)

    def check_undivided(self, *operations: Operation, why: str, withheld: bool = False) -> None:
        """Raise if the policy forbids one of these operations anywhere or, with `withheld`, withholds its results."""
        if self.policy.has_rule_for(*operations, withheld=withheld):
            raise fault(
                PermissionError,
                EACCES,
                f"cannot {why}: it affects all files, and the policy has rules about some of them; use other tools",
            )

    def check_size(self, path: str, size: int) -> None:
        """Raise `LimitExceeded` if one write has too many bytes."""
        most = self.capability.max_write_bytes
        if most is not None and size > most:
            raise LimitExceeded(
                f"cannot write {path!r}: it has {plural(size, 'byte')} and the limit for one write is {most}; split it"
            )

    def check_unmeasured(self, path: str, why: str) -> None:
        """Raise `LimitExceeded` if the size of a write is limited; for writes whose size no answer may reveal."""
        if self.capability.max_write_bytes is not None:
            raise LimitExceeded(f"cannot write {path!r}: the size of a write is limited, and {why}; leave it unchanged")

    def check_unbounded(self, why: str) -> None:
        """Raise `LimitExceeded` if the changes of a call are limited; for operations that replace all files at once."""
        capability = self.capability
        if (capability.max_changed_files, capability.max_write_bytes) != (None, None):
            raise LimitExceeded(
                f"cannot {why}: it may change all files, and the changes of a call are limited; use other tools"
            )

    def check_changes(self, paths: tuple[str, ...], below: int = 0) -> None:
        """Count entries about to change, `below` of them under these paths; raise `LimitExceeded` if too many."""
        most = self.capability.max_changed_files
        if most is None:
            return
        changed = self._changed.union(paths)
        count = len(changed) + self._changed_more + below
        if count > most:
            raise LimitExceeded(
                f"cannot change {paths[0]!r}: one call may change {plural(most, 'entry')} and this one would change "
                f"{count}; use several calls"
            )
        self._changed = changed
        self._changed_more += below

    def narrowed(self, policy: SymlinkPolicy) -> SymlinkPolicy:
        """Return the stricter of a filesystem's policy on links and the capability's.

        A place outside the filesystem's root is also outside the capability's roots, so no link may lead there.
        """
        if self.roots is not None and policy == "allow":
            policy = "within_root_only"
        own = self.capability.follow_symlinks
        return policy if own is None or _LINKS.index(policy) <= _LINKS.index(own) else own


def _denied(rule: PolicyRule, operation: Operation, path: str) -> PolicyDenied:
    places = f"; it is allowed in {', '.join(rule.paths)}" if rule.effect == "only" else "; leave it unchanged"
    return PolicyDenied(f"cannot {operation} {path!r}: {rule.reason}{places}", rule.reason)


def _not_among(allowed: Iterable[Operation], operation: Operation) -> OperationForbidden:
    wanted = "run commands" if operation == "shell" else f"{operation} files"
    names = ", ".join(sorted(allowed)) or "none"
    return OperationForbidden(
        f"cannot {wanted} here: {operation!r} is not among the allowed operations, which are {names}; use another tool"
    )


def clamped(asked: int | None, most: int | None) -> int | None:
    """Return the smaller of `asked` and `most`; `None` and -1 mean everything."""
    if most is None:
        return asked
    return most if asked is None or asked == -1 else min(asked, most)
