"""The slices that hold files: value, reducers and merge of each, for a session's registry."""

from __future__ import annotations

from weakfs.reducers.apply import REDUCERS
from weakfs.reducers.events import TreeMounted
from weakfs.reducers.merge import merge
from weakfs.reducers.mounts import MountReport, on_tree_mounted
from weakfs.reducers.tree import EMPTY_TREE, FileTree
from weakfs.session.slices import Declaration, WholeSlice, merge_appended

SLICES = (
    Declaration(FileTree, initial=EMPTY_TREE, merge=merge, reducers=REDUCERS),
    Declaration(MountReport, merge=merge_appended, reducers={TreeMounted: WholeSlice(on_tree_mounted)}),
)
