"""Blame: the record and the call that put each line into a file."""
