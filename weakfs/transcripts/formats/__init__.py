"""The transcript formats of other programs."""
