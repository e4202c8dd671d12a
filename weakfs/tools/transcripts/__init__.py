"""Recorded agent sessions: read the tool calls of a JSONL transcript, whatever program wrote it.

One file here reads one format, `_formats` knows which line is whose, and `_reader` joins answers to calls.
A new format is a function from one decoded line to what is in it, and one row in the table of `_formats`.
"""

from ._reader import read_transcript
from ._records import Skipped, Transcript, TranscriptCall

__all__ = ["Skipped", "Transcript", "TranscriptCall", "read_transcript"]
