"""File events and the immutable tree they are reduced into; digest, diff and merge. Pure: no I/O, no clock.

Names are imported from their modules when they are first used: a new process uses few of them.
"""

if __name__ != "weakfs.reducers":  # pragma: no cover  # reached only in a separate process
    raise ImportError("cannot import the link 'reducers' at the top of the repository; import weakfs.reducers instead")


from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.reducers.apply import reduce
    from weakfs.reducers.events import (
        DirectoryMade,
        EntryCopied,
        EntryDeleted,
        EntryFound,
        EntryHidden,
        EntryMoved,
        EntryPut,
        Event,
        ExternalFsSnapshot,
        FileAppended,
        FileSpliced,
        FileWritten,
        LayerEmptied,
        LinkMade,
        LowerEntry,
        ModeChanged,
        TreeMounted,
        TreeRestored,
        TreeSeen,
    )
    from weakfs.reducers.external_trees import ExternalTree, ExternalTrees
    from weakfs.reducers.merging.tree_merge import merge
    from weakfs.reducers.mount_points import FilesystemMounted
    from weakfs.reducers.remembered_lower_layer import LowerFound
    from weakfs.reducers.slices import MountReport
    from weakfs.reducers.tree.diff import TreeDiff, diff
    from weakfs.reducers.tree.leaf import Leaf, content_of, file, link
    from weakfs.reducers.tree.node import FileTree, Node, Segments, find, height, tree_of

__all__ = [
    "DirectoryMade",
    "EntryCopied",
    "EntryDeleted",
    "EntryFound",
    "EntryHidden",
    "EntryMoved",
    "EntryPut",
    "Event",
    "ExternalFsSnapshot",
    "ExternalTree",
    "ExternalTrees",
    "FileAppended",
    "FileSpliced",
    "FileTree",
    "FileWritten",
    "FilesystemMounted",
    "LayerEmptied",
    "Leaf",
    "LinkMade",
    "LowerEntry",
    "LowerFound",
    "ModeChanged",
    "MountReport",
    "Node",
    "Segments",
    "TreeDiff",
    "TreeMounted",
    "TreeRestored",
    "TreeSeen",
    "content_of",
    "diff",
    "file",
    "find",
    "height",
    "link",
    "merge",
    "reduce",
    "tree_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "apply": "reduce",
        "events": (
            "DirectoryMade EntryCopied EntryDeleted EntryFound EntryHidden EntryMoved EntryPut Event "
            "ExternalFsSnapshot FileAppended FileSpliced FileWritten LayerEmptied LinkMade LowerEntry ModeChanged "
            "TreeMounted TreeRestored TreeSeen"
        ),
        "external_trees": "ExternalTree ExternalTrees",
        "remembered_lower_layer": "LowerFound",
        "merging.tree_merge": "merge",
        "mount_points": "FilesystemMounted",
        "slices": "MountReport",
        "tree.diff": "TreeDiff diff",
        "tree.leaf": "Leaf content_of file link",
        "tree.node": "FileTree Node Segments find height tree_of",
    },
)
