"""`forget`: remove a text, or what a file ever held, from a session and from its storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve, field, frozen

from weakfs.backends import HostFilesystem
from weakfs.filesystem.paths import normalize
from weakfs.history.forgetting.path_contents import contents_at, forms_of_contents, redactions_of_path
from weakfs.history.forgetting.redaction import Redaction
from weakfs.history.forgetting.rewriting import Mapper, Rewriting
from weakfs.history.forgetting.search import files_with_forms
from weakfs.history.forgetting.stores import compact, drop, snapshots_with, stores_of
from weakfs.reducers import ExternalFsSnapshot, ExternalTrees
from weakfs.session import Session, SessionError
from weakfs.session.durable.replacement import erase, local_of, replace_stream
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.slices.schema import Rules
from weakfs.session.transactions.transaction import Transaction
from weakfs.snapshots import Store
from weakfs.tools import ToolCall

# Replacing a digest changes the contents that name it, which have a digest too.
_MOST_PASSES = 16


@frozen
class Forgetting:
    """What was changed, or with `preview` would be.

    `records` are numbers of records, `calls` ids of calls, and `snapshots` ids of snapshots; `contents` counts the
    distinct contents, and `content_bytes` adds up their sizes. `dropped` are the ids of snapshots that are dropped from
    the given stores. `unreached` lists what forgetting does not reach, and may still hold the text. `found_in` lists
    the files of the storage that still hold the text, which is none unless something went wrong.
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
        """Return the files, among these and in these directories, that still hold what was forgotten, in any form."""
        return files_with_forms(self._forms, paths)

    @property
    def is_empty(self) -> bool:
        """Whether neither the session nor a snapshot in the given stores holds anything of it."""
        return not (self.is_rewritten or self.dropped)

    @property
    def is_rewritten(self) -> bool:
        """Whether the session holds it."""
        return bool(self.records or self.calls or self.snapshots or self.contents)


def forget(
    session: Session,
    path: str | None = None,
    *,
    text: str | None = None,
    stores: Iterable[Store | HostFilesystem] = (),
    preview: bool = False,
) -> Forgetting:
    """Replace a text, or every content that a file ever had, by a placeholder in the whole history of a session.

    Give either `path` or `text`. The placeholder is as long as what it replaces and begins with `[forgotten]`. A text
    is replaced in everything: contents, records, states, snapshots, names and calls, in whatever form it is stored: as
    it is, escaped in JSON, in base64 or hexadecimal. Text that edits put together from pieces is replaced from the
    record on that completed it; the pieces before that are not the text and stay. For a path, every content that was
    ever there is replaced, at other paths too if a file was copied or moved, and so is the text of calls that worked on
    it; other contents that quote it stay, for which there is `text`.

    Files of a host directory stay as they are, and the session records them again when it works on them: remove the
    text there first. In each of `stores`, the store of a directory or the `HostFilesystem` itself, the snapshots that
    hold it are dropped first, and at last the store is compacted and searched; what only another unsaved session needs
    from a store is lost. Snapshots in other stores stay.

    A session in memory must be saved again. A session in a folder or in SQLite is replaced there in one step, its files
    are searched for what was forgotten, and the session is closed: open it again. This cannot be undone.

    Raises `ValueError` for a text that cannot be forgotten, and `SessionError` in a transaction, while a fork of the
    session is open, for a fork, and for storage whose bytes cannot be erased.
    """
    if (path is None) == (text is None):
        raise ValueError("cannot tell what to forget: pass either a path or text")
    if session._log is not None:
        # It takes the lock too.
        session._log.checkpoints.wait()
    with session.lock:
        _check(session)
        line, rules = session._trunk, session._rules
        if session._log is not None:
            local_of(session._log.store.url)
        if text is not None:
            contents = calls = Redaction.of_text(text)
            forms = tuple(contents.forms)
        else:
            known = contents_at(session, normalize(path or ""))
            contents, calls = redactions_of_path(known)
            forms = forms_of_contents(known)
        given = tuple(stores)
        held = {store: snapshots_with(store, forms) for store in stores_of(given)}
        after, work = _rewritten(line, rules, contents, calls)
        report = _report(line, after, work, contents, preview=preview)
        dropped = tuple(one for snapshots in held.values() for one in snapshots)
        report = evolve(report, unreached=tuple(_unreached(session, work, given)), forms=forms, dropped=dropped)
        if preview:
            return report
        for store, snapshots in held.items():
            drop(store, snapshots)
        if session._log is None:
            session._trunk = after if report.is_rewritten else line
            kept = session
        else:
            kept = _copy(session, after)
            report = _stored(session, kept, report)
        for store in held:
            compact(store, kept)
        return evolve(report, found_in=(*report.found_in, *report.search(*(store.path for store in held))))


