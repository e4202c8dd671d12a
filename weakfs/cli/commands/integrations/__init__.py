"""Subcommands that run or install integrations with other programs."""
