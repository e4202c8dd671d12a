"""Running the calls of a transcript in order, and counting the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, cast

from attrs import field

from weakfs.class_decorators import define
from weakfs.cli.output import progress
from weakfs.filesystem import Filesystem
from weakfs.history.calls import CallCounter
from weakfs.session import Session
from weakfs.tools import DEFAULT_TOOLS, Tool, ToolResult, Toolset
from weakfs.transcripts import OpenTranscript, RecordedClock, TranscriptCall
from weakfs.transcripts.comparison import RECORDED_FAILURE, Importer, Verdict, record_failure

# A transcript may come from anywhere. Running it changes files, and runs its shell commands only if the user asks.
PERFORMED = tuple(tool for tool in DEFAULT_TOOLS if tool.name != "shell")
# History that need not be kept is dropped whenever this many calls have been made.
FORGOTTEN_AFTER = 100
# The status counted for a call that is not run, unless it failed in the recording.
NOT_PERFORMED = "not_performed"


@define
class Outcome:
    """The result of a run: calls by status, unreadable input, and calls that ended in an internal error.

    `failed` counts calls that failed and were rolled back, and `unexpected` those among them that did not fail in the
    recording. For calls compared with a recording, `agreements` counts them by agreement, `checked` by how they were
    checked, and `passed` counts calls of tools without a counterpart, by name. `commands` counts shell commands.
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
        """The number of calls whose result differs from the recording."""
        return self.agreements["differs"]


class CallListener(Protocol):
    """A listener that is called after each call, with its number in the session; a call that was not run has none."""

    def called(self, number: int | None, call: TranscriptCall, result: ToolResult[object]) -> None: ...
    def compared(self, number: int | None, call: TranscriptCall, verdict: Verdict) -> None: ...
    def broke(self, number: int | None, call: TranscriptCall, error: Exception) -> None: ...


@define
class Performer:
    """Runs the calls of a transcript: calls of another program's session files are imported, others run as given."""

    toolset: Toolset
    importer: Importer
    outcome: Outcome
    clock: RecordedClock
    counter: CallCounter
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
        """Return a performer that works on the files of a session; drop history that nobody will see."""
        toolset, importer = Toolset(session, files, tools=tools), Importer.over(session, files, tools, clock)
        return cls(toolset, importer, outcome, clock, CallCounter.of(session), keeps_history)

    def prepare(self, transcript: OpenTranscript, *, with_bar: bool) -> None:
        """Read all calls, and set up the files as they were before the first one, if recorded."""
        with progress("reading calls", total=len(transcript), wanted=with_bar) as advance:
            self.importer.prepare(_counted(transcript, advance))

    def perform_all(self, transcript: OpenTranscript, listener: CallListener, *, with_bar: bool) -> None:
        """Run every call in turn. If one ends in an internal error, report it, count it, and continue with the next."""
        with progress("performing calls", total=len(transcript), wanted=with_bar) as advance:
            for number, call in enumerate(transcript, 1):
                try:
                    self._perform(number, call, listener)
                except KeyboardInterrupt:
                    # The call that was running is rolled back like any failed call.
                    self.outcome.interrupted = True
                    return
                except Exception as error:
                    listener.broke(self.counter.number(), call, error)
                    self.outcome.broken += 1
                    self.outcome.statuses["broken"] += 1
                advance()

    def _perform(self, number: int, call: TranscriptCall, listener: CallListener) -> None:
        if call.source is not None:
            verdict = self.importer.perform(call)
            listener.compared(self.counter.number(), call, verdict)
            self._count(call, verdict)
            if not self.keeps_history and number % FORGOTTEN_AFTER == 0:
                # Each line of a long recording may contain a whole file.
                self.toolset.session.compact(keep=0)
            return
        self.clock.start(call)
        if call.recorded_error and call.tool not in {tool.name for tool in self.toolset.tools}:
            listener.called(self.counter.number(), call, record_failure(self.toolset.session, call))
            self.outcome.statuses[RECORDED_FAILURE] += 1
            self.outcome.failed += 1
            return
        # Unreadable arguments are passed as `None`, which the toolset refuses and records.
        result = self.toolset.call(call.tool, cast("Mapping[str, object]", call.arguments), call_id=call.call_id)
        listener.called(self.counter.number(), call, result)
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
