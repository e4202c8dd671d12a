"""`weakfs undo`, `redo`, `revert` and `restore-files`: undo changes of a session and its directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import asdict

from weakfs.class_decorators import frozen
from weakfs.cli.errors import DONE, UNMET, Failure, as_failure
from weakfs.cli.formatting import counted, shown
from weakfs.cli.options import (
    EXIT_STATUSES,
    expansion_option,
    file_argument,
    json_option,
    registry_option,
    store_option,
)
from weakfs.cli.output import Output
from weakfs.session import MergeConflict

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.session import Reversion
    from weakfs.session import Session as AnySession

F = TypeVar("F", bound=Callable[..., Any])

CONFLICTS = click.option(
    "--on-conflict",
    type=click.Choice(["raise", "ours", "theirs", "markers"]),
    default="raise",
    show_default=True,
    help='For lines that later work changed too: "theirs" restores them as they were, "ours" keeps them as they are.',
)


def _with_options(*own: Callable[[Any], Any], foreign: str = "keep") -> Callable[[F], F]:
    options = (
        file_argument,
        click.option("--preview", is_flag=True, help="Show what would change, and change nothing."),
        *own,
        click.option("--root", metavar="DIR", type=click.Path(), help="The directory that the session worked in."),
        store_option,
        click.option(
            "--foreign",
            type=click.Choice(["keep", "replace"]),
            default=foreign,
            show_default=True,
            help="Whether to keep what other programs changed in DIR.",
        ),
        registry_option,
        expansion_option,
        json_option,
    )

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


number_option = click.option("-n", "number", type=click.IntRange(min=1), default=1, show_default=True, help="How many.")

paths_option = click.option(
    "--path", "paths", multiple=True, metavar="PATH", help="Only this file or directory; may be repeated."
)


@click.command("undo", epilog=EXIT_STATUSES)
@number_option
@_with_options(CONFLICTS)
def undo_command(number: int, **options: Any) -> int:
    """Undo the last operations of a session.

    Operations are tool calls, merges, rollbacks and single changes. FILE is a saved session, or a location such as
    sqlite:sessions.db#ID. If the session worked in a directory, give it as --root DIR.
    """
    return take_back(options, lambda session, how: session.undo(number, **how))


@click.command("redo", epilog=EXIT_STATUSES)
@number_option
@_with_options(CONFLICTS)
def redo_command(number: int, **options: Any) -> int:
    """Redo what the last undos of a session undid.

    Works only if nothing else has changed since.
    """
    return take_back(options, lambda session, how: session.redo(number, **how))


@click.command("revert", epilog=EXIT_STATUSES)
@_with_options(CONFLICTS)
@click.argument("target")
@paths_option
def revert_command(target: str, paths: tuple[str, ...], **options: Any) -> int:
    """Undo what one call changed, and keep later changes.

    TARGET is the id of a call, its number in "weakfs log" written as #7, a record number, or a range of record numbers
    such as 12-15. Only "weakfs log --records" shows the numbers of records.
    """
    only = paths or None
    return take_back(options, lambda session, how: session.revert(target_of(session, target), paths=only, **how))


@click.command("restore-files", epilog=EXIT_STATUSES)
@_with_options(foreign="replace")
@click.argument("moment")
@paths_option
def restore_files_command(moment: str, paths: tuple[str, ...], **options: Any) -> int:
    """Restore the files of a session to an earlier moment.

    The rest of the session's state stays. MOMENT is a record number, or the tag or id of a snapshot. "weakfs undo"
    reverses it.
    """
    from weakfs.cli.sessions import moment_named

    when, only = moment_named(moment), paths or None
    return take_back(options, lambda session, how: session.restore(when, paths=only, **how))


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


def target_of(session: Session, text: str) -> int | range | str:
    """Read a call's id or number, a record number or a range of record numbers."""
    from weakfs.cli.commands.sessions.call_lookup import call_named
    from weakfs.cli.sessions import moment_named

    if re.fullmatch(r"#[0-9]+", text):
        return call_named(session, text).call.call_id
    if numbers := re.fullmatch(r"([0-9]+)-([0-9]+)", text):
        return range(int(numbers[1]), int(numbers[2]) + 1)
    return moment_named(text)


def take_back(given: Mapping[str, Any], work: Callable[[Session, dict[str, Any]], Reversion]) -> int:
    """Load the session, undo work, and save it; return the exit status."""
    from weakfs.cli.sessions import load
    from weakfs.history.calls import calls_of

    chosen = UndoOptions(**given)
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
    out = Output(finish_unread=True)
    if done.how == "revert" and not chosen.as_json:
        # The number of a record is easily mistaken for that of a call.
        for one in calls_of(session):
            if any(first <= number <= last for first, last in done.records for number in one.records):
                out.line(f"call {one.number}  {shown(one.call.tool)}  {shown(one.call.call_id)}")
    _show(out, chosen, done)
    if done.conflicts and not chosen.preview:
        raise Failure(f"cannot {done.how}: {chosen.conflicting}")
    return UNMET if done.conflicts else DONE


def save_change(session: AnySession, file: str, before: int) -> None:
    """Save a session file that changed after record `before`; a session in storage is saved already."""
    from weakfs.cli.sessions import is_location

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
    from weakfs.cli.directories import open_directory
    from weakfs.reducers.external_trees import external_trees

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
    from weakfs.session.conflicts.conflict_message import details

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
