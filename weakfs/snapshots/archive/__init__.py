"""Tar archives: writing, reading and storing trees as one."""
