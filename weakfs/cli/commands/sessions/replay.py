"""`weakfs replay`: rebuild a saved session from its records alone and compare it with its file."""

from __future__ import annotations

from collections.abc import Iterator

import click

from weakfs.class_decorators import frozen
from weakfs.cli.commands.sessions.diff import named
from weakfs.cli.errors import DONE, UNMET, as_failure
from weakfs.cli.formatting import counted, shown
from weakfs.cli.options import EXIT_STATUSES, expansion_option, file_argument, json_option, registry_option
from weakfs.cli.output import Output, progress
from weakfs.cli.sessions import load
from weakfs.platforms import garbage_collection_paused
from weakfs.reducers import ExternalTrees, FileTree, diff
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.tree.node import EMPTY_TREE
from weakfs.session import Session, SessionError, SessionView
from weakfs.session.codec.round_trip import difference
from weakfs.session.files.needed_blobs import check_contents
from weakfs.session.history.timeline import ordered_snapshots
from weakfs.session.replay.verification import Moment, Rebuilding
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import EMPTY_TABLE, Table

# The number of digits of a digest in the table.
SHORT = 16
# The maximum number of differences listed for each slice.
MANY = 10
# No progress is shown for fewer records: replaying them takes too little time.
LARGE = 20_000

# Files by the id of their filesystem; `None` stands for the session's own files.
Trees = dict["str | None", FileTree]


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
    session = load(file, registry, max_expansion)
    is_same = show_replay(Output(), session, file, verify=verify, as_json=as_json)
    return DONE if is_same else UNMET


@frozen
class Files:
    """The replayed files of one filesystem at one moment, and the saved ones if they were compared."""

    filesystem: str | None
    digest: str
    fingerprint: str
    saved_digest: str | None = None
    saved_fingerprint: str | None = None

    @property
    def is_same(self) -> bool:
        """Whether the digests are equal; true if only one of them is known."""
        return self.saved_digest in (None, self.digest) and self.saved_fingerprint in (None, self.fingerprint)


@frozen
class Finding:
    """The result for one moment; `differences` maps slices to the places that differ."""

    moment: Moment
    files: tuple[Files, ...]
    differences: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def verdict(self) -> str:
        """The result of the comparison in one word."""
        if not self.moment.is_same or not all(files.is_same for files in self.files):
            return "differs"
        return "as recorded" if self.moment.rebuilt is None else "same"


def show_replay(out: Output, session: Session, file: str, *, verify: bool, as_json: bool) -> bool:
    """Replay a session, print the result, and return whether everything that was compared is equal.

    Raise `Failure` if a record cannot be applied, or if a blob is missing; the message names what needs it.
    """
    records = len(session.records)
    bar = progress(f"replaying {file}", wanted=records > LARGE)
    with as_failure(f"replay {file!r}"), bar, garbage_collection_paused():
        found = _verified(session) if verify else _replayed(session)
    after = session.seq - records
    if as_json:
        _show_as_json(out, found, records, after, is_verified=verify)
    else:
        _show_lines(out, found, records, after, is_verified=verify)
    return not any(one.verdict == "differs" for one in found)


def _replayed(session: Session) -> list[Finding]:
    """Replay into a new session, and return the findings about its snapshots and its end."""
    try:
        again = session.replayed()
    except Exception as error:
        # Custom reducers may raise any exception; a note on it names the record.
        if not (notes := getattr(error, "__notes__", ())):
            raise
        raise SessionError(f"{notes[-1]}: {error}") from error
    rules, line, _ = again._parts()
    found: list[Finding] = []
    for one in ordered_snapshots(line):
        moment = Moment("snapshot", one.seq, EMPTY_TABLE, one.state, snapshot_id=one.snapshot_id, tag=one.tag)
        found.append(Finding(moment, _files(rules, moment, is_verified=False)))
    end = Moment("end", line.seq, EMPTY_TABLE, line.state)
    return [*found, Finding(end, _files(rules, end, is_verified=False))]


def _verified(session: Session) -> list[Finding]:
    """Read all contents that the history needs, replay it, and compare each moment with the file."""
    rules, line, own = session._parts()
    check_contents(rules.registry, line, read_all=True)
    found: list[Finding] = []
    for moment in Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments():
        is_shown = moment.kind in ("snapshot", "end") or not moment.is_same
        files = _files(rules, moment, is_verified=True) if is_shown else ()
        places = tuple((tag, tuple(_places(moment, tag))) for tag in moment.differing)
        found.append(Finding(moment, files, places))
    return found


def _files(rules: Rules, moment: Moment, *, is_verified: bool) -> tuple[Files, ...]:
    """Return the files of every filesystem at a moment, with their digests."""
    saved = _trees(rules, moment.seq, moment.recorded) if is_verified else {}
    trees = saved if moment.rebuilt is None else _trees(rules, moment.seq, moment.rebuilt)
    names = sorted({*trees, *saved}, key=lambda name: (name is not None, name or ""))
    found: list[Files] = []
    for name in names:
        tree = trees.get(name, EMPTY_TREE)
        was = saved.get(name, EMPTY_TREE) if is_verified else None
        before = (None, None) if was is None else (was.digest, was.fingerprint)
        found.append(Files(name, tree.digest, tree.fingerprint, *before))
    return tuple(found)


def _trees(rules: Rules, seq: int, state: Table) -> Trees:
    """Return the trees of a state: external ones, and the session's own if it has files or there are no others."""
    view = SessionView(rules, seq, state, EMPTY_TABLE)
    own = view[FileTree].latest() or EMPTY_TREE
    external = external_trees(view).trees
    trees: Trees = {name: known.tree for name, known in external.items()}
    return {None: own, **trees} if own.node_count or not trees else trees


def _places(moment: Moment, tag: str) -> Iterator[str]:
    """Yield what differs in a slice: the paths of files, or the first place where other values differ."""
    if moment.rebuilt is None:
        return
    saved, replayed = (table.get(tag, Log[object]()) for table in (moment.recorded, moment.rebuilt))
    mine, theirs = saved.last(), replayed.last()
    if isinstance(mine, FileTree) and isinstance(theirs, FileTree):
        yield from _paths(mine, theirs, "")
    elif isinstance(mine, ExternalTrees) and isinstance(theirs, ExternalTrees):
        for name in sorted({*mine.trees, *theirs.trees}):
            yield from _paths(mine.tree(name), theirs.tree(name), f"{name}: ")
    else:
        found = difference(saved, replayed, tag)
        yield (found or tag).partition(": ")[0]


def _paths(saved: FileTree, replayed: FileTree, prefix: str) -> Iterator[str]:
    found = list(named(diff(replayed, saved)))
    for one in found[:MANY]:
        yield f"{prefix}{one.path} ({one.change})"
    if len(found) > MANY:
        yield f"{prefix}{counted(len(found) - MANY, 'more path')}"
    if not found and saved.fingerprint == replayed.fingerprint:
        yield f"{prefix}times"


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
