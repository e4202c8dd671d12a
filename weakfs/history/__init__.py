"""Reading a session's history: its calls, timeline, blame, SQL queries, and its export as git commits."""

from weakfs.history.blame.lines import BlameLine
from weakfs.history.git_export import ExportRefused, ExportReport, export_git
from weakfs.history.sql import QueryResult, run_query
from weakfs.history.timeline import ChangedFile, TimelineRow, timeline

__all__ = [
    "BlameLine",
    "ChangedFile",
    "ExportRefused",
    "ExportReport",
    "QueryResult",
    "TimelineRow",
    "export_git",
    "run_query",
    "timeline",
]
