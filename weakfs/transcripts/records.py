"""The contents of a transcript as frozen classes. A `line` always counts from 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import attrs


@attrs.frozen
class Source:
    """The program that made a call, and its directories: `root` is the session's, `cwd` the current one at that time.

    Both are paths on the machine that recorded the session, `None` if not recorded. `directories` are all others that
    the session was in at any time, `worktrees` those created as working trees by its `git worktree add`.
    """

    program: Literal["claude-code", "codex", "copilot"]
    root: str | None = None
    cwd: str | None = None
    directories: tuple[str, ...] = ()
    worktrees: tuple[str, ...] = ()


@attrs.frozen
class TranscriptCall:
    """One recorded tool call, with its recorded answer if the transcript contains one.

    `call_id` is `None` if the transcript has no usable id, and need not be unique: some programs count from 1 in every
    message. `arguments` is `None` if and only if `problem` says why they could not be read. `recorded` is the text of
    the answer, without images and other media. `recorded_error` is `None` if there is no answer, or if the format does
    not say whether a call failed (OpenAI's does not).

    For calls from a program's own files, `source` says which program and where, and `result` is the data recorded
    with the answer, unchanged: Claude Code's `toolUseResult`, the payload of Codex's event, or Copilot's `result` or
    `error`. `file` is the transcript, if several were opened together.

    `made_at` and `answered_at` are nanoseconds since 1970. A line without a time has the time of the last line above
    it that has one; `None` if there is no such line, or no answer.
    """

    call_id: str | None
    tool: str
    arguments: dict[str, object] | None
    line: int
    recorded: str | None = None
    recorded_error: bool | None = None
    problem: str | None = None
    source: Source | None = None
    result: object = attrs.field(default=None, repr=False)
    file: str = ""
    made_at: int | None = None
    answered_at: int | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the transcript says anything about the result of the call."""
        return self.recorded is not None or self.recorded_error is not None or self.result is not None


@attrs.frozen
class Skipped:
    """A line, or the part of one that `reason` names, that was skipped because it cannot be read.

    `file` is the transcript, if several were opened together.
    """

    line: int
    reason: str
    file: str = ""


@attrs.frozen
class Transcript:
    """All calls in the order in which they were made, and the skipped lines in file order.

    `formats` are the names of the formats in which calls were found, sorted; `line_count` counts every line,
    including blank ones, `known_count` those of a known format, with or without a call, and `repeated_count` lines
    that occurred before, as in resumed sessions.
    """

    calls: tuple[TranscriptCall, ...]
    skipped: tuple[Skipped, ...]
    formats: tuple[str, ...]
    line_count: int
    known_count: int = 0
    repeated_count: int = 0


@attrs.frozen
class Answer:
    """An answer to be joined to the call with its id; `text` is `None` if its content could not be read.

    `result` is the data recorded with it. With `is_event`, it is not an answer itself but adds to one.
    """

    call_id: str
    text: str | None
    is_error: bool | None
    line: int
    result: object = None
    is_event: bool = False


Message: TypeAlias = dict[str, object]
Found: TypeAlias = TranscriptCall | Answer | Skipped
LineReader: TypeAlias = Callable[[Message, int], Iterator[Found]]
