"""Which contents that lie elsewhere records cannot do without, and whether they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import is_dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import attrs
from attrs import define, field

from weakfs.session.blobs.blob import Stored, Surveyed
from weakfs.session.blobs.rope import Content, Rope
from weakfs.session.codec.atoms import ATOMS
from weakfs.session.errors import MissingBlob
from weakfs.session.events import Merged, RolledBack
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.slices.registry import Registry, fields_of, tag_of

# What holds no reference to anything elsewhere.
PLAIN: frozenset[type] = frozenset({*ATOMS, bytes})
# What may refer to something elsewhere itself.
HELD: frozenset[type] = frozenset({Stored, Rope})
# The events whose tables hold what records before them brought.
TELLING: frozenset[str] = frozenset({tag_of(RolledBack), tag_of(Merged)})


@runtime_checkable
class ContentPool(Protocol):
    """A pool whose values hold contents: see `weakfs.session.codec.pools.Pool`."""

    cls: type

    def contents(self, value: Any, seen: dict[int, object]) -> Iterator[Content]:
        """Give the contents in a value, but for parts of it that were `seen` before, by identity."""
        ...


def check_contents(registry: Registry, line: Timeline, *, behind: int = 0, read_all: bool = False) -> None:
    """Raise `MissingBlob` for a content that is gone, and say what needs it.

    Looks at the records after number `behind`, at the state before the first one, and at the snapshots. With
    `read_all` every content is read to its end: that also finds those that were damaged.
    """
    needs = Needs(registry, read_all)
    if behind <= line.dropped:
        base = line.base
        needs.check((base.state, base.logs), partial("the state before record {}".format, base.seq + 1))
    behind = max(behind, line.dropped)
    for seq, row in enumerate(line.rows.since(behind - line.dropped), behind + 1):
        if row[2] not in TELLING:
            needs.check(row[3], partial("record {} ({})".format, seq, row[2]))
    for entry in ordered_snapshots(line):
        needs.check((entry.state, entry.externals), partial("the snapshot {!r}".format, entry.tag or entry.snapshot_id))


@define(eq=False)
class Needs:
    """Looks for each content once, however many records need it: asks its source where that can tell, else reads."""

    registry: Registry
    read_all: bool
    _pools: dict[type, ContentPool] = field(init=False)
    _found: set[tuple[int, bytes]] = field(factory=set[tuple[int, bytes]], init=False)
    # What was looked through already; holding it keeps its identity from being used again.
    _seen: dict[int, object] = field(factory=dict[int, object], init=False)

    def __attrs_post_init__(self) -> None:
        self._pools = {pool.cls: pool for pool in self.registry.pools if isinstance(pool, ContentPool)}

    def check(self, values: Iterable[object], who: Callable[[], str]) -> None:
        """Raise `MissingBlob` for the first content in `values` that is not there; it says that `who` needs it."""
        for value in values:
            if type(value) not in PLAIN:
                for content in self._contents(value):
                    self._look_for(content, who)

    def _contents(self, value: object) -> Iterator[Stored]:
        stack = [value]
        while stack:
            here = stack.pop()
            kind = type(here)
            if kind in PLAIN:
                continue
            if kind is Stored or kind is Rope:
                start = here if isinstance(here, Stored) else here.start if isinstance(here, Rope) else None
                if start is not None:
                    yield start
            elif kind in self._pools:
                stack += (content for content in self._pools[kind].contents(here, self._seen) if type(content) in HELD)
            elif id(here) not in self._seen:
                self._seen[id(here)] = here
                stack += _parts(here)

    def _look_for(self, content: Stored, who: Callable[[], str]) -> None:
        known = (id(content.source), content.digest)
        if known in self._found:
            return
        try:
            source = content.source
            if self.read_all:
                for _ in content.pieces():
                    pass
            elif not (isinstance(source, Surveyed) and source.has(content.digest)):
                next(content.pieces(), None)
        except MissingBlob as error:
            raise MissingBlob(f"{error.told}; {who()} needs it", where=error.where, digest=content.digest) from None
        self._found.add(known)


def _parts(value: Any) -> Iterable[object]:
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values())
    if isinstance(value, (Sequence, Set)) and not isinstance(value, str | bytes | bytearray | memoryview):
        return tuple(value)
    if not isinstance(value, type) and (attrs.has(type(value)) or is_dataclass(value)):
        return tuple(getattr(value, own.name) for own in fields_of(type(value)))
    return ()
