"""What a session's history tells: its calls, its files at any moment, blame, answers in SQL, and git commits."""

from weakfs.history.blame.lines import BlameLine
from weakfs.history.git_export import ExportRefused, ExportReport, export_git
from weakfs.history.sql import QueryResult, run_query

__all__ = ["BlameLine", "ExportRefused", "ExportReport", "QueryResult", "export_git", "run_query"]
