"""The click commands that undo work of a session: `undo`, `redo`, `revert` and `restore-files`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from weakfs.cli.options import EXIT_STATUSES, expansion_option, json_option, registry_option, store_option
from weakfs.cli.output import Output

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
        click.argument("file"),
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
    from weakfs.cli.commands.sessions.undo import UndoOptions, take_back

    return take_back(
        Output(finish_unread=True), UndoOptions(**options), lambda session, how: session.undo(number, **how)
    )


@click.command("redo", epilog=EXIT_STATUSES)
@number_option
@_with_options(CONFLICTS)
def redo_command(number: int, **options: Any) -> int:
    """Redo what the last undos of a session undid.

    Works only if nothing else has changed since.
    """
    from weakfs.cli.commands.sessions.undo import UndoOptions, take_back

    return take_back(
        Output(finish_unread=True), UndoOptions(**options), lambda session, how: session.redo(number, **how)
    )


@click.command("revert", epilog=EXIT_STATUSES)
@_with_options(CONFLICTS)
@click.argument("target")
@paths_option
def revert_command(target: str, paths: tuple[str, ...], **options: Any) -> int:
    """Undo what one call changed, and keep later changes.

    TARGET is the id of a call, a record number, or a range of record numbers such as 12-15. "weakfs log --records"
    shows both; without --records, it numbers the calls, which are not the numbers of records.
    """
    from weakfs.cli.commands.sessions.undo import UndoOptions, take_back, target_of

    meant, only = target_of(target), paths or None
    return take_back(
        Output(finish_unread=True),
        UndoOptions(**options),
        lambda session, how: session.revert(meant, paths=only, **how),
    )


@click.command("restore-files", epilog=EXIT_STATUSES)
@_with_options(foreign="replace")
@click.argument("moment")
@paths_option
def restore_files_command(moment: str, paths: tuple[str, ...], **options: Any) -> int:
    """Restore the files of a session to an earlier moment.

    The rest of the session's state stays. MOMENT is a record number, or the tag or id of a snapshot. "weakfs undo"
    reverses it.
    """
    from weakfs.cli.commands.sessions.undo import UndoOptions, take_back
    from weakfs.cli.sessions import moment_named

    when, only = moment_named(moment), paths or None
    return take_back(
        Output(finish_unread=True),
        UndoOptions(**options),
        lambda session, how: session.restore(when, paths=only, **how),
    )
