"""What a handler may use: the session, the filesystem, and what else the runtime passes along."""

from __future__ import annotations

from attrs import frozen

from weakfs.filesystem import Filesystem, Limits
from weakfs.session import Cancellation, Session
from weakfs.tools.blobs import Blobs
from weakfs.tools.errors import DeadlineExceeded, ToolValidationError
from weakfs.tools.permissions import Capability, GuardedFilesystem, Operation, Policy, guarded


@frozen
class ToolContext:
    """What one call is made in. Made by `build_tool_context` and nowhere else.

    `filesystem` keeps to `capability` and `policy` by itself. `deadline` is a reading of the session's clock in
    nanoseconds (`session.now() + 30 * 10**9`). `limits` bounds what an answer holds: read lines and grep matches, where
    the call names no number. `prompt`, `rendered_prompt`, `adapter` and `budget_tracker` are the runtime's own, handed
    through untouched.
    """

    session: Session
    filesystem: Filesystem | None
    limits: Limits
    deadline: int | None
    capability: Capability | None
    policy: Policy | None
    cancellation: Cancellation
    call_id: str | None
    caller: str | None
    prompt: object
    rendered_prompt: object
    adapter: object
    budget_tracker: object

    @property
    def blobs(self) -> Blobs:
        """The contents that this session's answers refer to."""
        guard = self.filesystem if isinstance(self.filesystem, GuardedFilesystem) else None
        return Blobs(self.session, self.call_id, None if guard is None else guard.carry)

    def check_deadline(self) -> None:
        """Raise `DeadlineExceeded` if the call's time is over, `TransactionCancelled` if it was cancelled.

        For handlers that take long.
        """
        self.cancellation.check()
        if self.deadline is not None:
            late = self.session.now() - self.deadline
            if late > 0:
                raise DeadlineExceeded(
                    f"the call's time was over {late / 1e9:.3g} s ago and nothing was changed; ask for less at once, "
                    f"or allow more time"
                )


def build_tool_context(
    *,
    session: Session,
    filesystem: Filesystem | None = None,
    limits: Limits | None = None,
    deadline: int | None = None,
    capability: Capability | None = None,
    policy: Policy | None = None,
    operation: Operation | None = None,
    cancellation: Cancellation | None = None,
    call_id: str | None = None,
    caller: str | None = None,
    prompt: object = None,
    rendered_prompt: object = None,
    adapter: object = None,
    budget_tracker: object = None,
) -> ToolContext:
    """Make the context of one call. Every adapter uses this, so that all handlers find the same in it.

    `operation` is what the tool does: the filesystem is guarded for that, where there is a capability or a policy.
    """
    return ToolContext(
        session,
        None if filesystem is None else guarded(filesystem, capability, policy, operation),
        Limits.tools() if limits is None else limits,
        deadline,
        capability,
        policy,
        Cancellation() if cancellation is None else cancellation,
        call_id,
        caller,
        prompt,
        rendered_prompt,
        adapter,
        budget_tracker,
    )


def require_filesystem(context: ToolContext) -> Filesystem:
    """Give the context's filesystem; `ToolValidationError` if there is none."""
    if context.filesystem is None:
        raise ToolValidationError(
            "there is no filesystem in this context; pass one to build_tool_context, or use a Toolset"
        )
    return context.filesystem


def tighter(one: int | None, other: int | None) -> int | None:
    """Give the smaller of two limits; `None` stands for no limit."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
