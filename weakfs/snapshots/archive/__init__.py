"""Tar archives: a tree written as an archive, read back, and kept in a store."""
