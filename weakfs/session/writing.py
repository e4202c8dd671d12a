"""A session as one JSON document: what is shared is written once and referred to by number.

Slices, contents and pooled values (directories) are tables; snapshots, records and the present state name
their rows. Moments are visited in order of record number, so that a pool may write a value as its difference
from the one before. The same state gives the same bytes.
"""

from __future__ import annotations

from typing import Any

from weakfs.session.columns import Columns
from weakfs.session.converting import Writing
from weakfs.session.errors import SessionError
from weakfs.session.log import Log
from weakfs.session.pools import Json
from weakfs.session.rules import Rules
from weakfs.session.table import Table
from weakfs.session.timeline import Row, SnapshotEntry, Timeline, event_of

_UNKNOWN = object()


class Document:
    """Collects the tables of one file."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._writing = Writing(rules.registry, self.table)
        self._slices: list[Json] = []
        self._columns: dict[str, Any] = {}
        # By identity; the values are held so that no identity is used twice.
        self._numbers: dict[int, tuple[int, Log[Any]]] = {}
        self._last_log: dict[str, tuple[int, Log[Any]]] = {}

    def of(self, line: Timeline) -> dict[str, Json]:
        """Give the document of a line of history, without the session's own fields."""
        snapshots = sorted(line.snapshots.values(), key=lambda entry: entry.number)
        waiting = sorted(snapshots, key=lambda entry: (entry.seq, entry.number))
        shown: dict[str, Json] = {}
        base: Json = None
        if line.dropped:
            mark = line.base
            base = {
                "state": self.table(mark.state),
                "logs": self.table(mark.logs),
                "block_end": mark.block_end,
            }
        records: list[Json] = []
        position = 0
        for seq, row in enumerate(line.rows, line.dropped + 1):
            while position < len(waiting) and waiting[position].seq < seq:
                shown[waiting[position].snapshot_id] = self._snapshot(waiting[position])
                position += 1
            record: dict[str, Json] = {"seq": seq, "at": row[0], "type": row[2]}
            if row[1] is not None:
                record["cause"] = row[1]
            record["event"] = self._event(row)
            records.append(record)
        for entry in waiting[position:]:
            shown[entry.snapshot_id] = self._snapshot(entry)
        state, logs = self.table(line.state), self.table(line.logs)
        sections = {pool.section: writer.rows for pool, writer in self._writing.pools.values()}
        return {
            "state": state,
            "logs": logs,
            "slices": self._slices,
            "snapshots": [shown[entry.snapshot_id] for entry in snapshots],
            "dropped": line.dropped,
            "base": base,
            "records": records,
            **sections,
            "blobs": self._writing.blobs.rows,
        }

    def _event(self, row: Row) -> Json:
        columns = self._columns.get(row[2], _UNKNOWN)
        if columns is _UNKNOWN:
            columns = self._columns[row[2]] = Columns.of(self._rules.registry.shape(row[2]))
        if columns is not None and columns.fits(row[3]):
            return columns.write(row[3], self._writing.blobs)
        return self._writing.value(event_of(self._rules, row))

    def table(self, table: Table) -> Json:
        """Give the numbers of a table's slices, in order of tag."""
        return [self._slice(tag, table[tag]) for tag in sorted(table)]

    def _slice(self, tag: str, values: Log[Any]) -> int:
        known = self._numbers.get(id(values))
        if known is not None:
            return known[0]
        spec = self._rules.specs.get(tag)
        if spec is None:
            raise SessionError(f"cannot save the slice {tag!r}: its type is not installed; call session.install first")
        for value in values:
            if type(value) is not spec.cls:
                raise SessionError(
                    f"cannot save the slice {tag!r}: it holds a {type(value).__name__} where a {spec.cls.__name__} "
                    f"belongs; let its reducers give that"
                )
        row: dict[str, Json] = {"tag": tag, "kind": spec.kind}
        skip = 0
        last = self._last_log.get(tag)
        if spec.kind == "log" and last is not None and values.extends(last[1]):
            row["after"], skip = last[0], len(last[1])
        row["items"] = [self._writing.value(value) for value in values.since(skip)]
        number = len(self._slices)
        self._slices.append(row)
        self._numbers[id(values)] = (number, values)
        self._last_log[tag] = (number, values)
        return number

    def _snapshot(self, entry: SnapshotEntry) -> Json:
        row: dict[str, Json] = {
            "id": entry.snapshot_id,
            "number": entry.number,
            "seq": entry.seq,
            "at": entry.at,
            "tag": entry.tag,
            "state": self.table(entry.state),
        }
        if entry.externals:
            row["externals"] = self._writing.any(entry.externals)
        return row
