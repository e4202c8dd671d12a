"""Subcommands that exchange histories with git."""
