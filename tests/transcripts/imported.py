"""Recorded sessions that were performed by our tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from tests.transcripts.claude_code_model import Line, as_jsonl
from weakfs import DEFAULT_TOOLS, InMemoryFilesystem, Session
from weakfs.transcripts import RecordedClock, open_transcript
from weakfs.transcripts.comparison import Importer, Verdict

TOOLS = tuple(tool for tool in DEFAULT_TOOLS if tool.name != "shell")


class Imported:
    """A session file after it was performed."""

    def __init__(self, path: Path, lines: Iterable[Line], before: dict[str, bytes] | None = None) -> None:
        path.write_bytes(as_jsonl([*lines]))
        clock = RecordedClock()
        self.session = Session(session_id="s", clock=clock)
        self.files = InMemoryFilesystem(self.session)
        for name, data in (before or {}).items():
            self.files.write_bytes(name, data)
        importer = Importer.over(self.session, self.files, TOOLS, clock)
        with open_transcript(path) as transcript:
            self.summary = transcript.summary
            clock.at = transcript.began_at
            importer.prepare(transcript)
            self.baseline = self.contents()
            self.verdicts: list[Verdict] = [importer.perform(call) for call in transcript]

    @property
    def agreements(self) -> list[tuple[str, str]]:
        return [(one.agreement, one.checked) for one in self.verdicts]

    def contents(self) -> dict[str, str]:
        return {entry.path: self.text(entry.path) for entry in self.files.walk() if entry.is_file}

    def text(self, path: str) -> str:
        return self.files.read_bytes(path).content.decode()


@frozen
class Import:
    """Performs the lines of a session file over files as they were before."""

    folder: Path

    def __call__(self, *lines: Line, before: dict[str, bytes] | None = None) -> Imported:
        return Imported(self.folder / "t", lines, before)
