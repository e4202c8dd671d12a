"""`weakfs export-git`: the history of a session as a git repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, as_failure
from weakfs.cli.formatting import counted, shown
from weakfs.cli.options import expansion_option, file_argument, json_option, registry_option
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs.history.commit_graph import Per


@click.command("export-git")
@file_argument
@click.argument("repository", type=click.Path())
@click.option(
    "--per",
    type=click.Choice(["call", "turn"]),
    default="call",
    show_default=True,
    help="One commit for each call, or for consecutive calls of one caller.",
)
@click.option("--branch", metavar="NAME", default="main", show_default=True, help="The branch to export to.")
@click.option("--filesystem", metavar="ID", help="The external filesystem to export.  [default: the session's files]")
@registry_option
@expansion_option
@json_option
def export_git_command(
    file: str,
    repository: str,
    per: Per,
    branch: str,
    filesystem: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Write the history of a session to a git repository.

    REPOSITORY is created if it does not exist. FILE is a saved session, or a location such as sqlite:sessions.db#ID.
    Calls become commits, forks become branches, merges have two parents, and tagged snapshots become tags. Run the
    command again to add what is new.
    """
    from weakfs.cli.sessions import chosen, load
    from weakfs.history.git_export.export import export_git

    session = load(file, registry, max_expansion)
    meant = chosen(session, filesystem)
    with as_failure(f"export to {repository!r}"):
        done = export_git(session, repository, filesystem=meant, per=per, branch=branch)
    out = Output(finish_unread=True)
    if as_json:
        out.record(type="exported", repository=repository, branch=branch, commits=done.commits, head=done.head)
    else:
        out.line(f"{counted(done.commits, 'commit')} added to {shown(branch)} of {shown(repository)}")
    return DONE
