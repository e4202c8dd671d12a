"""`apply_patch`: several files changed at once, all of them or none."""

from __future__ import annotations

from errno import EACCES

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.editing import HunkFit, PatchError, PatchFormat, PatchOps, PatchReport
from weakfs.errors import fault
from weakfs.messages import clip, one_line, plural, printable
from weakfs.tools.blobs import BlobArgument
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import ToolValidationError, UnknownBlob
from weakfs.tools.permissions import may_show
from weakfs.tools.results import MAX_FAILURE, Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool

# The maximum number of paths that a message names, and of hunks that did not match exactly.
MAX_NAMED = 20


@frozen
class ApplyPatchParams:
    """The parameters of `apply_patch`: a patch as text, or a blob that a receipt referred to."""

    patch: str | BlobArgument = field(
        repr=False, metadata=param("the patch, from '*** Begin Patch' to '*** End Patch'")
    )
    patch_format: PatchFormat = field(
        default="v4a",
        metadata=param(
            "unified for the output of git diff; search_replace for a file name and, below it, <<<<<<< SEARCH, "
            "=======, >>>>>>> REPLACE around whole lines"
        ),
    )
    dry_run: bool = field(default=False, metadata=param("only report what would change"))


@frozen(kw_only=True)
class ApplyPatchReceipt(Receipt):
    """The changes that were made, or with `dry_run` those that would be made.

    `changed_paths` are in the order of the patch; a move adds the old path and the new one. `replaced` are the paths of
    existing files that were replaced. `inexact` has a note about each hunk that did not match exactly. If the patch was
    refused, `errors` has at most ten messages.
    """

    files_changed: int | None = None
    changed_paths: tuple[str, ...] = ()
    ops: PatchOps | None = None
    replaced: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    dry_run: bool = False


def apply_patch_handler(params: ApplyPatchParams, *, context: ToolContext) -> ToolResult[ApplyPatchReceipt]:
    """Apply a patch; nothing is written unless all of it can be applied."""
    from weakfs.editing import apply_patch

    fs = require_filesystem(context)
    patch = _patch_of(params, context)
    if context.capability is not None:
        context.capability.check_patch(len(patch.encode("utf-8", "surrogatepass")), params.patch_format)
    try:
        report = apply_patch(fs, patch, patch_format=params.patch_format, dry_run=params.dry_run)
    except PatchError as error:
        return _refused(error, dry_run=params.dry_run)
    receipt = ApplyPatchReceipt(
        files_changed=report.files_changed,
        changed_paths=report.changed_paths,
        ops=report.ops,
        replaced=report.replaced,
        inexact=tuple(one_line(_note(fit)) for fit in report.hunks if fit.fit != "exact" or fit.notes),
        dry_run=report.dry_run,
        summary_text=summarize(_summary(report)),
    )
    return answer(receipt, clip("\n".join(_lines_of_answer(report, receipt)), MAX_FAILURE))


def patched_paths(params: ApplyPatchParams, context: ToolContext) -> tuple[str, ...]:
    """Return the paths that a patch names; empty if it is malformed, missing or forbidden."""
    from weakfs.editing.patches.apply import paths_in

    try:
        return paths_in(_patch_of(params, context), patch_format=params.patch_format)
    except (PatchError, UnknownBlob, PermissionError):
        return ()


def _patch_of(params: ApplyPatchParams, context: ToolContext) -> str:
    if isinstance(params.patch, str):
        return params.patch
    digest = params.patch.blob_ref
    data = context.blobs.get(digest)
    if not all(may_show(context.filesystem, path) for path in context.blobs.origins(digest)):
        raise fault(
            PermissionError,
            EACCES,
            "cannot apply the patch: it is a blob of a file that may not be shown, and messages quote a patch; give "
            "the patch as text",
        )
    return _text(data)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolValidationError(
            f"patch: the blob is not UTF-8 text at byte {error.start}; use a blob of text"
        ) from None


def _summary(report: PatchReport) -> str:
    if not report.changed_paths:
        return "The patch changes nothing"
    verb = "Would change: " if report.dry_run else "Applied patch: "
    return f"{verb}{report.summary}: {', '.join(report.changed_paths[:MAX_NAMED])}" + _more(report.changed_paths)


def _lines_of_answer(report: PatchReport, receipt: ApplyPatchReceipt) -> list[str]:
    lines = [one_line(_summary(report))]
    if receipt.replaced:
        named = ", ".join(receipt.replaced[:MAX_NAMED]) + _more(receipt.replaced)
        lines.append(one_line(f"Replaced existing files: {named}"))
    lines += receipt.inexact[:MAX_NAMED]
    if len(receipt.inexact) > MAX_NAMED:
        lines.append(f"and {plural(len(receipt.inexact) - MAX_NAMED, 'more hunk')}")
    return lines


def _note(fit: HunkFit) -> str:
    notes = [f"fits apart from {fit.fit}"] if fit.fit != "exact" else []
    return f"{fit.path}: hunk {fit.hunk}: {'; '.join((*notes, *fit.notes))}"


def _more(paths: tuple[str, ...]) -> str:
    return f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""


def _refused(error: PatchError, *, dry_run: bool) -> ToolResult[ApplyPatchReceipt]:
    receipt = ApplyPatchReceipt(
        status=error.status,
        error_code=error.error_code,
        errors=tuple(printable(clip(problem.message, MAX_FAILURE)) for problem in error.errors),
        dry_run=dry_run,
        summary_text=summarize(str(error)),
    )
    return answer(receipt, clip(f"{error}\nNothing was changed.", MAX_FAILURE))


DESCRIPTION = """\
Change several files at once, all of them or none. A patch starts with *** Begin Patch, ends with \
*** End Patch and has, in between, any number of
*** Add File: path, then each line of the file, prefixed with +
*** Delete File: path
*** Update File: path, then optionally *** Move to: path, then hunks in the order of the file.
A hunk is @@, or @@ and a whole line of the file above the change (its class or function; several such lines nest); \
then lines prefixed with a space if they stay, - if removed, + if added. Copy old lines exactly, about three above and \
below each change: they must match only one place. *** End of File below a hunk ties it to the end. No line numbers.
Example:
*** Begin Patch
*** Update File: src/app.py
@@ class Server:
@@     def start(self):
         self.open()
-        self.port = 80
+        self.port = 8080
         return self
*** Add File: docs/ports.md
+# Ports
+8080: the server
*** Delete File: docs/old.md
*** End Patch"""

TOOLS = (
    Tool(
        "apply_patch",
        DESCRIPTION,
        ApplyPatchParams,
        apply_patch_handler,
        aliases={"input": "patch"},
        receipt=ApplyPatchReceipt,
        operation="patch",
        targets=patched_paths,
    ),
)
