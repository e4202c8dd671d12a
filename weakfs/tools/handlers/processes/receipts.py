"""The receipts of the tools for background processes."""

from __future__ import annotations

from weakfs.class_decorators import frozen
from weakfs.processes.background import ProcessInfo
from weakfs.tools.blobs import BlobReference
from weakfs.tools.results import Receipt


@frozen(kw_only=True)
class ProcessReceipt(Receipt):
    """A process: its id, its state and how it ended.

    `state` is "held", "running", "ended" or "lost"; see `ProcessInfo`. `exit_code` is 128 + n if signal n killed it,
    and `None` while it runs or if it is unknown. `ended_because` is why it ended, unless it ended by itself.
    """

    process_id: str | None = None
    state: str | None = None
    exit_code: int | None = None
    ended_because: str | None = None


@frozen(kw_only=True)
class ProcessStartReceipt(ProcessReceipt):
    """A process that was started. `unsandboxed_because` says why there was no sandbox."""

    sandboxed: bool | None = None
    unsandboxed_because: str | None = None


@frozen(kw_only=True)
class ProcessOutputReceipt(ProcessReceipt):
    """What a process printed: standard output and standard error, interleaved.

    `output` is the text from position `since` to `next`; positions count the bytes of the whole output, which has
    `total` bytes. Output that is too large for a capability is replaced by a reference. `dropped` is the number of
    bytes before it that are no longer stored.
    """

    output: str | BlobReference | None = None
    since: int | None = None
    next: int | None = None
    total: int | None = None
    dropped: int | None = None


@frozen(kw_only=True)
class ProcessWaitReceipt(ProcessReceipt):
    """How a process ended. `timed_out` is true if it is still running.

    `changed_paths` are the sorted canonical paths that had changed when it ended, by this process or others.
    """

    timed_out: bool | None = None
    changed_paths: tuple[str, ...] | None = None


@frozen(kw_only=True)
class ProcessListReceipt(Receipt):
    """The processes that the session knows, in the order in which they were started."""

    processes: tuple[ProcessInfo, ...] | None = None
