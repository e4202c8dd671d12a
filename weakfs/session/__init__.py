"""Sessions: events reduced into immutable slices, with snapshots, rollback, transactions, forks and files.

This package is generic: it knows nothing of filesystems.

Names are imported from their modules when they are first used: a new process uses few of them.
"""

if __name__ != "weakfs.session":  # pragma: no cover  # reached only in a separate process
    raise ImportError("cannot import the link 'session' at the top of the repository; import weakfs.session instead")


from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.session.blobs.blob import ContentSource, Stored
    from weakfs.session.blobs.rope import Content, Rope
    from weakfs.session.conflicts.conflict_types import (
        Choice,
        ConflictEntry,
        ConflictHunk,
        ConflictKind,
        MergedPath,
        MergeReport,
        OnConflict,
        Resolution,
    )
    from weakfs.session.errors import (
        MergeConflict,
        MissingBlob,
        RollbackIncomplete,
        SessionClosed,
        SessionConflict,
        SessionError,
        SessionFileError,
        TransactionCancelled,
        UnknownSnapshot,
        UnknownTag,
        UnknownType,
        UnsupportedVersion,
    )
    from weakfs.session.external_filesystems import Attachable, External, Journal
    from weakfs.session.history.views import Missing, Records, SaveReport, SessionSnapshot, SessionView
    from weakfs.session.merging.resolver import Resolver
    from weakfs.session.merging.sides import BranchHistory, Sides
    from weakfs.session.session import Session
    from weakfs.session.slices.events import (
        Merged,
        Record,
        Reverted,
        RolledBack,
        SliceAppended,
        SliceCleared,
        SliceSeeded,
    )
    from weakfs.session.slices.log import Log
    from weakfs.session.slices.packed_state import Counted, Packable, PackedValue
    from weakfs.session.slices.slice import (
        Conflict,
        Declaration,
        EventFilter,
        Slice,
        SliceSpec,
        SliceView,
        StateMerge,
        WholeMerge,
        WholeSlice,
        append_all,
        merge_appended,
        reducer,
        replace_latest,
        replace_latest_by,
        upsert_by,
    )
    from weakfs.session.slices.table import Table
    from weakfs.session.slices.tags import event
    from weakfs.session.slices.type_registry import Registry, Shape
    from weakfs.session.subscriptions import Bus
    from weakfs.session.transactions.block import TransactionBlock
    from weakfs.session.transactions.cancellation import Cancellation
    from weakfs.session.undo.reversion import Reversion

__all__ = [
    "Attachable",
    "BranchHistory",
    "Bus",
    "Cancellation",
    "Choice",
    "Conflict",
    "ConflictEntry",
    "ConflictHunk",
    "ConflictKind",
    "Content",
    "ContentSource",
    "Counted",
    "Declaration",
    "EventFilter",
    "External",
    "Journal",
    "Log",
    "MergeConflict",
    "MergeReport",
    "Merged",
    "MergedPath",
    "Missing",
    "MissingBlob",
    "OnConflict",
    "Packable",
    "PackedValue",
    "Record",
    "Records",
    "Registry",
    "Resolution",
    "Resolver",
    "Reversion",
    "Reverted",
    "RollbackIncomplete",
    "RolledBack",
    "Rope",
    "SaveReport",
    "Session",
    "SessionClosed",
    "SessionConflict",
    "SessionError",
    "SessionFileError",
    "SessionSnapshot",
    "SessionView",
    "Shape",
    "Sides",
    "Slice",
    "SliceAppended",
    "SliceCleared",
    "SliceSeeded",
    "SliceSpec",
    "SliceView",
    "StateMerge",
    "Stored",
    "Table",
    "TransactionBlock",
    "TransactionCancelled",
    "UnknownSnapshot",
    "UnknownTag",
    "UnknownType",
    "UnsupportedVersion",
    "WholeMerge",
    "WholeSlice",
    "append_all",
    "event",
    "merge_appended",
    "reducer",
    "replace_latest",
    "replace_latest_by",
    "upsert_by",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "blobs.blob": "ContentSource Stored",
        "blobs.rope": "Content Rope",
        "errors": (
            "MergeConflict MissingBlob RollbackIncomplete SessionClosed SessionConflict SessionError SessionFileError "
            "TransactionCancelled UnknownSnapshot UnknownTag UnknownType UnsupportedVersion"
        ),
        "external_filesystems": "Attachable External Journal",
        "conflicts.conflict_types": (
            "Choice ConflictEntry ConflictHunk ConflictKind MergedPath MergeReport OnConflict Resolution"
        ),
        "merging.resolver": "Resolver",
        "merging.sides": "BranchHistory Sides",
        "session": "Session",
        "slices.events": "Merged Record Reverted RolledBack SliceAppended SliceCleared SliceSeeded",
        "slices.log": "Log",
        "slices.packed_state": "Counted Packable PackedValue",
        "slices.slice": (
            "Conflict Declaration EventFilter Slice SliceSpec SliceView StateMerge WholeMerge WholeSlice append_all "
            "merge_appended reducer replace_latest replace_latest_by upsert_by"
        ),
        "slices.table": "Table",
        "slices.tags": "event",
        "slices.type_registry": "Registry Shape",
        "subscriptions": "Bus",
        "transactions.block": "TransactionBlock",
        "transactions.cancellation": "Cancellation",
        "undo.reversion": "Reversion",
        "history.views": "Missing Records SaveReport SessionView SessionSnapshot",
    },
)
