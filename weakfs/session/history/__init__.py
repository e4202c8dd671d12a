"""The history of a session: timeline, records, keyframes, merges and replay."""
