"""`forget`: remove a text, or everything that a file ever contained, from a session and its storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic

from attrs import evolve, field, frozen

from weakfs.backends import HostFilesystem
from weakfs.filesystem.paths import normalize
from weakfs.history.forgetting.history_rewrite import Mapper, Rewriting
from weakfs.history.forgetting.path_contents import contents_at, forms_of_contents, redactions_of_path
from weakfs.history.forgetting.search import files_with_forms
from weakfs.history.forgetting.snapshot_stores import compact, drop, snapshots_with, stores_of
from weakfs.history.forgetting.text_redaction import Redaction
from weakfs.reducers import ExternalFsSnapshot
from weakfs.reducers.external_trees import external_trees
from weakfs.session import Session, SessionConflict, SessionError
from weakfs.session.current_timeline import Transaction
from weakfs.session.durable.commits.commit_log import CommitLog
from weakfs.session.durable.stream_replacement import erase, local_of, replace_stream
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.session import checked_session
from weakfs.snapshots import Store
from weakfs.tools import ToolCall

# How many times to try to replace a stored history while other processes change the session.
_MOST_ATTEMPTS = 5
# The longest lease that keeps other processes waiting meanwhile, in seconds.
_LONGEST_LEASE = 600.0
# The maximum number of passes: replacing a digest changes the contents that name it, and so their digests too.
_MOST_PASSES = 16


@frozen
class Forgetting:
    """What was changed, or with `preview` would be changed.

    `records` are numbers of records, `calls` ids of calls, and `snapshots` ids of snapshots; `contents` is the number
    of distinct contents, and `content_bytes` their total size. `dropped` are the ids of snapshots dropped from the
    given stores. `unreached` lists what forgetting does not reach and may still contain the text. `found_in` lists the
    files of the storage that still contain the text; there are none unless something went wrong.
    """

    preview: bool
    records: tuple[int, ...]
    calls: tuple[str, ...]
    snapshots: tuple[str, ...]
    contents: int
    content_bytes: int
    unreached: tuple[str, ...]
    found_in: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    _forms: tuple[bytes, ...] = field(default=(), repr=False, eq=False)

    def search(self, *paths: str) -> tuple[str, ...]:
        """Return the files, including those inside directories, that still contain what was forgotten, in any form."""
        return files_with_forms(self._forms, paths)

    @property
    def is_empty(self) -> bool:
        """Whether neither the session nor a snapshot in the given stores contains anything to forget."""
        return not (self.is_rewritten or self.dropped)

    @property
    def is_rewritten(self) -> bool:
        """Whether the session contains something to forget."""
        return bool(self.records or self.calls or self.snapshots or self.contents)


def forget(
    session: Session,
    path: str | None = None,
    *,
    text: str | None = None,
    stores: Iterable[Store | HostFilesystem] = (),
    preview: bool = False,
) -> Forgetting:
    """Replace a text, or all contents that a file ever had, with a placeholder in the whole history of a session.

    Give either `path` or `text`. The placeholder is as long as what it replaces, and begins with `[forgotten]`. A text
    is replaced everywhere: in contents, records, states, snapshots, names and calls, whether it is stored literally,
    escaped in JSON, in base64 or in hexadecimal. If several edits built up a text, it is replaced from the record that
    completed it on; the pieces before that remain. For a path, all contents that were ever there are replaced, even at
    other paths if the file was copied or moved, and so is the text of calls that worked on it; other contents that
    quote it remain, so use `text` for them.

    Files in a host directory are not changed, and the session records them again when it works on them, so remove the
    text there first. `stores` are stores of directories, or `HostFilesystem` objects: the snapshots in them that
    contain the text are dropped first, and finally each store is compacted and searched. Contents in a store that only
    another, unsaved session needs are lost. Snapshots in other stores remain.

    A session in memory must be saved again. A session in a folder or in SQLite is replaced there in one step, its files
    are searched for what was forgotten, and the session is closed; open it again. This cannot be undone. The text is
    also removed from what other processes store in the meantime; in the end they have to wait, and to open the session
    again.

    Raises `ValueError` if the text cannot be forgotten, `FileNotFoundError` if there never was a file at `path`, and
    `SessionError` for a fork, inside a transaction, while a fork of the session is open, for storage whose bytes cannot
    be erased, and if other processes write so much that the history cannot be replaced.
    """
    checked_session(session)
    if (path is None) == (text is None):
        raise ValueError("cannot tell what to forget: pass either a path or text")
    given = tuple(stores)
    log = session._log
    if log is not None:
        # Opening a transaction takes the lock too.
        log.checkpoints.wait()
    with session.lock:
        _check(session)
        if log is not None:
            local_of(log.store.url)
        if preview or log is None:
            plan = _planned(session, path, text, given, preview=preview)
            if preview:
                return plan.report
            plan.drop_snapshots()
            if plan.report.is_rewritten:
                session._trunk = plan.after
            kept, report = session, plan.report
        else:
            kept, report = _stored(session, log, lambda: _planned(session, path, text, given))
        searched = stores_of(given)
        for store in searched:
            compact(store, kept)
    session._notify()
    return evolve(report, found_in=(*report.found_in, *report.search(*(store.path for store in searched))))


@frozen
class _Plan:
    """The rewritten history of a session, the report, and the snapshots to drop from each of the given stores."""

    after: Timeline
    report: Forgetting
    held: Mapping[Store, tuple[str, ...]]

    def drop_snapshots(self) -> None:
        for store, snapshots in self.held.items():
            drop(store, snapshots)


def _planned(
    session: Session,
    path: str | None,
    text: str | None,
    given: Sequence[Store | HostFilesystem],
    *,
    preview: bool = False,
) -> _Plan:
    """Return what to change, without changing anything."""
    line = session._trunk
    if text is not None:
        contents = calls = Redaction.of_text(text)
        forms = tuple(contents.forms)
    else:
        known = contents_at(session, normalize(path or ""))
        contents, calls = redactions_of_path(known)
        forms = forms_of_contents(known)
    held = {store: snapshots_with(store, forms) for store in stores_of(given)}
    after, work = _rewritten(session, line, contents, calls)
    report = _report(line, after, work, contents, preview=preview)
    dropped = tuple(one for snapshots in held.values() for one in snapshots)
    report = evolve(report, unreached=tuple(_unreached(session, work, given)), forms=forms, dropped=dropped)
    return _Plan(after, report, held)


def _check(session: Session) -> None:
    """Raise `SessionError` for a fork, or if an open transaction or fork could bring back what is forgotten."""
    session._check_writable()
    if session._base is not None:
        raise SessionError(
            "cannot forget in a fork: its parent would bring back what was forgotten; merge or close the fork, and "
            "use the parent"
        )
    for other in session._branches.alive() if session._branches is not None else ():
        if isinstance(other, Transaction):
            if other.open:
                raise SessionError("cannot forget while a transaction or a call is open; try again when it has ended")
        elif other._closed is None:
            raise SessionError(
                f"cannot forget while the fork {other.session_id!r} is open: it would bring back what was forgotten; "
                f"close it first"
            )


def _rewritten(session: Session, line: Timeline, contents: Redaction, calls: Redaction) -> tuple[Timeline, Rewriting]:
    for _ in range(_MOST_PASSES):
        known = len(contents.digests), len(calls.digests)
        work = Rewriting(session.session_id, session._rules, Mapper(contents, calls))
        after = work.line(line)
        if (len(contents.digests), len(calls.digests)) == known:
            return after, work
    raise SessionError(
        "cannot forget this: contents name each other's digests in an endless chain; forget their parts separately"
    )


def _report(line: Timeline, after: Timeline, work: Rewriting, contents: Redaction, *, preview: bool) -> Forgetting:
    tag = next((spec.tag for cls, spec in work.rules.by_type.items() if cls is ToolCall), "")
    pairs = zip(line.logs.get(tag, ()), after.logs.get(tag, ()), strict=True)
    calls = tuple(old.call_id for old, new in pairs if old is not new and old != new)
    snapshots = tuple(
        old.snapshot_id
        for old, new in zip(ordered_snapshots(line), ordered_snapshots(after), strict=True)
        if old is not new
    )
    return Forgetting(preview, tuple(work.records), calls, snapshots, len(contents.digests), contents.replaced, ())


def _unreached(session: Session, work: Rewriting, stores: Sequence[Store | HostFilesystem]) -> Iterator[str]:
    yield "other copies of the session: files saved elsewhere or not saved again, backups and exported git repositories"
    yield "programs and models that have read it already"
    known = external_trees(session)
    taken = (one.filesystem_id for one in session[ExternalFsSnapshot].all())
    searched = {one.filesystem_id for one in stores if isinstance(one, HostFilesystem)}
    for name in dict.fromkeys((*(one.filesystem_id for one in session.attached), *known.trees, *taken)):
        remedy = "remove it from the files first, or the session will record it again"
        if name in searched:
            yield f"the files of {name} as they are now: {remedy}"
        else:
            yield f"the files of {name} as they are now, and the snapshots in its store: {remedy}; pass its store too"
    for digest in sorted(work.mapper.unreadable):
        yield f"the content {digest}, which is missing"


def _copy(session: Session, after: Timeline) -> Session:
    """Return a session in memory with the rewritten history."""
    copy = type(session)(session_id=session.session_id, registry=session.registry, clock=session._clock)
    rules, _, header = session._parts()
    copy._set_parts(rules, after, header)
    copy._count_like(session)
    return copy


def _stored(session: Session, log: CommitLog, planned: Callable[[], _Plan]) -> tuple[Session, Forgetting]:
    """Replace the stored history, close the session, and search its storage. Return a copy in memory and the report.

    What other processes store in the meantime is read, and forgotten too; from the first attempt to replace the history
    on, a lease keeps them waiting.
    """
    url, name = log.store.url, log.stream
    dropped: tuple[str, ...] = ()
    try:
        for _ in range(_MOST_ATTEMPTS):
            began = monotonic()
            log.refresh(session)
            plan = planned()
            plan.drop_snapshots()
            dropped += plan.report.dropped
            report = evolve(plan.report, dropped=dropped)
            copy = _copy(session, plan.after)
            if not report.is_rewritten:
                # A killed process may have replaced the history without erasing the old one.
                erase(url)
                break
            log.flush()
            if _replaced(log, copy, monotonic() - began):
                break
        else:
            raise SessionError(
                f"cannot forget anything in session {name!r}: other processes changed it during each of "
                f"{_MOST_ATTEMPTS} attempts; try again when they write less, or open it with exclusive=True"
            )
    finally:
        log.release_compaction_lease()
    if report.is_rewritten:
        session.close("something was forgotten and the stored history was replaced")
    return copy, evolve(report, found_in=report.search(*_places(url)))


def _replaced(log: CommitLog, copy: Session, spent: float) -> bool:
    """Replace the stored history with that of a copy. Return false if other processes changed it first."""
    lease = log.take_compaction_lease(spent, most=_LONGEST_LEASE)
    try:
        replace_stream(log.store.url, log.stream, log.head, lease, lambda url: copy.copy_to(url, durability="power"))
    except SessionConflict:
        return False
    return True


def _places(url: str) -> list[str]:
    path = local_of(url)
    return [path] if url.startswith("folder:") else [path, f"{path}-wal", f"{path}-shm"]
