"""Which stored blobs the records need, and whether they exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import is_dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import attrs
from attrs import field

from weakfs.class_decorators import define
from weakfs.session.blobs.blob import Indexed, Stored
from weakfs.session.blobs.rope import Content, Rope
from weakfs.session.codec.scalars import ATOMS
from weakfs.session.errors import MissingBlob
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.slices.events import STATE_PLACES
from weakfs.session.slices.tags import fields_of
from weakfs.session.slices.type_registry import Registry

# Types that cannot hold a reference to a stored blob.
PLAIN: frozenset[type] = frozenset({*ATOMS, bytes})
# Types that may themselves refer to a stored blob.
HELD: frozenset[type] = frozenset({Stored, Rope})


@runtime_checkable
class ContentPool(Protocol):
    """A pool whose values hold blobs: see `weakfs.session.codec.blob_table.Pool`."""

    cls: type

    def contents(self, value: Any, seen: dict[int, object]) -> Iterator[Content]:
        """Yield the blobs in a value, except for parts of it that were `seen` before, by identity."""
        ...


def check_contents(registry: Registry, line: Timeline, *, behind: int = 0, read_all: bool = False) -> None:
    """Raise `MissingBlob` for a blob that no longer exists, and name what needs it.

    Check the records after number `behind`, the state before the first one, and the snapshots. With `read_all`, read
    every blob to its end, which also finds damaged ones.
    """
    needs = Needs(registry, read_all)
    if behind <= line.dropped:
        base = line.base
        needs.check((base.state, base.logs), partial("the state before record {}".format, base.seq + 1))
    behind = max(behind, line.dropped)
    for seq, row in enumerate(line.rows.since(behind - line.dropped), behind + 1):
        if row[2] not in STATE_PLACES:
            needs.check(row[3], partial("record {} ({})".format, seq, row[2]))
    for entry in ordered_snapshots(line):
        needs.check((entry.state, entry.externals), partial("the snapshot {!r}".format, entry.tag or entry.snapshot_id))


@define(eq=False)
class Needs:
    """Checks each blob once, however many records need it: asks its source if that can tell, else reads it."""

    registry: Registry
    read_all: bool
    _pools: dict[type, ContentPool] = field(init=False)
    _found: set[tuple[int, bytes]] = field(factory=set[tuple[int, bytes]], init=False)
    # What has been searched already. Keeping it alive also keeps its id from being reused.
    _seen: dict[int, object] = field(factory=dict[int, object], init=False)

    def __attrs_post_init__(self) -> None:
        self._pools = {pool.cls: pool for pool in self.registry.pools if isinstance(pool, ContentPool)}

    def check(self, values: Iterable[object], who: Callable[[], str]) -> None:
        """Raise `MissingBlob` for the first missing blob in `values`, naming `who` needs it."""
        for value in values:
            if type(value) not in PLAIN:
                for content in self._contents(value):
                    self._look_for(content, who)

    def _contents(self, value: object) -> Iterator[Stored]:
        stack = [value]
        while stack:
            item = stack.pop()
            kind = type(item)
            if kind in PLAIN:
                continue
            if kind is Stored or kind is Rope:
                start = item if isinstance(item, Stored) else item.start if isinstance(item, Rope) else None
                if start is not None:
                    yield start
            elif kind in self._pools:
                stack += (content for content in self._pools[kind].contents(item, self._seen) if type(content) in HELD)
            elif id(item) not in self._seen:
                self._seen[id(item)] = item
                stack += parts_of(item)

    def _look_for(self, content: Stored, who: Callable[[], str]) -> None:
        key = (id(content.source), content.digest)
        if key in self._found:
            return
        try:
            source = content.source
            if self.read_all:
                for _ in content.pieces():
                    pass
            elif not (isinstance(source, Indexed) and source.has(content.digest)):
                next(content.pieces(), None)
        except MissingBlob as error:
            raise MissingBlob(f"{error.reason}; {who()} needs it", where=error.where, digest=content.digest) from None
        self._found.add(key)


def parts_of(value: Any) -> Iterable[object]:
    """Return the values that a mapping, a sequence, a set or an object with fields holds directly."""
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values())
    if isinstance(value, (Sequence, Set)) and not isinstance(value, str | bytes | bytearray | memoryview):
        return tuple(value)
    if not isinstance(value, type) and (attrs.has(type(value)) or is_dataclass(value)):
        return tuple(getattr(value, field.name) for field in fields_of(type(value)))
    return ()
