"""Reading a session's history: its calls, timeline, blame, SQL queries, its export as git commits, and forgetting."""

from weakfs.history.blame.lines import BlameLine
from weakfs.history.forgetting.forget import Forgetting, forget
from weakfs.history.git_export import ExportRefused, ExportReport, export_git
from weakfs.history.sql import QueryResult, run_query
from weakfs.history.timeline import ChangedFile, TimelineRow, timeline

__all__ = [
    "BlameLine",
    "ChangedFile",
    "ExportRefused",
    "ExportReport",
    "Forgetting",
    "QueryResult",
    "TimelineRow",
    "export_git",
    "forget",
    "run_query",
    "timeline",
]
