"""Patch formats: V4A, unified diffs and SEARCH/REPLACE blocks."""
