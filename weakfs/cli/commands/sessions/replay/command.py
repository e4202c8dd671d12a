"""`weakfs replay`: rebuild a saved session from its records alone and compare it with its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, UNMET, as_failure
from weakfs.cli.formatting import counted, shown
from weakfs.cli.options import EXIT_STATUSES, expansion_option, file_argument, json_option, registry_option
from weakfs.cli.output import Output, progress
from weakfs.platforms import garbage_collection_paused

if TYPE_CHECKING:
    from weakfs.cli.commands.sessions.replay.findings import Files, Finding
    from weakfs.session import Session

# The number of digits of a digest in the table.
SHORT = 16
# No progress is shown for fewer records: replaying them takes too little time.
LARGE = 20_000


@click.command("replay", epilog=EXIT_STATUSES)
@file_argument
@click.option("--verify", is_flag=True, help="Compare the result with FILE, and exit with 3 if it differs.")
@registry_option
@expansion_option
@json_option
def replay_command(file: str, verify: bool, registry: str | None, max_expansion: float | None, as_json: bool) -> int:
    """Rebuild the session saved in FILE from its records alone.

    No tool runs again and no directory is touched, not even one that the session worked in. The digests of the files
    are printed for every snapshot and for the end.

    With --verify, every state in FILE (at snapshots, rollbacks, merges and the end) is compared with the replayed
    state, and every sidecar blob of FILE is read. All differences are named. A missing blob, or a record that cannot be
    applied, is an error. Your own reducers take part only if the registry declares them with Registry.with_slices.

    With --json, each line is an object whose "type" is snapshot, rollback, merge, end or total.
    """
    from weakfs.cli.sessions import load

    session = load(file, registry, max_expansion)
    is_same = show_replay(Output(), session, file, verify=verify, as_json=as_json)
    return DONE if is_same else UNMET


def show_replay(out: Output, session: Session, file: str, *, verify: bool, as_json: bool) -> bool:
    """Replay a session, print the result, and return whether everything that was compared is equal.

    Raises `Failure` if a record cannot be applied, or if a blob is missing; the message names what needs it.
    """
    from weakfs.cli.commands.sessions.replay.findings import replayed, verified

    records = len(session.records)
    bar = progress(f"replaying {file}", wanted=records > LARGE)
    with as_failure(f"replay {file!r}"), bar, garbage_collection_paused():
        found = verified(session) if verify else replayed(session)
    after = session.seq - records
    if as_json:
        _show_as_json(out, found, records, after, is_verified=verify)
    else:
        _show_lines(out, found, records, after, is_verified=verify)
    return not any(one.verdict == "differs" for one in found)


def _show_lines(out: Output, found: list[Finding], records: int, after: int, *, is_verified: bool) -> None:
    width = max(len(str(one.moment.seq)) for one in found)
    for one in found:
        moment = one.moment
        if moment.kind in ("rollback", "merge") and one.verdict != "differs":
            continue
        name = shown(moment.tag or moment.snapshot_id or "")
        verdict = f"  {one.verdict}" if is_verified else ""
        out.line(f"{moment.seq:>{width}}  ", (f"{moment.kind} {name}".rstrip(), "bold"), (verdict, _style(one)))
        for files in one.files:
            _show_files(out, files, width)
        for tag, places in one.differences:
            out.line(f"{'':{width}}  ", (shown(f"{tag} differs: {', '.join(places) or 'its values'}"), "red"))
        if moment.problem is not None:
            out.line(f"{'':{width}}  ", (shown(moment.problem), "red"))
    begun = f" after record {after:,}, the earliest state that is kept" if after else ""
    summary = f": {_summary(found)}" if is_verified else ""
    out.line(("replayed", "bold"), f" {counted(records, 'record')}{begun}{summary}")


def _style(found: Finding) -> str:
    return "red" if found.verdict == "differs" else "green"


def _show_files(out: Output, files: Files, width: int) -> None:
    place = "" if files.filesystem is None else f"{shown(files.filesystem)}: "
    digests = f"digest {files.digest[:SHORT]}  fingerprint {files.fingerprint[:SHORT]}"
    out.line(f"{'':{width}}  {place}{digests}")
    if not files.is_same and files.saved_digest is not None and files.saved_fingerprint is not None:
        saved = f"digest {files.saved_digest[:SHORT]}  fingerprint {files.saved_fingerprint[:SHORT]}"
        out.line(f"{'':{width}}  {place}saved: {saved}")


def _summary(found: list[Finding]) -> str:
    verdicts = [one.verdict for one in found]
    differing, undetermined = verdicts.count("differs"), verdicts.count("as recorded")
    summary = f"{counted(len(found) - undetermined, 'moment')} compared, "
    summary += f"{differing:,} of them not as saved" if differing else "all as saved"
    if undetermined:
        summary += f"; {undetermined:,} more taken as saved, because the records do not determine them"
    return summary


def _show_as_json(out: Output, found: list[Finding], records: int, after: int, *, is_verified: bool) -> None:
    for one in found:
        moment = one.moment
        fields: dict[str, object] = {"type": moment.kind, "seq": moment.seq}
        if moment.snapshot_id is not None:
            fields |= {"id": moment.snapshot_id, "tag": moment.tag}
        if is_verified:
            fields["verdict"] = one.verdict
            fields["differences"] = [{"slice": tag, "places": list(places)} for tag, places in one.differences]
        if moment.problem is not None:
            fields["problem"] = moment.problem
        fields["filesystems"] = [_fields(files) for files in one.files]
        out.record(**fields)
    total: dict[str, object] = {"type": "total", "records": records, "after": after, "moments": len(found)}
    if is_verified:
        verdicts = [one.verdict for one in found]
        total |= {"differing": verdicts.count("differs"), "as_recorded": verdicts.count("as recorded")}
    out.record(**total)


def _fields(files: Files) -> dict[str, object]:
    fields: dict[str, object] = {
        "filesystem": files.filesystem,
        "digest": files.digest,
        "fingerprint": files.fingerprint,
    }
    if files.saved_digest is not None:
        fields |= {"saved_digest": files.saved_digest, "saved_fingerprint": files.saved_fingerprint}
    return fields
