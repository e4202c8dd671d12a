"""Subcommands for snapshots of host directories, and for containers."""
