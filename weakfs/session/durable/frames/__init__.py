"""Frames: the changes of a session as JSON, one frame for each commit."""
