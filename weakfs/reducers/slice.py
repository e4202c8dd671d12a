"""The slices that hold files: value, reducers and merge of each, for a session's registry."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from weakfs.reducers.apply import REDUCERS
from weakfs.reducers.events import TreeMounted
from weakfs.reducers.external_snapshots import ExternalFsSnapshot
from weakfs.reducers.external_trees import NO_TREES, ExternalTrees, merge_external, on_external
from weakfs.reducers.merge import merge
from weakfs.reducers.mounts import MountReport, on_tree_mounted
from weakfs.reducers.tree import EMPTY_TREE, FileTree
from weakfs.session.slices import Declaration, WholeSlice, append_all, merge_appended


def _reduced(reducer: Callable[[FileTree, Any], FileTree], tree: FileTree | None, event: Any) -> FileTree | None:
    """Reduce what happened to the session's own files, from the empty tree where somebody cleared the slice."""
    if event.filesystem is not None:
        return tree
    return reducer(EMPTY_TREE if tree is None else tree, event)


SLICES = (
    Declaration(
        FileTree,
        initial=EMPTY_TREE,
        merge=merge,
        reducers={event: partial(_reduced, reducer) for event, reducer in REDUCERS.items()},
    ),
    Declaration(MountReport, merge=merge_appended, reducers={TreeMounted: WholeSlice(on_tree_mounted)}),
    Declaration(
        ExternalTrees,
        initial=NO_TREES,
        merge=merge_external,
        reducers={
            event: WholeSlice(partial(on_external, reducer), concerns=attrgetter("filesystem"))
            for event, reducer in REDUCERS.items()
        },
    ),
    Declaration(ExternalFsSnapshot, kind="log", reducers={ExternalFsSnapshot: append_all}),
)
