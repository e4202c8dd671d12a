"""What a session's history tells: its calls, the state around each record, its files at any moment, and questions."""

from weakfs.history.sql import QueryResult, run_query

__all__ = ["QueryResult", "run_query"]
