"""Tar archives: writing a tree as an archive, reading it back, and storing it."""
