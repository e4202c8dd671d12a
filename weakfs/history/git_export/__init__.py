"""Exporting a session to a git repository: its commits, their messages, and the refs that point to them."""
