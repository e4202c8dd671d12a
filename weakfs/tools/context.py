"""What a handler may use: the session, the filesystem, and whatever else the runtime passes along."""

from __future__ import annotations

from errno import EROFS
from typing import TYPE_CHECKING

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.fast_init import fast_init
from weakfs.filesystem import Filesystem, Limits
from weakfs.session import Cancellation, Session
from weakfs.tools.errors import DeadlineExceeded, ToolValidationError
from weakfs.tools.permissions.guard import guard_of, guarded

if TYPE_CHECKING:
    from weakfs.filesystem import SupportsCheckout
    from weakfs.tools.blobs import Blobs
    from weakfs.tools.permissions import Capability, Operation, PathPolicy


@fast_init
@frozen(kw_only=True)
class ToolContext:
    """The context of one call; `build_tool_context` and toolsets create it.

    `filesystem` enforces `capability` and `policy`. `limits` bounds the lines and grep matches in an answer unless the
    call gives a number. `call_id` is the cause of every record that the call makes; `caller` names who made the call.
    `deadline` is a reading of the session's clock in nanoseconds (`session.now() + 30 * 10**9`). `cancellation` lets
    another thread undo the call while it runs. `prompt`, `rendered_prompt`, `adapter` and `budget_tracker` are the
    runtime's own and are passed on unchanged. `directory` is where the files are on the host while the handler of a
    tool with `runs_programs` runs; `None` for other tools.
    """

    directory: str | None = None
    call_id: str | None = None
    caller: str | None = None
    deadline: int | None = None
    cancellation: Cancellation = field(factory=Cancellation)
    prompt: object = None
    rendered_prompt: object = None
    adapter: object = None
    budget_tracker: object = None
    session: Session
    filesystem: Filesystem | None
    limits: Limits
    capability: Capability | None
    policy: PathPolicy | None

    @property
    def blobs(self) -> Blobs:
        """The contents that this session's answers refer to."""
        from weakfs.tools.blobs import Blobs

        guard = guard_of(self.filesystem)
        return Blobs(self.session, self.call_id, None if guard is None else guard.carry)

    def check_deadline(self) -> None:
        """Raise `DeadlineExceeded` if the call has timed out, `TransactionCancelled` if it was cancelled.

        Handlers that run for a long time should call this from time to time.
        """
        self.cancellation.check()
        if self.deadline is not None:
            late = self.session.now() - self.deadline
            if late > 0:
                raise DeadlineExceeded(
                    f"the call's deadline passed {late / 1e9:.3g} s ago and nothing was changed; ask for less at once, "
                    f"or allow more time"
                )


def build_tool_context(
    *,
    session: Session,
    filesystem: Filesystem | None = None,
    limits: Limits | None = None,
    deadline: int | None = None,
    capability: Capability | None = None,
    policy: PathPolicy | None = None,
    operation: Operation | None = None,
    cancellation: Cancellation | None = None,
    call_id: str | None = None,
    caller: str | None = None,
    prompt: object = None,
    rendered_prompt: object = None,
    adapter: object = None,
    budget_tracker: object = None,
) -> ToolContext:
    """Return the context of one call. Every adapter uses this, so that handlers find the same things in it.

    `operation` is what the tool does: if there is a capability or a policy, the filesystem is guarded for that
    operation.
    """
    return ToolContext(
        call_id=call_id,
        caller=caller,
        deadline=deadline,
        cancellation=Cancellation() if cancellation is None else cancellation,
        prompt=prompt,
        rendered_prompt=rendered_prompt,
        adapter=adapter,
        budget_tracker=budget_tracker,
        session=session,
        filesystem=None if filesystem is None else guarded(filesystem, capability, policy, operation),
        limits=Limits.tools() if limits is None else limits,
        capability=capability,
        policy=policy,
    )


def require_filesystem(context: ToolContext) -> Filesystem:
    """Return the context's filesystem; raises `ToolValidationError` if there is none."""
    if context.filesystem is None:
        raise ToolValidationError(
            "there is no filesystem in this context; pass one to build_tool_context, or use a Toolset"
        )
    return context.filesystem


def require_writable(fs: Filesystem, doing: str, who: str) -> None:
    """Raise `PermissionError` if the files are read-only, for programs, which may change any of them."""
    if fs.read_only:
        raise fault(
            PermissionError,
            EROFS,
            f"cannot {doing}: the filesystem is read-only and {who} may change anything; use a writable one",
        )


def require_checkout(fs: Filesystem, doing: str) -> SupportsCheckout:
    """Return the filesystem; raises `ToolValidationError` if its files cannot be checked out for a program."""
    # Imported here because most calls run no programs.
    from weakfs.filesystem import SupportsCheckout

    if not isinstance(fs, SupportsCheckout):
        raise ToolValidationError(
            f"cannot {doing}: its files cannot be checked out into a directory; use an InMemoryFilesystem, a "
            f"HostFilesystem or an OverlayFilesystem"
        )
    return fs


def tighter(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two limits; `None` means no limit."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
