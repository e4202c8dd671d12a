"""Blobs: file contents in memory, in a store or in the sidecar directory of a session file."""
