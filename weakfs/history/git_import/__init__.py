"""Importing the history of a git repository: its objects, the lines of its commits, and their records."""
