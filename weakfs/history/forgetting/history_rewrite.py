"""Rewriting a timeline: states are mapped, and records are rewritten to lead from one mapped state to the next."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, cast

from attrs import define, field, fields, has
from pyrsistent import pmap

from weakfs.history.forgetting.text_redaction import Redaction
from weakfs.history.record_states import row_states
from weakfs.reducers import FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import FileAppended, FileSpliced, FileWritten
from weakfs.reducers.external_trees import tree_in
from weakfs.reducers.merging.line_merge import common_ends
from weakfs.reducers.tree.leaf import CONTENT, Leaf, Special
from weakfs.reducers.tree.node import entries, find, is_tree, tree_of
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.rope import Rope, joined, with_pieces
from weakfs.session.errors import MissingBlob
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.packed_rows import Packing
from weakfs.session.history.reduction import Row, changed
from weakfs.session.history.snapshot_table import SnapshotTable
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.tools.slices import FileSeen, FilesSeen, KeptBlob, ToolCall

_CONTENT_EVENTS = (FileWritten, FileAppended, FileSpliced)
_ATOMS = (int, float, bool, type(None), Special)


@define(eq=False)
class Mapper:
    """Maps the values in slices and records. Shared values stay shared."""

    contents: Redaction
    # The redaction for calls and for the blobs that answers refer to.
    calls: Redaction
    unreadable: set[str] = field(factory=set[str])
    # Mapped values by identity; keeping the original alive prevents its id from being reused.
    _known: dict[tuple[int, bool], tuple[object, Any]] = field(factory=dict[tuple[int, bool], "tuple[object, Any]"])

    def value(self, value: Any, *, of_call: bool = False) -> Any:
        """Return a value without the forgotten text; the same object if nothing in it changes."""
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind is str:
            return (self.calls if of_call else self.contents).text(value)
        key = (id(value), of_call)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = value, self._mapped(value, of_call)
        return found[1]

    def _mapped(self, value: Any, of_call: bool) -> Any:
        if isinstance(value, bytes | Rope | Stored):
            return self._content(value, of_call)
        if type(value) is FileTree:
            return self._tree(value)
        if type(value) is FilesSeen:
            return self._sights(value)
        if isinstance(value, Table):
            return _same(value, Table({tag: self.value(values, of_call=of_call) for tag, values in value.items()}))
        if isinstance(value, Log):
            items = [self.value(item, of_call=of_call) for item in value]
            return value if all(map(is_, items, value)) else Log(items)
        if isinstance(value, Mapping):
            pairs = {self.value(k, of_call=of_call): self.value(v, of_call=of_call) for k, v in value.items()}
            return _same(value, pmap(pairs) if isinstance(value, type(pmap())) else pairs)
        if isinstance(value, tuple | list | set | frozenset):
            items = [self.value(item, of_call=of_call) for item in value]
            return value if all(map(is_, items, value)) else type(value)(items)
        if has(type(value)):
            return self._object(value, of_call)
        return value

    def _content(self, value: Any, of_call: bool) -> Any:
        try:
            whole = joined(value)
        except MissingBlob as error:
            self.unreadable.add(error.digest.hex() if error.digest else "")
            return value
        after = self.contents.content(whole)
        if of_call:
            after = self.calls.content(after)
        return value if after is whole else after

    def _object(self, value: Any, of_call: bool) -> Any:
        of_call = of_call or type(value) in (ToolCall, KeptBlob)
        values = {
            one.alias: (getattr(value, one.name), self.value(getattr(value, one.name), of_call=of_call))
            for one in fields(type(value))
            if one.init
        }
        if all(old is new for old, new in values.values()):
            return value
        return type(value)(**{name: new for name, (_, new) in values.items()})

    def _tree(self, tree: FileTree) -> FileTree:
        nodes: dict[str, Any] = {}
        is_same = True
        for name, node in entries(tree):
            if is_tree(node):
                after = self.value(node)
            else:
                leaf = cast(Leaf, node)
                content = self.value(leaf[CONTENT])
                after = leaf if content is leaf[CONTENT] else (content, *leaf[1:4], bytearray())
            new_name = self.contents.text(name)
            is_same = is_same and after is node and new_name is name
            nodes[new_name] = after
        if is_same:
            return tree
        return tree_of(nodes, mode=tree.mode, modified_at=tree.modified_at, created_at=tree.created_at)

    def _sights(self, value: FilesSeen) -> FilesSeen:
        after = FilesSeen()
        for key, parts in value.sights.items():
            filesystem, _, caller = self.contents.text(key).partition("\n")
            for part in parts:
                for path, (version, seq) in part.items():
                    new = None if version is None else self.contents.text(version)
                    after = after.on_file_seen(FileSeen(caller, self.contents.text(path), new, seq, filesystem))
        return after


def _same(old: Mapping[Any, Any], new: Any) -> Any:
    return old if len(old) == len(new) and all(new.get(key) is value for key, value in old.items()) else new


@define(eq=False)
class Rewriting:
    """One rewriting of the timeline of session `owner`. `records` are the numbers of the records that it changed."""

    owner: str
    rules: Rules
    mapper: Mapper
    records: list[int] = field(factory=list[int])

    def line(self, line: Timeline) -> Timeline:
        """Return the rewritten timeline. O(everything in the session)."""
        value = self.mapper.value
        base = line.base
        after = line.copy()
        after.base = Mark(base.seq, value(base.state), value(base.logs), base.block_end)
        after.rows = Log(self._rows(line))
        after.state, after.logs = value(line.state), value(line.logs)
        after.externals = pmap({seq: value(kept) for seq, kept in line.externals.items()})
        table = SnapshotTable()
        for entry in ordered_snapshots(line):
            table = table.set(value(entry))
        after.snapshots = table
        after.packing = Packing()
        after.forget_keyframes()
        return after

    def _rows(self, line: Timeline) -> list[Row]:
        rows: list[Row] = []
        for one in row_states(line, self.rules, self.owner, applied_if_possible):
            new = self._row(one.rules, one.row, one.event, one.before)
            if new is not one.row:
                self.records.append(one.seq)
            rows.append(new)
        return rows

    def _row(self, rules: Rules, row: Row, event: Any, before: Table | None) -> Row:
        at, cause, tag, values = row
        cause = None if cause is None else self.mapper.value(cause)
        new = self._event(event, before)
        if new is event:
            return row if cause is row[1] or cause == row[1] else (at, cause, tag, values)
        shape = rules.registry.by_type[type(new)]
        return at, cause, shape.tag, shape.pack(new)

    def _event(self, event: Any, before: Table | None) -> Any:
        value = self.mapper.value
        for name in ("path", "source", "destination"):
            path = getattr(event, name, None)
            if isinstance(path, str) and path.startswith("/"):
                self._check_path(path)
        new = value(event)
        if not isinstance(event, _CONTENT_EVENTS):
            return new
        old = None if before is None else _content_at(before, event)
        if old is None:
            return new
        wanted = value(_after(old, event))
        mapped = value(old)
        if _after(mapped, new) == wanted:
            return new
        start, end = common_ends(mapped, wanted)
        piece = (start, len(mapped) - end, wanted[start : len(wanted) - end])
        return FileSpliced(new.path, (piece,), new.at, filesystem=new.filesystem)

    def _check_path(self, path: str) -> None:
        contents = self.mapper.contents
        if contents.text(path) != "/".join(map(contents.text, path.split("/"))):
            raise ValueError(
                "cannot forget a text that contains '/' and is part of the path of a file; forget one name of the path"
            )


def applied_if_possible(
    rules: Rules, seq: int, row: Row, event: Any, state: Table | None, logs: Table
) -> tuple[Table | None, Table]:
    """Return the state after an event, or `None` if it is unknown, and the logs as they are."""
    try:
        return None if state is None else changed(rules, state, EMPTY_TABLE, event)[0], logs
    except Exception:  # custom reducers may raise any exception
        return None, logs


def _content_at(state: Table, event: Any) -> bytes | None:
    """Return the content of a file before an event: empty if there is no file, `None` if it is not known."""
    tree = tree_in(state, event.filesystem)
    leaf = None if tree is None else find(tree, segments_of(event.path))
    if leaf is None or is_tree(leaf):
        return None if isinstance(event, FileSpliced) else b""
    content = cast(Leaf, leaf)[CONTENT]
    if isinstance(content, str | Special):
        return b""
    try:
        return joined(content)
    except MissingBlob:
        return None


def _after(old: bytes, event: Any) -> bytes:
    if isinstance(event, FileWritten):
        return joined(event.content)
    if isinstance(event, FileAppended):
        return old + joined(event.tail)
    return with_pieces(old, event.pieces)
