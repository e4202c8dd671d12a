"""Blame: which record, and which call, put in each line of a file."""
