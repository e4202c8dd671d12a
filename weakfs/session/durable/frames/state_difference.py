"""The difference between two tables of slices as JSON, so that a state costs only what it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Protocol, runtime_checkable

from weakfs.session.codec.blob_table import Blobs, Json
from weakfs.session.errors import SessionFileError
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table
from weakfs.session.slices.type_registry import Registry


@runtime_checkable
class Comparing(Protocol):
    """A pool whose values can be written as differences from others: see `weakfs.session.codec.blob_table.Pool`."""

    cls: type

    def difference(self, before: Any, after: Any, blobs: Blobs) -> Json:
        """Return `after` as its difference from `before`."""
        ...

    def changed(self, before: Any, row: Json, blobs: Any, expansion: Any) -> Any:
        """Return the value that `difference` described."""
        ...


@lru_cache(maxsize=16)
def pools_that_compare(registry: Registry) -> Mapping[type, Comparing]:
    """Return the pools of a registry that can write differences, by type.

    The result is cached, because checking a protocol is slow, and every merge is stored as a difference.
    """
    return {pool.cls: pool for pool in registry.pools if isinstance(pool, Comparing)}


def write_values(
    before: Log[Any], after: Log[Any], write: Callable[[Any], Json], pool: Comparing | None, blobs: Blobs
) -> Json:
    """Return the values of a slice as their difference from `before`."""
    if pool is not None and len(before) == len(after) == 1:
        return {"changed": pool.difference(before.last(), after.last(), blobs)}
    keep = len(before) if after.extends(before) else _shared(before, after)
    return {"keep": keep, "items": [write(item) for item in after.since(keep)]}


def _shared(before: Log[Any], after: Log[Any]) -> int:
    count = 0
    for old, new in zip(before, after, strict=False):
        if old is not new:
            break
        count += 1
    return count


def _write_item(write: Callable[[Any, type], Json], cls: type, item: Any) -> Json:
    return write(item, cls)


def read_values(before: Log[Any], row: Json, read: Callable[[Json], Any], changed: Callable[[Any, Json], Any]) -> Any:
    """Return the values that `write_values` wrote."""
    if type(row) is dict and row.keys() == {"changed"} and len(before) == 1:
        return Log((changed(before.last(), row["changed"]),))
    if type(row) is not dict or row.keys() != {"keep", "items"} or type(row["items"]) is not list:
        raise SessionFileError("expected the values that a slice keeps and gains", where="$.slices")
    keep = row["keep"]
    if type(keep) is not int or not 0 <= keep <= len(before):
        raise SessionFileError(f"the slice has no {keep!r:.60} values to keep", where="$.slices.keep")
    return before.prefix(keep).extend(map(read, row["items"]))


def write_table(
    rules: Rules,
    before: Table,
    after: Table,
    write: Callable[[Any, type], Json],
    pools: Mapping[type, Comparing],
    blobs: Blobs,
) -> Json:
    """Return a table as its difference from `before`: by tag, with null for slices that it does not have."""
    found: dict[str, Json] = {}
    for tag in sorted({*before, *after}):
        old, new = before.get(tag), after.get(tag)
        if new is old:
            continue
        if new is None:
            found[tag] = None
            continue
        spec = rules.specs[tag]
        start = spec.empty if old is None else old
        found[tag] = write_values(start, new, partial(_write_item, write, spec.cls), pools.get(spec.cls), blobs)
    return found
