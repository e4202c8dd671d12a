"""The requests of a live page: its data, and previews and changes of a session, which is reopened for each request."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from threading import Lock
from typing import Literal, cast

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.history.page.rows import page_data
from weakfs.history.trees import Trees
from weakfs.reducers import FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.leaf import MODE, blob_digest, kind_of
from weakfs.reducers.tree.node import find, walk
from weakfs.session import ConflictEntry, MergeConflict, Reversion, Session, SessionConflict, SessionError

How = Literal["undo", "redo", "revert", "restore"]
HOWS: tuple[How, ...] = ("undo", "redo", "revert", "restore")
# The maximum length of a side of a conflict that is sent, in characters.
MAX_SIDE = 20_000
# The largest integer that JavaScript represents exactly; no session has that many records.
MAX_RECORD = 2**53

Fields = dict[str, object]


@frozen
class Wanted:
    """A request to undo work. `agreed` is the digest of the preview that the user confirmed, `None` for a preview."""

    how: How
    first: int = 0
    last: int = 0
    agreed: str | None = None

    @classmethod
    def of(cls, fields: object) -> Wanted:
        """Read the fields of a request; raise `ValueError` if one is missing or wrong."""
        if not isinstance(fields, dict):
            raise ValueError("a request must be an object")
        if fields.get("how") not in HOWS:
            raise ValueError(f"'how' must be one of {', '.join(HOWS)}")
        how = cast(How, fields["how"])
        agreed = fields.get("agreed")
        if agreed is not None and not isinstance(agreed, str):
            raise ValueError("'agreed' must be a string")
        if how in ("undo", "redo"):
            return cls(how, agreed=agreed)
        first, last = fields.get("first"), fields.get("last", fields.get("first"))
        if not (_is_record(first) and _is_record(last)):
            raise ValueError("'first' and 'last' must be record numbers")
        return cls(how, cast(int, first), cast(int, last), agreed)

    def run(self, session: Session, *, preview: bool) -> Reversion:
        """Undo work of a session, or preview what that would change."""
        if self.how == "undo":
            return session.undo(preview=preview)
        if self.how == "redo":
            return session.redo(preview=preview)
        if self.how == "restore":
            # Changes made by other programs are kept; if that is impossible, the conflict is shown.
            return session.restore(self.first, preview=preview, foreign="keep")
        return session.revert(range(self.first, self.last + 1), preview=preview)


def _is_record(number: object) -> bool:
    return type(number) is int and 0 <= number < MAX_RECORD


@define(eq=False)
class LiveTimeline:
    """A session as a live page sees it: reopened whenever it is needed, so that other programs may change it.

    `version` returns a string that is different after each change of the session. `opened` opens the session for
    reading, and `changing` for undoing work, which `save` completes; both close it at the end.
    """

    where: str
    version: Callable[[], str]
    opened: Callable[[], AbstractContextManager[Session]]
    changing: Callable[[], AbstractContextManager[Session]]
    save: Callable[[Session, int], None]
    # Handle one request at a time, because each may hold a whole session in memory.
    _lock: Lock = field(factory=Lock, init=False)
    _newest: tuple[str, bytes] | None = field(default=None, init=False)

    def data(self) -> bytes:
        """Return the data of the page as JSON, with its version. It is computed once for each version."""
        with self._lock:
            # Taken before the session is read: if it changes meanwhile, the page asks again.
            version = self.version()
            if self._newest is None or self._newest[0] != version:
                with self.opened() as session:
                    fields = {**page_data(session), "where": self.where, "version": version}
                text = json.dumps(fields, separators=(",", ":"), allow_nan=False)
                self._newest = version, text.encode()
            return self._newest[1]

    def finish(self) -> None:
        """Wait for the current request, and handle no others."""
        self._lock.acquire()

    def take_back(self, wanted: Wanted) -> Fields:
        """Preview a change, or make it if the preview is still accurate."""
        with self._lock:
            try:
                return self._taken_back(wanted)
            except MergeConflict as error:
                return {"conflicts": [_conflict(entry) for entry in error.conflicts]}
            except SessionConflict:
                return {"stale": True}
            except (SessionError, OSError, ValueError) as error:
                return {"error": str(error)}

    def _taken_back(self, wanted: Wanted) -> Fields:
        with self.changing() as session:
            done = wanted.run(session, preview=True)
            report = _report(done)
            # Changes that other programs make from now on become a conflict in storage, or are detected by `save`.
            digest = sha256(json.dumps([report, _replaced(session, done)]).encode()).hexdigest()
            if wanted.agreed is None:
                return {**report, "digest": digest}
            if wanted.agreed != digest:
                return {"stale": True}
            before = session.seq
            if wanted.run(session, preview=False).record is not None:
                self.save(session, before)
            return {"done": True}


def _report(done: Reversion) -> Fields:
    return {
        "records": [list(span) for span in done.records],
        "changes": [
            {
                "path": change.path,
                "change": change.change,
                "source": change.source,
                "added": change.lines_added,
                "removed": change.lines_removed,
                "bytes": [change.bytes_added, change.bytes_removed],
            }
            for change in done.changes
        ],
        "conflicts": [_conflict(entry) for entry in done.conflicts],
        "foreign": list(done.foreign),
        "detached": list(done.detached),
    }


def _replaced(session: Session, done: Reversion) -> list[list[object]]:
    """Return digests of what is now at the paths that would change, so that other work is not mistaken for it.

    A slice without paths has no digest, so the number of the newest record is included instead.
    """
    whole = Trees(session).all(session)
    found: list[list[object]] = []
    for path in sorted({path for change in done.changes for path in (change.path, change.source) if path is not None}):
        if not path.startswith("/"):
            found.append([path, session.seq])
            continue
        for name, tree in whole.items():
            node = find(tree, segments_of(path))
            leaves = walk(node) if type(node) is FileTree else [("", node)] if node is not None else []
            found += [
                [name, path + below, kind_of(leaf), leaf[MODE], blob_digest(leaf).hex()]
                for below, leaf in leaves
                if type(leaf) is not FileTree
            ]
    return found


def _conflict(entry: ConflictEntry) -> Fields:
    return {"path": entry.path, "kind": entry.kind, "ours": _side(entry.ours), "theirs": _side(entry.theirs)}


def _side(content: str | bytes | None) -> str | None:
    if isinstance(content, bytes):
        return f"({len(content):,} bytes that are not text)"
    if content is None or len(content) <= MAX_SIDE:
        return content
    return f"{content[:MAX_SIDE]}\n({len(content) - MAX_SIDE:,} more characters)"
