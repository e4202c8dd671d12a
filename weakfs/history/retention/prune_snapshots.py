"""Retention of a snapshot store: selecting the snapshots to drop, and what that frees."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence

import attrs

from weakfs.backends import HostFilesystem
from weakfs.backends.session_references import contents_needed, snapshots_needed
from weakfs.history.retention.policy import Holder, PruneReport, Retention
from weakfs.snapshots import Store, StoredSnapshot
from weakfs.snapshots.store.catalogue import root_name
from weakfs.snapshots.store.usage import Usage


def prune_store(target: Store | HostFilesystem, retention: Retention, *, preview: bool) -> PruneReport:
    """Drop from a store what exceeds the limits, and compact it; see `prune`."""
    if retention.max_records is not None:
        raise ValueError("cannot limit records: a store of snapshots has none; prune the session instead")
    if isinstance(target, Store):
        report, is_left = _pruned(target, retention, time.time_ns(), target.list(), frozenset(), preview=preview)
        return _compacted(report, retention, target, target) if is_left else report
    with target.lock():
        store = target.store
        keep = frozenset(contents_needed(target.session, store))
        needed, own = snapshots_needed(target.session), root_name(target.root)
        every = [one for one in store.list() if one.extra.get("root", own) == own and one.snapshot_id not in needed]
        report, is_left = _pruned(store, retention, target.now(), every, keep, preview=preview)
    # The lock is not held here: processes that write to the store may be waiting for it.
    return _compacted(report, retention, target, store) if is_left else report


def _pruned(
    store: Store,
    retention: Retention,
    now: int,
    candidates: Sequence[StoredSnapshot],
    keep: frozenset[bytes],
    *,
    preview: bool,
) -> tuple[PruneReport, bool]:
    """Drop the candidates that exceed the limits, oldest first. Also return whether to compact the store."""
    every = store.list()
    costs = {one.snapshot.snapshot_id: one for one in store.account(every)}
    usage = Usage(store, keep)
    droppable = [one for one in candidates if one.tag is None or not retention.keep_tags]
    dropped = _within_limits(candidates, droppable, retention, retention.oldest(now))
    if retention.max_bytes is not None:
        dropped = _within_size(usage, every, droppable, dropped, retention.max_bytes)
    gone = {one.snapshot_id for one in dropped}
    kept = [one for one in every if one.snapshot_id not in gone]
    kept_costs = store.account(kept)
    before, after = usage.size, usage.size_with(kept, dropped)
    is_left = not preview and (bool(dropped) or after < before)
    if is_left:
        store.drop_all(one.snapshot_id for one in dropped)
    held = tuple(_holder(one.snapshot, one.frees) for one in kept_costs)
    goes = tuple(_holder(one, costs[one.snapshot_id].frees) for one in dropped)
    return PruneReport(preview, 0, 0, goes, held, before, after, _excess(after, retention)), is_left


def _compacted(report: PruneReport, retention: Retention, target: Store | HostFilesystem, store: Store) -> PruneReport:
    """Compact the store, and return the report with its size afterwards."""
    target.compact()
    after = Usage(store).size
    return attrs.evolve(report, bytes_after=after, excess=_excess(after, retention))


def _excess(size: int, retention: Retention) -> int:
    return 0 if retention.max_bytes is None else max(size - retention.max_bytes, 0)


def _holder(one: StoredSnapshot, frees: int) -> Holder:
    return Holder("snapshot", one.snapshot_id, one.tag, one.created_ns, one.total_size, frees)


def _within_limits(
    every: Sequence[StoredSnapshot], droppable: Sequence[StoredSnapshot], retention: Retention, oldest: int | None
) -> list[StoredSnapshot]:
    """Return the snapshots that exceed the limits on number and age."""
    most = retention.max_snapshots
    older = [] if most is None else [one.snapshot_id for one in every[: max(len(every) - most, 0)]]
    return [one for one in droppable if one.snapshot_id in older or (oldest is not None and one.created_ns < oldest)]


def _within_size(
    usage: Usage,
    every: Sequence[StoredSnapshot],
    droppable: Sequence[StoredSnapshot],
    least: list[StoredSnapshot],
    max_bytes: int,
) -> list[StoredSnapshot]:
    """Return `least` plus as many of the oldest droppable snapshots as it takes for the rest to fit, or all."""
    rest = [one for one in droppable if one not in least]

    def fits(number: int) -> bool:
        gone = [*least, *rest[:number]]
        names = {one.snapshot_id for one in gone}
        return usage.size_with([one for one in every if one.snapshot_id not in names], gone) <= max_bytes

    return [*least, *rest[: bisect_left(range(len(rest)), True, key=fits)]]
