"""Subcommands that read, compare, replay and undo the records of a session."""
