"""Reading a session's history: calls, timeline, blame, SQL queries, git export and import; retention and forgetting.

Names are imported from their modules when they are first used.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.history.blame.lines import BlameLine
    from weakfs.history.forgetting.forget import Forgetting, forget
    from weakfs.history.git_export.export import ExportReport, export_git
    from weakfs.history.git_export.repository import ExportRefused
    from weakfs.history.git_import.foreign_repository import ImportRefused
    from weakfs.history.git_import.import_git import ImportReport, import_git
    from weakfs.history.git_import.tree_changes import SkippedEntry
    from weakfs.history.retention.policy import Holder, PruneReport, Retention
    from weakfs.history.retention.prune import prune
    from weakfs.history.sql import QueryResult, run_query
    from weakfs.history.timeline_rows import ChangedFile, TimelineRow, timeline

__all__ = [
    "BlameLine",
    "ChangedFile",
    "ExportRefused",
    "ExportReport",
    "Forgetting",
    "Holder",
    "ImportRefused",
    "ImportReport",
    "PruneReport",
    "QueryResult",
    "Retention",
    "SkippedEntry",
    "TimelineRow",
    "export_git",
    "forget",
    "import_git",
    "prune",
    "run_query",
    "timeline",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "blame.lines": "BlameLine",
        "forgetting.forget": "Forgetting forget",
        "git_export.export": "ExportReport export_git",
        "git_export.repository": "ExportRefused",
        "git_import.import_git": "ImportReport import_git",
        "git_import.foreign_repository": "ImportRefused",
        "git_import.tree_changes": "SkippedEntry",
        "retention.policy": "Holder PruneReport Retention",
        "retention.prune": "prune",
        "sql": "QueryResult run_query",
        "timeline_rows": "ChangedFile TimelineRow timeline",
    },
)
