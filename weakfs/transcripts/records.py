"""What is found in a transcript. All of it is frozen, and `line` always counts from 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import attrs


@attrs.frozen
class Source:
    """Which program made a call, and where: `root` is the session's directory, `cwd` the one at that moment.

    Both are paths of the machine that recorded it, None where nothing is recorded. `directories` are all others that
    the session was in at any time, `worktrees` those in which it had `git worktree add` make a working tree.
    """

    program: Literal["claude-code", "codex", "copilot"]
    root: str | None = None
    cwd: str | None = None
    directories: tuple[str, ...] = ()
    worktrees: tuple[str, ...] = ()


@attrs.frozen
class TranscriptCall:
    """One recorded tool call, with its recorded answer if the transcript holds one.

    `call_id` is None where the transcript gives no usable id, and need not be unique: some programs count
    from 1 in every message. `arguments` is None exactly if `problem` says why they could not be read.
    `recorded` is the text of the answer, pictures and the like left out. `recorded_error` is None where there
    is no answer, or the format does not say whether a call failed (OpenAI's does not).

    Of calls that a program made whose own files these are, `source` says which and where, and `result` is what it wrote
    beside the answer, as it wrote it: Claude Code's `toolUseResult`, the payload of Codex's event, or Copilot's
    `result` or `error`. `file` is the transcript, where several were opened together.

    `made_at` and `answered_at` are nanoseconds since 1970. A line without a time has that of the last line above that
    has one; None where there is no such line, or no answer.
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
        """Whether the transcript says anything of what came of it."""
        return self.recorded is not None or self.recorded_error is not None or self.result is not None


@attrs.frozen
class Skipped:
    """A line, or the part of one that `reason` names, that was passed over because it cannot be read.

    `file` is the transcript, where several were opened together.
    """

    line: int
    reason: str
    file: str = ""


@attrs.frozen
class Transcript:
    """All calls in the order in which they were made, and what was passed over, in the order of its lines.

    `formats` are the names of the formats in which calls were found, sorted; `line_count` counts every line,
    blank ones too, `known_count` those of a known format, whether or not they hold a call, and `repeated_count`
    those that were there before, which resumed sessions have.
    """

    calls: tuple[TranscriptCall, ...]
    skipped: tuple[Skipped, ...]
    formats: tuple[str, ...]
    line_count: int
    known_count: int = 0
    repeated_count: int = 0


@attrs.frozen
class Answer:
    """An answer on its way to the call with that id; `text` is None where its content could not be read.

    `result` is what stands beside it. With `is_event` it is no answer of its own but tells more of one.
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
