"""Making the calls of a transcript one after another, and counting how they went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, cast

from attrs import define, field

from weakfs.cli.output import progress
from weakfs.filesystem import Filesystem
from weakfs.session import Session
from weakfs.tools import Tool, ToolResult, Toolset
from weakfs.transcripts import OpenTranscript, RecordedClock, TranscriptCall
from weakfs.transcripts.comparison import RECORDED_FAILURE, Importer, Verdict, record_failure

# After how many calls the history goes that is not kept.
FORGOTTEN_AFTER = 100
# What a call that is not made counts as among the statuses, unless it failed in the recording.
NOT_PERFORMED = "not_performed"


@define
class Outcome:
    """How it went: calls by status, what could not be read, and calls that ended in a fault of ours.

    `failed` counts calls that failed and were rolled back, and `unexpected` those of them that no recording says
    failed. Of calls that were compared with a recording, `agreements` counts them by how they agree, `checked` by how
    that is known, and `passed` those of tools that have no counterpart by name. `commands` counts shell commands.
    """

    statuses: Counter[str] = field(factory=Counter[str])
    failed: int = 0
    unexpected: int = 0
    unread: int = 0
    broken: int = 0
    commands: int = 0
    interrupted: bool = False
    agreements: Counter[str] = field(factory=Counter[str])
    checked: Counter[str] = field(factory=Counter[str])
    passed: Counter[str] = field(factory=Counter[str])

    @property
    def differing(self) -> int:
        """How many calls did not do what is recorded."""
        return self.agreements["differs"]


class Told(Protocol):
    """Is told of each call when it was made."""

    def called(self, number: int, call: TranscriptCall, result: ToolResult[object]) -> None: ...
    def compared(self, number: int, call: TranscriptCall, verdict: Verdict) -> None: ...
    def broke(self, number: int, call: TranscriptCall, error: Exception) -> None: ...


@define
class Performer:
    """Makes the calls of a transcript: those of another program's own files are imported, others made as they are."""

    toolset: Toolset
    importer: Importer
    outcome: Outcome
    clock: RecordedClock
    keeps_history: bool

    @classmethod
    def over(
        cls,
        session: Session,
        files: Filesystem,
        tools: tuple[Tool, ...],
        outcome: Outcome,
        clock: RecordedClock,
        *,
        keeps_history: bool,
    ) -> Performer:
        """Make one that works on files of a session; a history that nobody is going to see need not be kept."""
        toolset, importer = Toolset(session, files, tools=tools), Importer.over(session, files, tools, clock)
        return cls(toolset, importer, outcome, clock, keeps_history)

    def prepare(self, transcript: OpenTranscript, *, with_bar: bool) -> None:
        """Look through all calls, and make the files what they were before the first, as far as that is recorded."""
        with progress("looking through calls", total=len(transcript), wanted=with_bar) as advance:
            self.importer.prepare(_counted(transcript, advance))

    def perform_all(self, transcript: OpenTranscript, told: Told, *, with_bar: bool) -> None:
        """Make every call in turn. One that ends in a fault of a program is told, counted, and the next one made."""
        with progress("performing calls", total=len(transcript), wanted=with_bar) as advance:
            for number, call in enumerate(transcript, 1):
                try:
                    self._perform(number, call, told)
                except KeyboardInterrupt:
                    # The call that was running is rolled back like one that failed.
                    self.outcome.interrupted = True
                    return
                except Exception as error:
                    told.broke(number, call, error)
                    self.outcome.broken += 1
                    self.outcome.statuses["broken"] += 1
                advance()

    def _perform(self, number: int, call: TranscriptCall, told: Told) -> None:
        if call.source is not None:
            verdict = self.importer.perform(call)
            told.compared(number, call, verdict)
            self._count(call, verdict)
            if not self.keeps_history and number % FORGOTTEN_AFTER == 0:
                # A long recording has a whole file in each of its lines.
                self.toolset.session.compact(keep=0)
            return
        self.clock.start(call)
        if call.recorded_error and call.tool not in {tool.name for tool in self.toolset.tools}:
            told.called(number, call, record_failure(self.toolset.session, call))
            self.outcome.statuses[RECORDED_FAILURE] += 1
            self.outcome.failed += 1
            return
        # One whose arguments could not be read has none, which the toolset refuses and records.
        result = self.toolset.call(call.tool, cast("Mapping[str, object]", call.arguments), call_id=call.call_id)
        told.called(number, call, result)
        self.outcome.commands += call.tool == "shell"
        self.outcome.failed += not result.success
        self.outcome.unexpected += not result.success
        self.outcome.statuses[result.status] += 1

    def _count(self, call: TranscriptCall, verdict: Verdict) -> None:
        result, outcome = verdict.result, self.outcome
        is_failure = verdict.recorded_success is False
        not_performed = RECORDED_FAILURE if is_failure else NOT_PERFORMED
        outcome.statuses[not_performed if result is None else result.status] += 1
        outcome.failed += result is not None and not result.success
        outcome.commands += verdict.tool == "shell"
        outcome.agreements[verdict.agreement] += 1
        if verdict.agreement == "no_counterpart":
            outcome.passed[call.tool] += 1
        else:
            outcome.checked[verdict.checked] += 1


def _counted(calls: Iterable[TranscriptCall], advance: Callable[[], None]) -> Iterator[TranscriptCall]:
    for call in calls:
        yield call
        advance()
