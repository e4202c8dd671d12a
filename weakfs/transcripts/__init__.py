"""Recorded agent sessions: the tool calls of a JSONL transcript, whatever program wrote it.

Each module of `formats` reads one format, `formats.detection` determines the format of a line, and `reader` joins
answers to calls. A new format is a function from a decoded line to its calls and answers, and a row in the table of
`formats.detection`.

Names are imported from their modules when they are first used.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "reader": "OpenTranscript open_transcript read_transcript",
        "records": "Skipped Source Transcript TranscriptCall",
        "timestamps": "RecordedClock",
    },
)
