"""Streams: a journal with its lock, checkpoints and lease; trimming, checking and repairing it."""
