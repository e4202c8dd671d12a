"""What is found in a transcript. All of it is frozen, and `line` always counts from 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import attrs


@attrs.frozen
class TranscriptCall:
    """One recorded tool call, with its recorded answer if the transcript holds one.

    `call_id` is None where the transcript gives no usable id, and need not be unique: some programs count
    from 1 in every message. `arguments` is None exactly if `problem` says why they could not be read.
    `recorded` is the text of the answer, pictures and the like left out. `recorded_error` is None where there
    is no answer, or the format does not say whether a call failed (only Anthropic's does).
    """

    call_id: str | None
    tool: str
    arguments: dict[str, object] | None
    line: int
    recorded: str | None = None
    recorded_error: bool | None = None
    problem: str | None = None


@attrs.frozen
class Skipped:
    """A line, or the part of one that `reason` names, that was passed over because it cannot be read."""

    line: int
    reason: str


@attrs.frozen
class Transcript:
    """All calls in the order in which they were made, and what was passed over, in the order of its lines.

    `formats` are the names of the formats in which calls were found, sorted; `line_count` counts every line,
    blank ones too.
    """

    calls: tuple[TranscriptCall, ...]
    skipped: tuple[Skipped, ...]
    formats: tuple[str, ...]
    line_count: int


@attrs.frozen
class Answer:
    """An answer on its way to the call with that id; `text` is None where its content could not be read."""

    call_id: str
    text: str | None
    is_error: bool | None
    line: int


Message: TypeAlias = dict[str, object]
Found: TypeAlias = TranscriptCall | Answer | Skipped
LineReader: TypeAlias = Callable[[Message, int], Iterator[Found]]
