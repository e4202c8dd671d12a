"""What a replay of a session finds: the files at each moment, and where they differ from those in its file."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.class_decorators import frozen
from weakfs.cli.commands.sessions.diff import named
from weakfs.cli.formatting import counted
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

# The maximum number of differences listed for each slice.
MANY = 10

# Files by the id of their filesystem; `None` stands for the session's own files.
Trees = dict["str | None", FileTree]


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


def replayed(session: Session) -> list[Finding]:
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


def verified(session: Session) -> list[Finding]:
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
