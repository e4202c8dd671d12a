"""The history of a session: timeline, records, checkpoints, merges and replay."""
