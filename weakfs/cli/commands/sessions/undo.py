"""`weakfs undo`, `redo`, `revert` and `restore-files`: undo changes of a session and its directory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from attrs import asdict

from weakfs import MergeConflict, Session
from weakfs.class_decorators import frozen
from weakfs.cli.directories import open_directory
from weakfs.cli.errors import DONE, UNMET, Failure, as_failure
from weakfs.cli.formatting import counted, shown
from weakfs.cli.output import Output
from weakfs.cli.sessions import is_location, load, moment_named
from weakfs.reducers.external_trees import external_trees
from weakfs.session import Reversion
from weakfs.session import Session as AnySession
from weakfs.session.merging.conflict_message import details


@frozen
class UndoOptions:
    """The options of a command."""

    file: str
    preview: bool
    root: str | None
    store: str | None
    foreign: str
    registry: str | None
    max_expansion: float | None
    as_json: bool
    # `None` for a command without --on-conflict.
    on_conflict: str | None = None

    @property
    def conflicting(self) -> str:
        """The message about conflicts, with a remedy."""
        choices = "--on-conflict ours (as it is now), theirs (as it was before) or markers"
        remedy = "--foreign replace" if self.on_conflict is None else choices
        return f"later work changed the same lines or paths; nothing was changed; choose with {remedy}"


def target_of(text: str) -> int | range | str:
    """Read a call id, a record number or a range of record numbers."""
    if numbers := re.fullmatch(r"([0-9]+)-([0-9]+)", text):
        return range(int(numbers[1]), int(numbers[2]) + 1)
    return moment_named(text)


def take_back(out: Output, chosen: UndoOptions, work: Callable[[Session, dict[str, Any]], Reversion]) -> int:
    """Load the session, undo work, and save it; return the exit status."""
    session = load(chosen.file, chosen.registry, chosen.max_expansion, is_to_change=not chosen.preview)
    open_root(session, chosen.file, chosen.root, chosen.store)
    before = session.seq
    options = {"preview": chosen.preview, "foreign": chosen.foreign}
    if chosen.on_conflict is not None:
        options["on_conflict"] = chosen.on_conflict
    with as_failure(f"change {chosen.file!r}"):
        try:
            done = work(session, options)
        except MergeConflict:
            # Show the conflicts as a preview does, unless another process has changed the session meanwhile.
            done = work(session, {**options, "preview": True})
            if not done.conflicts:
                raise
        if done.record is not None:
            save_change(session, chosen.file, before)
    _show(out, chosen, done)
    if done.conflicts and not chosen.preview:
        raise Failure(f"cannot {done.how}: {chosen.conflicting}")
    return UNMET if done.conflicts else DONE


def save_change(session: AnySession, file: str, before: int) -> None:
    """Save a session file that changed after record `before`; a session in storage is saved already."""
    if is_location(file):
        return
    try:
        session.save(file)
    except BaseException:
        # The directory must be restored too.
        session.rollback(before)
        raise


def open_root(session: Session, file: str, root: str | None, store: str | None) -> None:
    """Open the directory that the session worked in; raise `Failure` if it is not given."""
    known = [*external_trees(session).trees]
    if root is None:
        if known:
            raise Failure(
                f"cannot undo work of {file!r} without its directory: the session worked in "
                f"{', '.join(shown(name) for name in known)}; give --root DIR"
            )
        return
    if len(known) > 1:
        raise Failure(
            f"cannot undo work of {file!r}: the session worked in {len(known)} directories; open them in a program, "
            f"and call session.undo() there"
        )
    open_directory(root, store=store, session=session, filesystem_id=known[0] if known else None)


def _show(out: Output, chosen: UndoOptions, done: Reversion) -> None:
    if chosen.as_json:
        out.record(
            type="reversion",
            how=done.how,
            preview=chosen.preview,
            records=[list(pair) for pair in done.records],
            changes=[
                {
                    "path": change.path,
                    "change": change.change,
                    "source": change.source,
                    "lines_added": change.lines_added,
                    "lines_removed": change.lines_removed,
                    "bytes_added": change.bytes_added,
                    "bytes_removed": change.bytes_removed,
                }
                for change in done.changes
            ],
            conflicts=[
                {"path": entry.path, "kind": entry.kind, "hunks": [asdict(hunk) for hunk in entry.hunks]}
                for entry in done.conflicts
            ],
            foreign=list(done.foreign),
            detached=list(done.detached),
        )
        return
    for path in done.foreign:
        out.line(("changed by another program", "yellow"), f"  {shown(path)}")
    for name in done.detached:
        out.line(("not attached, left unchanged", "yellow"), f"  {shown(name)}")
    for change in done.changes:
        source = "" if change.source is None else f"{shown(change.source)} -> "
        out.line(f"{change.change:8} {source}{shown(change.path)}  +{change.lines_added} -{change.lines_removed}")
    for entry in done.conflicts:
        out.line(("conflict", "red"), f"  {shown(entry.path)} ({entry.kind})")
        for line in details(entry, "ours", "theirs"):
            out.line(f"  {line}")
    if done.changes:
        lines = f"+{done.lines_added} -{done.lines_removed} lines"
        out.line(f"{counted(len(done.paths), 'path')}, {lines}, +{done.bytes_added} -{done.bytes_removed} bytes")
    if done.conflicts:
        if chosen.preview:
            out.line(f"a preview found conflicts: {chosen.conflicting}")
    elif not done.changes:
        out.line("nothing to change")
    elif chosen.preview:
        out.line("preview: nothing was changed")