def _check(session: Session) -> None:
    """Raise `SessionError` if something holds what a rewritten history could not take back."""
    session._check_writable()
    if session._base is not None:
        raise SessionError("cannot forget in a fork: its parent would bring it back; merge or close it, and use that")
    for other in session._branches or ():
        if isinstance(other, Transaction):
            if other.open:
                raise SessionError("cannot forget while a transaction or a call is open: try again when it has ended")
        elif other._closed is None:
            raise SessionError(
                f"cannot forget while the fork {other.session_id!r} is open: it would bring it back; close it first"
            )


def _rewritten(line: Timeline, rules: Rules, contents: Redaction, calls: Redaction) -> tuple[Timeline, Rewriting]:
    for _ in range(_MOST_PASSES):
        known = len(contents.digests), len(calls.digests)
        work = Rewriting(rules, Mapper(contents, calls))
        after = work.line(line)
        if (len(contents.digests), len(calls.digests)) == known:
            return after, work
    raise SessionError("cannot forget this: contents name one another's digests in a chain that does not end")


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


def _unreached(session: Session, work: Rewriting, stores: Iterable[Store | HostFilesystem]) -> Iterator[str]:
    yield "other copies of the session: files saved elsewhere or not saved again, backups, exported git repositories"
    yield "programs and models that have read it already"
    known = session[ExternalTrees].latest() or ExternalTrees()
    taken = (one.filesystem_id for one in session[ExternalFsSnapshot].all())
    searched = {one.filesystem_id for one in stores if isinstance(one, HostFilesystem)}
    for name in dict.fromkeys((*(one.filesystem_id for one in session.attached), *known.trees, *taken)):
        remedy = "remove it from the files first, or the session records it again"
        if name in searched:
            yield f"the files of {name} as they are now: {remedy}"
        else:
            yield f"the files of {name} as they are now, and the snapshots in its store: {remedy}; pass its store too"
    for digest in sorted(work.mapper.unreadable):
        yield f"the content {digest}, which is missing"


def _copy(session: Session, after: Timeline) -> Session:
    """Return a session in memory with the rewritten history."""
    copy = type(session)(session_id=session.session_id, registry=session.registry, clock=session._clock)
    header = {"session_id": session.session_id, "origin_id": session.origin_id, "counter": session._counter}
    copy._take_over(session._rules, after, header)
    return copy


def _stored(session: Session, copy: Session, report: Forgetting) -> Forgetting:
    """Replace the stored history by that of the copy, close the session, and search its storage."""
    log = session._log
    assert log is not None
    url, name, head = log.store.url, log.stream, log.head
    if not report.is_rewritten:
        # A killed process may have replaced the history, and left the old one to be erased.
        erase(url)
        return evolve(report, found_in=report.search(*_places(url)))
    log.flush()
    replace_stream(url, name, head, lambda where: copy.copy_to(where, durability="power"))
    session.close("something was forgotten, and its storage replaced: open it again")
    return evolve(report, found_in=report.search(*_places(url)))


def _places(url: str) -> list[str]:
    path = local_of(url)
    return [path] if url.startswith("folder:") else [path, f"{path}-wal", f"{path}-shm"]
