"""`weakfs prune`: keep a session, or the snapshots of a directory, within limits."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, UNMET, as_failure, usage
from weakfs.cli.formatting import counted, moment, shown
from weakfs.cli.options import duration, expansion_option, json_option, registry_option, size, store_option
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.backends import HostFilesystem
    from weakfs.history import Holder, PruneReport

HEADINGS = ("kept", "taken", "bytes", "exclusive", "shared", "tag")
# The names in the table for holders of contents that are not snapshots.
NAMES = {"files": "current files", "records": "records", "calls": "calls"}


@click.command("prune")
@click.argument("where")
@click.option("--max-bytes", metavar="SIZE", callback=size, help="The maximum size of contents, such as 10G.")
@click.option("--max-age", metavar="AGE", callback=duration, help="Drop everything older than AGE, such as 30d.")
@click.option("--max-records", metavar="N", type=click.IntRange(min=0), help="Keep the newest N records of a session.")
@click.option("--max-snapshots", metavar="N", type=click.IntRange(min=0), help="Keep the newest N snapshots.")
@click.option("--tagged", is_flag=True, help="Drop tagged snapshots too.")
@click.option("--keep-calls", is_flag=True, help="Keep the tool calls of dropped records.")
@click.option("--dry-run", is_flag=True, help="Only show what would be dropped, and the size of the rest.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation.")
@store_option
@registry_option
@expansion_option
@json_option
def prune_command(
    where: str,
    max_bytes: int | None,
    max_age: timedelta | None,
    max_records: int | None,
    max_snapshots: int | None,
    tagged: bool,
    keep_calls: bool,
    dry_run: bool,
    is_sure: bool,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Drop the oldest history to stay within limits.

    WHERE is a saved session, a session in storage such as sqlite:sessions.db#ID or folder:DIR, or a host directory, for
    its snapshots. The command first shows what would be dropped and how much that frees, and asks for confirmation.
    Current files are never dropped, and tagged snapshots only with --tagged. The exit status is 3 if the rest is still
    larger than --max-bytes. With --dry-run and no limit, only shows the size of each snapshot.
    """
    from weakfs.history import Retention, prune

    limits = (max_bytes, max_age, max_records, max_snapshots)
    is_look = all(limit is None for limit in limits)
    if is_look and not dry_run:
        options = "--max-bytes, --max-age, --max-records or --max-snapshots"
        raise usage(f"cannot prune {where!r}: no limit is given; pass {options}, or --dry-run to see the sizes")
    with as_failure("prune"):
        retention = Retention(
            max_bytes=max_bytes,
            max_age=max_age,
            max_records=max_records,
            max_snapshots=sys.maxsize if is_look else max_snapshots,
            keep_tags=not tagged,
            keep_calls=keep_calls or is_look,
        )
    of_sessions = {"--max-records": max_records is not None, "--keep-calls": keep_calls}
    target = _target(where, store, registry, max_expansion, of_sessions)
    out = Output(finish_unread=True)
    with as_failure(f"prune {where!r}"):
        report = prune(target, retention, preview=True)
    if dry_run or report.is_empty:
        _show(out, report, as_json=as_json)
        return UNMET if report.excess else DONE
    if not is_sure:
        _ask(out, where, report, can_ask=not as_json and sys.stdin.isatty())
    with as_failure(f"prune {where!r}"):
        report = prune(target, retention)
        _save(target, where)
    _show(out, report, as_json=as_json)
    return UNMET if report.excess else DONE


def _target(
    where: str, store: str | None, registry: str | None, max_expansion: float | None, of_sessions: dict[str, bool]
) -> Session | HostFilesystem:
    """Open a session or a directory; raise `Failure` for options that do not apply to it."""
    from weakfs.cli.directories import open_directory
    from weakfs.cli.sessions import load

    if not os.path.isdir(where) or _holds_sessions(where):
        if store is not None:
            raise usage(f"cannot use --store with {where!r}: it is a session; omit the option")
        return load(where, registry, max_expansion, is_shared=True)
    for option, is_given in {**of_sessions, "--registry": registry is not None}.items():
        if is_given:
            raise usage(f"cannot use {option} with {where!r}: it is a directory, not a session; omit the option")
    return open_directory(where, store=store, read_only=True)


def _holds_sessions(folder: str) -> bool:
    """Return whether a folder stores sessions."""
    with as_failure(f"read {folder!r}"), os.scandir(folder) as entries:
        return any(entry.name.endswith(".stream") and entry.is_dir(follow_symlinks=False) for entry in entries)


def _save(target: Session | HostFilesystem, where: str) -> None:
    from weakfs import Session

    if isinstance(target, Session) and not target.is_durable:
        target.save(where)


def _ask(out: Output, where: str, report: PruneReport, *, can_ask: bool) -> None:
    what = f"{_amounts(report)} of {shown(where)}"
    if not can_ask:
        raise usage(
            f"cannot ask whether to drop {what}; pass --yes to drop them, or --dry-run to see what would be dropped"
        )
    _show(out, report, as_json=False)
    click.confirm("This cannot be undone. Drop them permanently?", abort=True, err=True)


def _amounts(report: PruneReport) -> str:
    parts = [
        counted(number, thing)
        for number, thing in (
            (report.records, "record"),
            (report.calls, "call"),
            (len(report.dropped), "snapshot"),
        )
        if number
    ]
    return ", ".join(parts) or "unused contents"


def _show(out: Output, report: PruneReport, *, as_json: bool) -> None:
    """Print what was or would be dropped, and the size of the rest."""
    if as_json:
        for verb, holders in (("would_drop" if report.preview else "dropped", report.dropped), ("kept", report.kept)):
            for one in holders:
                out.record(type=verb, **_described(one))
        out.record(
            type="pruned",
            preview=report.preview,
            records=report.records,
            calls=report.calls,
            snapshots=len(report.dropped),
            freed=report.freed,
            bytes=report.bytes_after,
            excess=report.excess,
        )
        return
    if report.is_empty:
        out.line("nothing to drop")
    for one in report.dropped:
        alone = f"frees {counted(one.exclusive, 'byte') if one.exclusive else 'nothing'} by itself"
        verb = "would drop" if report.preview else "dropped"
        out.line((verb, "bold"), " ", (shown(one.name), "yellow"), f"  {shown(one.tag or '')}".rstrip(), f"  {alone}")
    if not report.is_empty:
        verb = "would free" if report.preview else "freed"
        out.line((verb, "bold"), f" {counted(report.freed, 'byte')}: {_amounts(report)}")
    out.grid(HEADINGS, [_row(one) for one in report.kept if one.bytes or one.kind == "snapshot"])
    out.line(f"{counted(report.bytes_after, 'byte')} in all")
    if report.excess:
        out.line(
            ("too large", "red"),
            f"  by {counted(report.excess, 'byte')}: nothing else can be dropped; to drop tagged snapshots: --tagged",
        )


def _row(one: Holder) -> tuple[str, ...]:
    at = "" if one.at is None else moment(one.at)
    name = NAMES.get(one.kind) or shown(one.name)
    return name, at, f"{one.bytes:,}", f"{one.exclusive:,}", f"{one.shared:,}", shown(one.tag or "")


def _described(one: Holder) -> dict[str, object]:
    """Return the JSON fields of a holder of contents."""
    return {
        "kind": one.kind,
        "id": one.name,
        "tag": one.tag,
        "at": None if one.at is None else moment(one.at, fraction=True),
        "bytes": one.bytes,
        "exclusive": one.exclusive,
    }
