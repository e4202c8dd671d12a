"""Answers that may be large: a small one goes inline, a large one is stored as a blob that the answer refers to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from weakfs.messages import plural
from weakfs.tools.blobs import PREVIEW, BlobReference
from weakfs.tools.context import ToolContext
from weakfs.tools.errors import InlineTooLarge
from weakfs.tools.permissions import Operation, Visibility
from weakfs.tools.schemas.arguments import param

OutputMode = Literal["auto", "require_inline"]

# Larger answers are stored as blobs. More than a tool returns by default, and much less than a model can read.
INLINE = 256 * 1024

ABOUT_MODE = param("auto returns a large result as a blob reference; require_inline fails instead", for_models=False)


def kept_as_blob(
    content: str | bytes, mode: OutputMode, context: ToolContext, *operations: Operation, paths: Iterable[str] = ()
) -> BlobReference | None:
    """Return the reference that replaces a blob in an answer, or `None` if it goes inline.

    `operations` read the contents from the files at `paths`; the policy or the capability may keep these out of
    answers. Raises `InlineTooLarge` if inline is required but not possible.
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    most = INLINE if context.capability is None else context.capability.max_inline_bytes
    most = INLINE if most is None else min(most, INLINE)
    hidden = withheld(context, operations, paths)
    if len(data) <= most and not hidden:
        return None
    if mode == "require_inline":
        size = f"it has {plural(len(data), 'byte')} and the limit is {most}"
        why = "the policy or the capability keeps it out of answers" if hidden else size
        raise InlineTooLarge(f"cannot answer inline: {why}; ask for less, or use output_mode='auto'")
    return context.blobs.keep(data, preview=0 if hidden else min(most, PREVIEW), origins=hidden)


def withheld(context: ToolContext, operations: tuple[Operation, ...], paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths at which answers must withhold what these operations find."""
    if not may_withhold(context, operations):
        return ()
    policy = context.policy
    if policy is None or _lacks_reading(context, operations):
        return tuple(paths)
    return tuple(
        path for path in paths if any(policy.visibility(one, path) == Visibility.WITHHELD for one in operations)
    )


def may_withhold(context: ToolContext, operations: tuple[Operation, ...]) -> bool:
    """Return whether answers may have to withhold what these operations find at any of the paths."""
    policy = context.policy
    return _lacks_reading(context, operations) or (policy is not None and policy.withholds(operations))


def _lacks_reading(context: ToolContext, operations: tuple[Operation, ...]) -> bool:
    allowed = None if context.capability is None else context.capability.allowed_fs_ops
    return allowed is not None and "read" in operations and "read" not in allowed


def shown(reference: BlobReference, remedy: str) -> str:
    """Return the message for a result that is stored as a blob: its beginning, and how to see more of it."""
    note = f"[{reference.size_bytes} bytes, kept as blob {reference.blob_ref}; {remedy}]"
    return f"{reference.preview}\n{note}" if isinstance(reference.preview, str) else note


def first_shown(count: int) -> str:
    """Return the note that an answer ends after so many results."""
    return "only the first is shown" if count == 1 else f"the first {count} are shown"
