"""Sessions: events reduced into immutable slices, with snapshots, rollback, transactions, forks and files.

Generic: nothing here knows of filesystems.
"""

from weakfs.session.cancelling import Cancellation
from weakfs.session.delivery import Bus
from weakfs.session.errors import (
    MergeConflict,
    MissingBlob,
    RollbackIncomplete,
    SessionClosed,
    SessionError,
    SessionFileError,
    TransactionCancelled,
    UnknownSnapshot,
    UnknownTag,
    UnknownType,
    UnsupportedVersion,
)
from weakfs.session.events import (
    Merged,
    Record,
    RolledBack,
    SliceAppended,
    SliceCleared,
    SliceSeeded,
)
from weakfs.session.externals import External, Journal
from weakfs.session.log import Log
from weakfs.session.registry import Registry, tagged
from weakfs.session.session import Session
from weakfs.session.slices import (
    Conflict,
    Slice,
    SliceView,
    append_all,
    merge_appended,
    reducer,
    replace_latest,
    replace_latest_by,
    upsert_by,
)
from weakfs.session.views import Missing, Records, SaveReport, SessionSnapshot, SessionView

__all__ = [
    "Bus",
    "Cancellation",
    "Conflict",
    "External",
    "Journal",
    "Log",
    "MergeConflict",
    "Merged",
    "Missing",
    "MissingBlob",
    "Record",
    "Records",
    "Registry",
    "RollbackIncomplete",
    "RolledBack",
    "SaveReport",
    "Session",
    "SessionClosed",
    "SessionError",
    "SessionFileError",
    "SessionSnapshot",
    "SessionView",
    "Slice",
    "SliceAppended",
    "SliceCleared",
    "SliceSeeded",
    "SliceView",
    "TransactionCancelled",
    "UnknownSnapshot",
    "UnknownTag",
    "UnknownType",
    "UnsupportedVersion",
    "append_all",
    "merge_appended",
    "reducer",
    "replace_latest",
    "replace_latest_by",
    "tagged",
    "upsert_by",
]
