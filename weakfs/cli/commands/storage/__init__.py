"""Subcommands for stored sessions: copying, deleting, forgetting and pruning."""
