"""Reading a session's history: calls, timeline, blame, SQL queries and export to git; retention and forgetting."""

from weakfs.history.blame.lines import BlameLine
from weakfs.history.forgetting.forget import Forgetting, forget
from weakfs.history.git_export import ExportRefused, ExportReport, export_git
from weakfs.history.retention.policy import Holder, PruneReport, Retention
from weakfs.history.retention.pruning import prune
from weakfs.history.sql import QueryResult, run_query
from weakfs.history.timeline import ChangedFile, TimelineRow, timeline

__all__ = [
    "BlameLine",
    "ChangedFile",
    "ExportRefused",
    "ExportReport",
    "Forgetting",
    "Holder",
    "PruneReport",
    "QueryResult",
    "Retention",
    "TimelineRow",
    "export_git",
    "forget",
    "prune",
    "run_query",
    "timeline",
]
