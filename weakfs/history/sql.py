"""SQL queries: a session's calls, records, changes, files, lines and snapshots as tables of SQLite.

The tables are in memory and exist only for one query. Only the columns that the query reads are filled.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import overload

import orjson
from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.history.blame.lines import Blames
from weakfs.history.calls import calls_of
from weakfs.history.plain_values import moment, plain_fields
from weakfs.history.record_states import steps_of
from weakfs.history.tree_patch import count_changed_lines, file_changes
from weakfs.history.trees import Trees
from weakfs.reducers import ExternalFsSnapshot, FileTree, diff
from weakfs.reducers.tree.leaf import CONTENT, MODE, MODIFIED_AT, Leaf, blob_digest, content_of, kind_of, size_of
from weakfs.reducers.tree.node import walk
from weakfs.session import Merged, MissingBlob, Session
from weakfs.session.session import checked_session

Value = str | int | float | bytes | None
Row = tuple[Value, ...]

# Files larger than this (in bytes) have no text in the tables.
MAX_TEXT = 1 << 20
# The maximum size of a text or blob that a query may create, in bytes.
MAX_VALUE = 64 << 20
# The number of SQLite's virtual machine instructions between checks of the clock: about a millisecond.
INSTRUCTIONS = 20_000

# The allowed actions of a query: reading tables, and calling functions without outside effects.
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
FORBIDDEN_FUNCTIONS = {"edit", "fts3_tokenizer", "load_extension", "readfile", "writefile"}

COLUMNS: Mapping[str, str] = {
    "calls": "number INTEGER, id TEXT, tool TEXT, status TEXT, error_code TEXT, summary TEXT, caller TEXT, "
    "started_at TEXT, duration_ms REAL, first_record INTEGER, last_record INTEGER, arguments TEXT, receipt TEXT",
    "records": "seq INTEGER, at TEXT, tag TEXT, cause TEXT, path TEXT, event TEXT",
    "changes": "record INTEGER, call_number INTEGER, cause TEXT, at TEXT, filesystem TEXT, change TEXT, path TEXT, "
    "source TEXT, size INTEGER, size_before INTEGER, added INTEGER, removed INTEGER",
    "files": "path TEXT, filesystem TEXT, kind TEXT, size INTEGER, mode TEXT, modified_at TEXT, target TEXT, "
    "digest TEXT, text TEXT",
    "lines": "path TEXT, filesystem TEXT, number INTEGER, text TEXT, record INTEGER, call_id TEXT, tool TEXT, "
    "caller TEXT, at TEXT, kind TEXT",
    "snapshots": "id TEXT, tag TEXT, record INTEGER, at TEXT, filesystem TEXT, kind TEXT",
}


@frozen
class QueryResult(Sequence[Row]):
    """The rows of a query. `truncated` is true if there were more than `max_rows`."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    truncated: bool

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self.rows[index]


def run_query(
    session: Session,
    text: str,
    parameters: Sequence[Value] | Mapping[str, Value] = (),
    *,
    max_rows: int = 10_000,
    timeout: float = 10.0,
) -> QueryResult:
    """Run one SELECT over the tables of a session.

    `timeout` is in seconds and applies to the query itself, not to filling its tables. Raises `ValueError` if the query
    is invalid or would do anything but read, and `TimeoutError` if it runs too long.
    """
    checked_session(session)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        for name, definition in COLUMNS.items():
            database.execute(f"CREATE TABLE {name} ({definition})")
        run = _Query(database, text, parameters, timeout)
        # The query first runs on the empty tables, to learn which columns it reads.
        run.rows(0)
        tables = _Tables(session)
        for name, read in run.reads.items():
            tables.fill(database, name, read)
        columns, found = run.rows(max_rows + 1)
        return QueryResult(columns, found[:max_rows], len(found) > max_rows)


