"""Applying a patch to a filesystem: parse it, compute all changes, then write all of them or none."""

from __future__ import annotations

from contextlib import nullcontext
from typing import get_args

from weakfs.editing.patches.change_order import Step, steps_of
from weakfs.editing.patches.commit import check_planned, commit, transaction
from weakfs.editing.patches.errors import refusal
from weakfs.editing.patches.formats.dialect import Dialect, FinalNewline, OnAmbiguous, OnExisting, PatchFormat
from weakfs.editing.patches.formats.search_replace import parse_search_replace
from weakfs.editing.patches.formats.unified import parse_unified
from weakfs.editing.patches.formats.v4a import parse_v4a
from weakfs.editing.patches.operations import Operation, UpdateFile
from weakfs.editing.patches.report import PatchOps, PatchReport
from weakfs.editing.patches.staging import Stage
from weakfs.filesystem.protocol import Filesystem

# `get_args` is too slow for each call.
_ON_EXISTING, _ON_AMBIGUOUS = get_args(OnExisting), get_args(OnAmbiguous)
_FINAL_NEWLINES, _FORMATS = get_args(FinalNewline), get_args(PatchFormat)


def apply_patch(
    fs: Filesystem,
    patch: str,
    *,
    patch_format: PatchFormat = "v4a",
    dry_run: bool = False,
    on_existing: OnExisting = "replace",
    on_ambiguous: OnAmbiguous = "reject",
    final_newline: FinalNewline = "keep",
    added_file_newline: bool = True,
) -> PatchReport:
    """Apply a V4A patch, a unified diff or SEARCH/REPLACE blocks: all of it, or nothing if anything is wrong with it.

    With `dry_run`, the result or exception is the same, but nothing is written. `on_existing` says what happens to an
    existing file if another is added or moved there, and `on_ambiguous` whether a hunk that fits in several places is
    applied at the first one. `final_newline="add"` ends every updated file with a newline, and
    `added_file_newline=False` adds none to new files.

    Raises `PatchError`, whose `errors` describe each wrong hunk or file, or the `OSError` of a filesystem that refuses
    the change, for example because of a quota. O(patch + files).
    """
    _check("on_existing", on_existing, _ON_EXISTING)
    _check("on_ambiguous", on_ambiguous, _ON_AMBIGUOUS)
    _check("final_newline", final_newline, _FINAL_NEWLINES)
    _check("patch_format", patch_format, _FORMATS)
    ends_added = added_file_newline or patch_format == "unified"
    return _apply(
        fs, patch, patch_format, Dialect(on_existing, on_ambiguous, final_newline, ends_added), dry_run=dry_run
    )


def apply_patch_as_codex(fs: Filesystem, patch: str) -> PatchReport:
    """Apply a V4A patch as Codex does, byte for byte: for sessions that were recorded with it.

    `weakfs.editing.patches.formats.codex` lists the differences. Raises the same exceptions as `apply_patch`.
    """
    return _apply(fs, patch, "v4a", Dialect(is_codex=True), dry_run=False)


def _apply(fs: Filesystem, patch: str, patch_format: PatchFormat, dialect: Dialect, *, dry_run: bool) -> PatchReport:
    operations = _parsed(patch, patch_format, dialect)
    with nullcontext() if dry_run else transaction(fs):
        stage = Stage(fs, dialect)
        stage.prepare(operations)
        for operation in operations:
            stage.do(operation)
        if stage.problems:
            raise refusal(stage.problems)
        steps = steps_of(stage.places)
        check_planned(stage.fs, steps)
        if not dry_run:
            commit(stage.fs, steps)
    return _report(stage, steps, dry_run)


def paths_in(patch: str, *, patch_format: PatchFormat = "v4a") -> tuple[str, ...]:
    """Return the paths that a patch names, as written, in order. Raises `PatchParseError` if it is malformed."""
    named: dict[str, None] = {}
    for operation in _parsed(patch, patch_format, Dialect()):
        named[operation.path] = None
        if isinstance(operation, UpdateFile) and operation.move_to is not None:
            named[operation.move_to] = None
    return tuple(named)


def _check(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; use {' or '.join(map(repr, choices))}")


def _parsed(patch: str, patch_format: str, dialect: Dialect) -> tuple[Operation, ...]:
    if not isinstance(patch, str):
        raise TypeError(f"a patch is text, not {type(patch).__name__}; decode it first")
    if patch_format == "v4a":
        return parse_v4a(patch, as_codex=dialect.is_codex)
    return parse_unified(patch) if patch_format == "unified" else parse_search_replace(patch)


def _report(stage: Stage, steps: list[Step], dry_run: bool) -> PatchReport:
    counts = stage.counts
    made = {path for step in steps for path in (step.path, step.destination)}
    changed = tuple(path for path in stage.touched if path in made)
    replaced = tuple(path for path in stage.replaced if path in made)
    ops = PatchOps(counts["add"], counts["update"], counts["delete"], counts["move"])
    verbs = [f"{count} {verb}" for verb, count in _verbs(ops) if count]
    files = f"{len(changed)} file{'' if len(changed) == 1 else 's'} changed"
    summary = files + (f" ({', '.join(verbs)})" if verbs else "") if changed else "nothing changed"
    return PatchReport(len(changed), changed, ops, replaced, tuple(stage.fits), summary, dry_run)


def _verbs(ops: PatchOps) -> tuple[tuple[str, int], ...]:
    return ("added", ops.add), ("updated", ops.update), ("deleted", ops.delete), ("moved", ops.move)
