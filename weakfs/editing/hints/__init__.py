"""Hints for refused edits: the cause, the nearest lines, the first difference."""
