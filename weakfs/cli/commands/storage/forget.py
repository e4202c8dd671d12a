"""`weakfs forget`: permanently remove a text or a file from a session."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, UNMET, as_failure, usage
from weakfs.cli.formatting import counted, shown
from weakfs.cli.options import expansion_option, file_argument, json_option, registry_option, store_option
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.history import Forgetting


@click.command("forget")
@file_argument
@click.argument("path", required=False)
@click.option(
    "--text", metavar="TEXT", help='Forget a text; "-" reads it from standard input, without a final line break.'
)
@click.option("--root", metavar="DIR", type=click.Path(), help="Also drop the snapshots of DIR that contain it.")
@store_option
@click.option("--preview", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation.")
@registry_option
@expansion_option
@json_option
def forget_command(
    file: str,
    path: str | None,
    text: str | None,
    root: str | None,
    store: str | None,
    preview: bool,
    is_sure: bool,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Permanently remove a text or a file from a session.

    FILE is a saved session, a folder, or a SQLite location such as sqlite:sessions.db#ID. For a PATH, everything that
    the file ever contained is removed. A placeholder of the same length replaces what is removed in contents, records,
    snapshots, names and calls. This cannot be undone. Afterwards the files of the session are searched; the exit status
    is 3 if one of them still contains it.

    With --root, the snapshots of that directory (or all snapshots in --store) that contain it are dropped, and the
    store is compacted and searched. Remove it from the files of the directory first.
    """
    from weakfs.cli.directories import open_directory
    from weakfs.cli.sessions import is_location, load
    from weakfs.history.forgetting.forget import forget

    if (path is None) == (text is None):
        raise usage("cannot tell what to forget; give either PATH or --text TEXT")
    if text == "-":
        text = sys.stdin.read().removesuffix("\n")
    if store is not None and root is None:
        raise usage("cannot use --store alone: it belongs to a directory; give --root DIR too")
    out = Output(finish_unread=True)
    stores = () if root is None else (open_directory(root, store=store, read_only=True).store,)
    session = load(file, registry, max_expansion, is_to_change=not preview)
    with as_failure(f"forget anything in {file!r}"):
        report = forget(session, path, text=text, stores=stores, preview=True)
    found: tuple[str, ...] = ()
    if not preview:
        if not (report.is_empty or is_sure):
            _ask(file, report, can_ask=not as_json and sys.stdin.isatty())
        with as_failure(f"forget anything in {file!r}"):
            report = forget(session, path, text=text, stores=stores)
            found = (*report.found_in, *(() if is_location(file) else _saved(session, file, report)))
    if as_json:
        out.record(
            type="forgotten",
            preview=preview,
            records=list(report.records),
            calls=list(report.calls),
            snapshots=list(report.snapshots),
            contents=report.contents,
            bytes=report.content_bytes,
            dropped=list(report.dropped),
            unreached=list(report.unreached),
            found_in=list(found),
        )
    else:
        _show(out, report, found, root, preview=preview)
    return UNMET if found else DONE


def _show(out: Output, report: Forgetting, found: Sequence[str], root: str | None, *, preview: bool) -> None:
    """Print what was forgotten, or would be, and the files that still contain it."""
    if report.is_empty and not found:
        out.line("nothing to forget: the session does not contain it")
        return
    out.line(
        ("would change" if preview else "changed", "bold"),
        f" {counted(len(report.records), 'record')}, {counted(len(report.calls), 'call')}, "
        f"{counted(len(report.snapshots), 'snapshot')}, {counted(report.contents, 'content')} of "
        f"{counted(report.content_bytes, 'byte')}",
    )
    for name in report.dropped:
        out.line(
            ("would drop" if preview else "dropped", "bold"), f" the snapshot {shown(name)} of {shown(root or '')}"
        )
    for one in report.unreached:
        out.line(("not reached", "yellow"), f"  {shown(one)}")
    for name in found:
        out.line(("still there", "red"), f"  {shown(name)}")
    if not preview and not found:
        out.line("searched the files of the session: none contains it")


def _ask(file: str, report: Forgetting, *, can_ask: bool) -> None:
    what = f"{counted(len(report.records), 'record')} and {counted(len(report.calls), 'call')} of {shown(file)}"
    if report.dropped:
        what += f", and drops {counted(len(report.dropped), 'snapshot')}"
    if not can_ask:
        raise usage(f"cannot ask whether to change {what}; pass --yes to change them")
    click.confirm(f"This changes {what}, and cannot be undone.\nForget it permanently?", abort=True, err=True)


def _saved(session: Session, file: str, report: Forgetting) -> tuple[str, ...]:
    """Save a session to its file again; return the files that still contain what was forgotten."""
    places = (file, f"{file}.blobs")
    # Even if the session does not contain it, a killed process may have left blobs next to the file.
    if not report.is_empty or report.search(*places):
        session.save(file)
    return report.search(*places)
