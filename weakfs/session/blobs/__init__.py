"""Blobs: file contents in memory, in a store or beside a session file."""
