"""Commits of a durable session to its event stream: their operations, their order, and their outcome."""
