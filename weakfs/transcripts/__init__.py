"""Recorded agent sessions: read the tool calls of a JSONL transcript, whatever program wrote it.

One file here reads one format, `_formats` knows which line is whose, and `_reader` joins answers to calls.
A new format is a function from one decoded line to what is in it, and one row in the table of `_formats`.
"""

from weakfs.transcripts.reader import OpenTranscript, open_transcript, read_transcript
from weakfs.transcripts.records import Skipped, Source, Transcript, TranscriptCall
from weakfs.transcripts.timestamps import RecordedClock

__all__ = [
    "OpenTranscript",
    "RecordedClock",
    "Skipped",
    "Source",
    "Transcript",
    "TranscriptCall",
    "open_transcript",
    "read_transcript",
]
