"""Checkpoints of a session in storage: documents of its state, and what they refer to."""