@define(eq=False)
class _Query:
    """One SELECT, and the columns that it reads by table."""

    database: sqlite3.Connection
    text: str
    parameters: Sequence[Value] | Mapping[str, Value]
    timeout: float
    reads: dict[str, set[str]] = field(factory=dict[str, set[str]])
    denied: str | None = None

    def rows(self, most: int) -> tuple[tuple[str, ...], tuple[Row, ...]]:
        ends = time.monotonic() + self.timeout
        self.denied = None
        self.database.set_authorizer(self._authorize)
        self.database.set_progress_handler(lambda: time.monotonic() > ends, INSTRUCTIONS)
        try:
            cursor = self.database.execute(self.text, self.parameters)
            if cursor.description is None:
                raise ValueError("cannot run the query: it is empty; give a SELECT")
            return tuple(one[0] for one in cursor.description), tuple(islice(cursor, most))
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise TimeoutError(
                    f"the query ran for more than {self.timeout:g} seconds; narrow it, or give it a longer timeout"
                ) from error
            if self.denied is not None:
                raise ValueError(f"cannot run the query: {self.denied}; give a SELECT that only reads") from error
            tables = ", ".join(COLUMNS)
            cause = str(error).rstrip(".")
            raise ValueError(f"cannot run the query: {cause}; the tables are {tables}") from error
        finally:
            self.database.set_authorizer(None)
            self.database.set_progress_handler(None, 0)

    def _authorize(self, action: int, one: str | None, two: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and one is not None and one in COLUMNS:
            self.reads.setdefault(one, set()).add(two or "")
        if action not in ALLOWED or (action == sqlite3.SQLITE_FUNCTION and two in FORBIDDEN_FUNCTIONS):
            self.denied = (
                f"{two} is not available" if action == sqlite3.SQLITE_FUNCTION else "it would change or open something"
            )
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


class _Tables:
    """The rows of each table. Columns that are expensive to compute are empty unless they are read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._trees = Trees(session)
        self._fill: dict[str, Callable[[set[str]], Iterable[Row]]] = {
            "calls": self._calls,
            "records": self._records,
            "changes": self._changes,
            "files": self._files,
            "lines": self._lines,
            "snapshots": self._snapshots,
        }

    def fill(self, database: sqlite3.Connection, name: str, columns: set[str]) -> None:
        places = ", ".join("?" * (COLUMNS[name].count(",") + 1))
        database.execute("BEGIN")
        database.executemany(f"INSERT INTO {name} VALUES ({places})", self._fill[name](columns))
        database.execute("COMMIT")

    def _calls(self, columns: set[str]) -> Iterator[Row]:
        for one in calls_of(self._session):
            call = one.call
            yield (
                one.number, call.call_id, call.tool, call.status, call.error_code, call.summary, call.caller,
                moment(call.started_at, fraction=True), (call.ended_at - call.started_at) / 1e6, one.first, one.last,
                _text(call.arguments) if "arguments" in columns else None,
                _text(call.receipt) if "receipt" in columns else None,
            )  # fmt: skip

    def _records(self, columns: set[str]) -> Iterator[Row]:
        registry = self._session.registry
        for record in self._session.records:
            event = record.event
            path = getattr(event, "path", None) or getattr(event, "destination", None)
            fields = orjson.dumps(dict(plain_fields(registry, event))).decode() if "event" in columns else None
            yield (
                record.seq, moment(record.at, fraction=True), registry.by_type[type(event)].tag, record.cause,
                path if isinstance(path, str) else None, fields,
            )  # fmt: skip

    def _changes(self, columns: set[str]) -> Iterator[Row]:
        calls = calls_of(self._session) if "call_number" in columns else ()
        numbers = {seq: call.number for call in calls for seq in call.records}
        wants_lines = bool(columns & {"added", "removed"})
        for step in steps_of(self._session):
            record = step.record
            # The records of a merged fork are listed one by one.
            if step.before is None or step.after is None or (isinstance(record.event, Merged) and record.event.count):
                continue
            head = (record.seq, numbers.get(record.seq), record.cause, moment(record.at, fraction=True))
            for filesystem, (before, after) in self._trees.changed(step.before, step.after).items():
                yield from ((*head, filesystem, *row) for row in _changed_files(before, after, wants_lines=wants_lines))

    def _files(self, columns: set[str]) -> Iterator[Row]:
        for filesystem, tree in self._trees.all(self._session).items():
            for path, node in walk(tree):
                if type(node) is FileTree:
                    yield (path, filesystem, "directory", None, f"{node.mode:04o}",
                           moment(node.modified_at, fraction=True), None, None, None)  # fmt: skip
                else:
                    yield (path, filesystem, *_leaf_columns(node, columns))

    def _lines(self, columns: set[str]) -> Iterator[Row]:
        blames = Blames()
        for filesystem, tree in self._trees.all(self._session).items():
            for path, node in walk(tree):
                if type(node) is FileTree or kind_of(node) != "file" or size_of(node) > MAX_TEXT:
                    continue
                with suppress(ValueError, MissingBlob):  # binary, or missing
                    for line in blames.of(self._session, path, at=None, filesystem=filesystem):
                        yield (
                            path, filesystem, line.number, line.text, line.record, line.call_id, line.tool, line.caller,
                            None if line.at is None else moment(line.at, fraction=True), line.kind,
                        )  # fmt: skip

    def _snapshots(self, columns: set[str]) -> Iterator[Row]:
        for one in self._session.snapshots:
            yield one.snapshot_id, one.tag, one.seq, moment(one.at, fraction=True), None, None
        for kept in self._session[ExternalFsSnapshot].all():
            yield (
                kept.snapshot_id, kept.tag, None, moment(kept.created_ns, fraction=True), kept.filesystem_id, kept.kind,
            )  # fmt: skip


def _changed_files(before: FileTree, after: FileTree, *, wants_lines: bool) -> Iterator[Row]:
    for change in file_changes(before, after, diff(before, after)):
        old, new = change.old, change.new
        added, removed = (count_changed_lines(change) or (None, None)) if wants_lines else (None, None)
        yield (
            change.kind, change.new_path, change.source,
            None if new is None else size_of(new), None if old is None else size_of(old), added, removed,
        )  # fmt: skip


def _leaf_columns(leaf: Leaf, columns: set[str]) -> Row:
    kind = kind_of(leaf)
    target = leaf[CONTENT] if kind == "link" else None
    text = digest = None
    if kind == "file":
        digest = blob_digest(leaf).hex() if "digest" in columns else None
        if "text" in columns and size_of(leaf) <= MAX_TEXT:
            try:
                text = content_of(leaf).decode()
            except (UnicodeDecodeError, MissingBlob):
                text = None
    return (
        kind, size_of(leaf), f"{leaf[MODE]:04o}", moment(leaf[MODIFIED_AT], fraction=True),
        target if isinstance(target, str) else None, digest, text,
    )  # fmt: skip


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
