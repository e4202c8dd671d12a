"""Subcommands for directories of the host: their snapshots, and containers."""
