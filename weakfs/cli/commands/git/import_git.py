"""`weakfs import-git`: the history of a git repository as a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, Failure, as_failure, usage
from weakfs.cli.formatting import counted, shown
from weakfs.cli.options import json_option, size
from weakfs.cli.output import Output, progress

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.history import ImportReport

# The maximum number of skipped entries that are printed.
SHOWN = 20


@click.command("import-git")
@click.argument("repository", type=click.Path())
@click.argument("where", required=False)
@click.option("--branch", metavar="NAME", help="The branch to import.  [default: the current branch]")
@click.option(
    "--max-file-size", metavar="SIZE", default="32M", show_default=True, callback=size, help="Leave out larger files."
)
@json_option
def import_git_command(
    repository: str, where: str | None, branch: str | None, max_file_size: int | None, as_json: bool
) -> int:
    """Record the history of a git branch in a new session.

    Each commit becomes one call. WHERE is the file to create, by default NAME.json for a repository called NAME, or a
    location in storage such as sqlite:sessions.db#ID. Merges become merges of forks where possible, and tags become
    snapshots. No code of the repository runs, and nothing is fetched. "weakfs export-git" writes the same commits
    again.
    """
    name = Path(os.path.abspath(repository)).name.removesuffix(".git") or "repository"
    target = where if where is not None else f"{name}.json"
    with progress(f"reading {repository}"):
        session, report = _imported(repository, target, name, branch, max_file_size)
    out = Output(finish_unread=True)
    if as_json:
        _print_json(out, session, report, target)
        return DONE
    out.line(
        ("imported", "bold"),
        f" {counted(report.commits, 'commit')} of {shown(report.branch)} to {shown(target)}: {session.session_id}",
    )
    if report.flattened:
        out.line(
            f"{counted(report.flattened, 'commit')} of merged branches not imported separately: each merge is one "
            "change"
        )
    for one in report.skipped[:SHOWN]:
        out.line(("left out", "yellow"), f" {shown(one.path)} in {one.commit[:12]}: {shown(one.reason)}")
    if report.skipped_count > SHOWN:
        out.line(f"and {counted(report.skipped_count - SHOWN, 'other')}")
    for ref in report.other_refs[:SHOWN]:
        out.line(("not imported", "yellow"), f" {shown(ref)}")
    if not report.is_exact:
        out.line("an export of the session will have other commit ids")
    return DONE


def _imported(
    repository: str, where: str, name: str, branch: str | None, max_file_size: int | None
) -> tuple[Session, ImportReport]:
    import weakfs
    from weakfs.cli.sessions import Location, is_location
    from weakfs.history import import_git

    doing = f"import {repository!r}"
    if not is_location(where):
        if os.path.lexists(where):
            raise usage(f"cannot {doing}: {where!r} already exists; name another file")
        session = weakfs.Session(session_id=name)
        with as_failure(doing):
            report = import_git(repository, session, branch=branch, max_file_size=max_file_size)
            session.save(where)
        return session, report
    location = Location.of(where)
    with as_failure(doing):
        session = weakfs.Session.open(location.where, location.session_id or name)
        if not session.is_new:
            session.close()
            raise Failure(f"cannot {doing}: session {session.session_id!r} already exists; name another: LOCATION#ID")
        try:
            report = import_git(repository, session, branch=branch, max_file_size=max_file_size)
        except BaseException:
            is_new = session.is_new
            session.close()
            if not is_new:
                weakfs.Session.delete(location.where, session.session_id)
            raise
        session.close()
    return session, report


def _print_json(out: Output, session: Session, report: ImportReport, where: str) -> None:
    for one in report.skipped:
        out.record(type="left_out", commit=one.commit, path=one.path, reason=one.reason)
    out.record(
        type="imported",
        session_id=session.session_id,
        to=where,
        branch=report.branch,
        head=report.head,
        commits=report.commits,
        merged=report.merged,
        flattened=report.flattened,
        left_out=report.skipped_count,
        other_refs=list(report.other_refs),
        is_exact=report.is_exact,
    )
