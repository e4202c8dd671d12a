"""Blame: which record, and which call, put in each line of a file."""

from weakfs.history.blame.lines import BlameLine, Blames, HasId

__all__ = ["BlameLine", "Blames", "HasId"]
