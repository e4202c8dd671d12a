"""Streams: a journal with its lock, checkpoints and lease, and what trims, checks and repairs it."""
