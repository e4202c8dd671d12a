"""Recorded agent sessions: the tool calls of a JSONL transcript, whatever program wrote it.

Each module of `formats` reads one format, `formats.detection` determines the format of a line, and `reader` joins
answers to calls. A new format is a function from a decoded line to its calls and answers, and a row in the table of
`formats.detection`.
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
