"""Hints for edits that were refused: the cause, the nearest lines, the first difference."""
