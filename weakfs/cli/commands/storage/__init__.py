"""Subcommands for stored sessions: copies between locations, deletion, forgetting and pruning."""
