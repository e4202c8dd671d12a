"""The slices that hold files: the value, reducers and merge function of each, for a session's registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from weakfs.class_decorators import frozen
from weakfs.reducers.apply import REDUCERS
from weakfs.reducers.events import (
    CHANGING,
    EntryFound,
    EntryHidden,
    ExternalFsSnapshot,
    LayerEmptied,
    LowerEntry,
    TreeMounted,
    TreeRestored,
)
from weakfs.reducers.external_trees import NO_TREES, ExternalTrees, merge_external, on_external
from weakfs.reducers.partial_trees import with_paths
from weakfs.reducers.remembered_lower_layer import (
    NOTHING_FOUND,
    LowerFound,
    entries_forgotten,
    entry_hidden,
    entry_read,
    merge_entries,
    merge_found,
    on_emptied,
    on_found,
)
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree
from weakfs.session import event
from weakfs.session.slices.log import Log
from weakfs.session.slices.slice import (
    Declaration,
    EventFilter,
    Folded,
    StateMerge,
    WholeMerge,
    WholeSlice,
    append_all,
    merge_appended,
    reaction,
    stay,
)
from weakfs.session.slices.tags import tag_of

if TYPE_CHECKING:
    from weakfs.session.merging.sides import Sides
    from weakfs.session.slices.packed_state import PackedValue


@event("fs/mount")
@frozen
class MountReport:
    """One external tree mounted into a session's files: source, target, size, and what was left out and why.

    Rolling back past a mount undoes it.
    """

    source: str
    path: str
    file_count: int
    directory_count: int
    total_size: int
    skipped: tuple[tuple[str, str], ...]
    at: int


def on_tree_mounted(reports: Log[MountReport], event: TreeMounted) -> Log[MountReport]:
    """Add a report for a mount into the session's own files."""
    if event.filesystem is not None:
        return reports
    tree = event.tree
    return reports.append(
        MountReport(
            event.source,
            event.path,
            tree.file_count,
            tree.directory_count,
            tree.total_size,
            event.skipped,
            event.at,
        )
    )


RESTORED = tag_of(TreeRestored)

# The events that change external files, and those that change the session's own.
OUTSIDE = EventFilter("filesystem")
OWN = EventFilter("filesystem", is_set=False)


def _of_own(reducer: Callable[[Any, Any], Any]) -> WholeSlice:
    """Limit a reducer to the events of the session's own files."""
    return WholeSlice(reaction(reducer), concerns=OWN)


def _of_tree(reducer: Callable[[FileTree, Any], FileTree]) -> WholeSlice:
    """Let a reducer start from the empty tree if the slice was cleared."""

    def react(values: Log[FileTree], event: Any) -> Log[FileTree]:
        before = values.last()
        after = reducer(before or EMPTY_TREE, event)
        return values if after is before else values.replace_last(after)

    return WholeSlice(react, concerns=OWN)


def _folded(values: Log[FileTree] | PackedValue, events: Sequence[Folded]) -> Log[FileTree]:
    """Apply many events at once; only replays do."""
    from weakfs.reducers.batch_apply import folded

    return folded(values, events)


def _files_at(now: Log[FileTree], then: Log[FileTree], paths: Sequence[str] | None) -> Log[FileTree]:
    """Return the files `now`, except that those at `paths`, or all of them, are as they were `then`."""
    if paths is None:
        return then
    before = now.last() or EMPTY_TREE
    after = with_paths(before, then.last() or EMPTY_TREE, paths)
    return now if after is before else now.replace_last(after)


def _merge_files(sides: Sides) -> Log[FileTree]:
    # Imported here because it takes as long as a dozen events, and most processes never merge.
    from weakfs.reducers.merging.file_merge import merge_files

    return merge_files(sides)


def _same_files(one: Log[FileTree], other: Log[FileTree]) -> bool:
    from weakfs.reducers.merging.file_merge import same_files

    return same_files(one, other)


def _with_files(now: Log[Any], then: Log[Any], paths: Sequence[str] | None) -> Log[Any]:
    """Return `then` if all files go back. If only some do, what is known of the lower layer stays as it is."""
    return then if paths is None else now


def _changed_outside(tag: str, values: tuple[Any, ...]) -> str | None:
    """Return the external filesystem that an event changes."""
    return values[-1] if tag in CHANGING or tag == RESTORED else None


SLICES = (
    Declaration(
        FileTree,
        initial=EMPTY_TREE,
        merge=StateMerge(_merge_files),
        reducers={event: _of_tree(reducer) for event, reducer in REDUCERS.items()},
        fold=_folded,
        go_back=_files_at,
        equal=_same_files,
    ),
    Declaration(MountReport, merge=merge_appended, reducers={TreeMounted: WholeSlice(on_tree_mounted)}),
    Declaration(
        ExternalTrees,
        initial=NO_TREES,
        merge=merge_external,
        reducers={
            event: WholeSlice(partial(on_external, reducer), concerns=OUTSIDE) for event, reducer in REDUCERS.items()
        },
        is_safe=True,
        # External files are restored by events of their own.
        go_back=stay,
        outside=_changed_outside,
    ),
    Declaration(
        LowerFound,
        initial=NOTHING_FOUND,
        merge=merge_found,
        reducers={EntryFound: _of_own(on_found), LayerEmptied: _of_own(on_emptied)},
        is_safe=True,
        go_back=_with_files,
        is_observed=True,
    ),
    Declaration(
        LowerEntry,
        merge=WholeMerge(merge_entries),
        reducers={
            LowerEntry: WholeSlice(entry_read),
            EntryHidden: WholeSlice(entry_hidden, concerns=OWN),
            LayerEmptied: WholeSlice(entries_forgotten, concerns=OWN),
        },
        is_safe=True,
        go_back=_with_files,
        is_observed=True,
    ),
    Declaration(ExternalFsSnapshot, kind="log", reducers={ExternalFsSnapshot: append_all}),
)
