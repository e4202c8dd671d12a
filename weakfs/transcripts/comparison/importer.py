"""The importer: run recorded calls with our tools on the recorded files, and compare the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs
from attrs import field

from weakfs.class_decorators import define
from weakfs.filesystem import Filesystem, normalize
from weakfs.session import Session
from weakfs.tools.results import ToolResult
from weakfs.tools.tool import Tool
from weakfs.tools.toolset import Toolset
from weakfs.transcripts import RecordedClock, TranscriptCall
from weakfs.transcripts.comparison.file_states import FileStates
from weakfs.transcripts.comparison.recorded_failures import failure_text, record_failure
from weakfs.transcripts.comparison.verdicts import Agreement, Checked, Comparison, Verdict
from weakfs.transcripts.programs import claude_code_tools, codex_tools, copilot_tools
from weakfs.transcripts.programs.dialects import DIALECT_TOOLS
from weakfs.transcripts.programs.program import Program
from weakfs.transcripts.programs.recorded_fields import OutsideRoot, Recorded
from weakfs.transcripts.programs.shell_commands import redirect_targets
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text, is_same
from weakfs.transcripts.reconstruction.reconstruction import Reconstruction
from weakfs.transcripts.reconstruction.recorded_calls import NoCounterpart, NotPerformed, Step, Texts

_PROGRAMS: Mapping[str, Program] = {
    "claude-code": claude_code_tools.PROGRAM,
    "codex": codex_tools.PROGRAM,
    "copilot": copilot_tools.PROGRAM,
}


@define
class Importer:
    """Runs recorded calls one after another in one session, each on the files as recorded.

    `prepare` first reads all calls for what they show of the files. `clock` is the session's clock, if the session
    takes its times from the recording.
    """

    toolset: Toolset
    world: FileStates
    clock: RecordedClock = field(factory=RecordedClock)
    _rebuilt: Reconstruction = field(factory=Reconstruction)
    _number: int = 0

    @classmethod
    def over(
        cls, session: Session, files: Filesystem, tools: tuple[Tool, ...], clock: RecordedClock | None = None
    ) -> Importer:
        """Return an importer that works on `files` with `tools`, some of them replaced by other programs' dialects."""
        own = {tool.name for tool in DIALECT_TOOLS}
        chosen = (*(tool for tool in tools if tool.name not in own), *DIALECT_TOOLS)
        toolset = Toolset(session, files, tools=chosen, refuse_stale_writes=False)
        return cls(toolset, FileStates(session, files), RecordedClock() if clock is None else clock)

    def prepare(self, calls: Iterable[TranscriptCall]) -> None:
        """Collect what the calls show of the files, and set up the files as they were at the start.

        The resulting records have the cause `IMPORT_CAUSE` and precede those of the first call.
        """
        number = 0
        for call in calls:
            if call.source is not None:
                number += 1
                self._collect(number, Recorded(call, call.source))
        self._rebuilt.finish()
        for path, text in sorted(self._rebuilt.baseline.items()):
            held = self.world.held(path)
            if is_same(held, text.text) or self.world.put(path, text.text):
                self.world.shown(path, is_doubtful=text.is_doubtful)
            if text.is_partial:
                self.world.lose([path])

    def _collect(self, number: int, recorded: Recorded) -> None:
        program = _PROGRAMS[recorded.source.program]
        try:
            step = program.step_of(recorded)
        except NotPerformed as error:
            self._rebuilt.collect_outcome(number, error.after)
            if error.runs_program:
                self._rebuilt.program_ran()
        except (ValueError, OSError):
            # Reported when the call itself is run.
            return
        else:
            if step.runs_program:
                self._rebuilt.program_ran()
                for path in _made_files(recorded, step):
                    self._rebuilt.made(path)
            self._rebuilt.collect(number, step)

    def perform(self, call: TranscriptCall) -> Verdict:
        """Run one call and compare the results; raise an exception only for a bug in a tool.

        A call that is not run and that failed in the recording is recorded as failed.
        """
        assert call.source is not None, "only calls of a program's own files are imported"
        self._number += 1
        self.clock.move(call)
        recorded = Recorded(call, call.source)
        verdict = self._performed(recorded)
        if verdict.recorded_success is None:
            verdict = attrs.evolve(verdict, recorded_success=_PROGRAMS[call.source.program].succeeded(recorded))
        if verdict.recorded_success is False:
            verdict = attrs.evolve(verdict, recorded_error=failure_text(call))
            if verdict.result is None:
                self.clock.start(call)
                record_failure(self.toolset.session, call)
        return verdict

    def _performed(self, recorded: Recorded) -> Verdict:
        try:
            step = _PROGRAMS[recorded.source.program].step_of(recorded)
        except NotPerformed as error:
            return self._passed(error)
        except (ValueError, OSError) as error:
            return Verdict("not_checked", detail=str(error))
        if step.runs_program:
            self.world.program_ran()
        if step.tool not in {tool.name for tool in self.toolset.tools}:
            return Verdict("no_counterpart", detail=f"{step.tool} is not run", tool=step.tool)
        try:
            verdict = self._perform(step, recorded.call)
        except _Unprepared as error:
            self.world.lose(step.before)
            return self._verdict(step, "not_checked", detail=str(error))
        self._take_shown(step)
        return verdict

    def _take_shown(self, step: Step) -> None:
        """Note the files that the recording of a call shows in full."""
        if step.succeeded is None:
            return
        for path, text in (step.after(step.before) if step.succeeded else step.before).items():
            if text is not UNKNOWN:
                self.world.shown(path)

    def _passed(self, error: NotPerformed) -> Verdict:
        self.world.settle(error.after)
        for path, text in error.after.items():
            if text is not UNKNOWN:
                self.world.shown(path)
        if error.runs_program:
            self.world.program_ran()
        if isinstance(error, OutsideRoot):
            return Verdict("outside", detail=str(error))
        return Verdict("no_counterpart" if isinstance(error, NoCounterpart) else "not_checked", detail=str(error))

    def _call(self, call: TranscriptCall, step: Step, arguments: dict[str, object]) -> ToolResult[object]:
        self.clock.start(call)
        return self.toolset.call(step.tool, arguments, call_id=call.call_id)

    def _perform(self, step: Step, call: TranscriptCall) -> Verdict:
        if step.needs is not None and not self.world.has(step.needs):
            raise _Unprepared("what it looked at is not recorded")
        before = self._before(step)
        wanted, checked = self._wanted(step, before)
        if checked == "not_at_all" and not step.unchecked:
            verdict = self._perform_on_skeletons(step, before, call) if step.succeeded else None
            if verdict is not None:
                return verdict
            if step.tool != "read_file":
                self.world.settle(wanted)
            when = "before" if UNKNOWN in before.values() else "after the call"
            return self._verdict(step, "not_checked", detail=f"what the file held {when} is not recorded")
        self._prepare(step, before, wanted)
        arguments = step.arguments
        if step.succeeded and step.arguments_for is not None:
            arguments = step.arguments_for(before)
        try:
            result = self._call(call, step, arguments)
        except Exception:
            self.world.settle(wanted)
            raise
        verdict = Comparison(self.world, step, result, arguments, wanted, checked).verdict()
        if step.succeeded is None or (step.is_silent and result.success):
            # The best evidence of the current contents is our own result.
            wanted = {path: text for path, text in wanted.items() if text is not UNKNOWN and result.success}
        self.world.settle(wanted)
        return verdict

    def _before(self, step: Step) -> Texts:
        """Return the contents of the files of a call, from its own recording or from earlier ones."""
        is_read, may_be_absent = step.shown is not None, step.succeeded is False
        before: dict[str, Text] = {}
        for path, recorded in step.before.items():
            self._use_rebuilt(path)
            held = self.world.text(path)
            if step.part is not None and held is UNKNOWN:
                self.world.learn(path, step.part)
                held = self.world.text(path)
            before[path] = _known(held, recorded, is_read=is_read, may_be_absent=may_be_absent)
        return before

    def _use_rebuilt(self, path: str) -> None:
        """Write the contents that the recording shows later, if nothing better is known of the file now."""
        found = self._rebuilt.later.pop((self._number, path), None)
        if found is None:
            return
        is_known = self.world.text(path) is not UNKNOWN
        if is_known and (found.is_doubtful or not self.world.is_doubtful(path)):
            return
        if is_same(self.world.text(path), found.text) or self.world.put(path, found.text):
            self.world.shown(path, is_doubtful=found.is_doubtful)

    def _prepare(self, step: Step, before: Texts, wanted: Texts) -> None:
        """Set up the files as they were before a call; raise `_Unprepared` if that is impossible."""
        for path, text in before.items():
            if step.before[path] is UNKNOWN or self.world.text(path) == text:
                continue
            if not self.world.put(path, text):
                raise _Unprepared(f"the earlier state of {path!r} cannot be restored: {self.world.refusal}")
        for path, text in wanted.items():
            if step.succeeded and isinstance(text, str) and not self.world.make_way(path):
                raise _Unprepared(f"the earlier state of {path!r} cannot be restored: {self.world.refusal}")

    def _perform_on_skeletons(self, step: Step, before: Texts, call: TranscriptCall) -> Verdict | None:
        """Run a change on the parts of the files that its own recording shows; `None` if those are not enough."""
        found = {path: step.skeletons[path] for path in before if path in step.skeletons}
        if not found:
            return None
        shown: dict[str, Text] = {**before, **{path: one.text for path, one in found.items()}}
        wanted = step.after(shown)
        if UNKNOWN in wanted.values() or UNKNOWN in shown.values():
            return None
        earlier = {path: self.world.held(path) for path in (*shown, *wanted)}
        verdict = None
        if all(self.world.held(path) == text or self.world.put(path, text) for path, text in shown.items()):
            arguments = step.arguments if step.arguments_for is None else step.arguments_for(shown)
            result = self._call(call, step, arguments)
            verdict = Comparison(self.world, step, result, arguments, wanted, "rebuilt").verdict()
        if verdict is None or verdict.agreement != "agreed" or not all(one.is_gapless for one in found.values()):
            # Remove the lines that were made up.
            self.world.settle({path: text for path, text in earlier.items() if text is not UNKNOWN})
        # The files may have had more contents than shown.
        self.world.settle(step.after(step.before))
        if verdict is None or verdict.agreement != "agreed":
            return None
        return attrs.evolve(verdict, detail="from the lines that the recording of the change shows")

    def _wanted(self, step: Step, before: Texts) -> tuple[Texts, Checked]:
        """Return the expected contents of the files after the call, and how they are known."""
        if step.succeeded is False:
            is_known = UNKNOWN not in before.values()
            is_recorded = UNKNOWN not in step.before.values()
            return before, "exactly" if is_recorded else "rebuilt" if is_known else "not_at_all"
        wanted = step.after(before)
        if UNKNOWN not in step.after(step.before).values() and step.is_before_exact:
            return wanted, "exactly"
        if UNKNOWN not in wanted.values():
            return wanted, "rebuilt"
        # If the recording says nothing about the files after the call, its answer can still be compared.
        return wanted, "rebuilt" if step.is_silent and UNKNOWN not in before.values() else "not_at_all"

    def _verdict(self, step: Step, agreement: Agreement, detail: str) -> Verdict:
        return Verdict(
            agreement,
            detail=detail,
            recorded_success=step.succeeded,
            tool=step.tool,
            arguments=step.arguments,
        )


def _made_files(recorded: Recorded, step: Step) -> Iterator[str]:
    command, where = step.arguments.get("command"), step.arguments.get("workdir")
    if not isinstance(command, str) or not isinstance(where, str):
        return
    for target in redirect_targets(command):
        try:
            # The directory of the call is mapped to one of ours already.
            yield recorded.path(target) if target.startswith("/") else normalize(f"{where}/{target}")
        except (OutsideRoot, OSError, ValueError):
            continue


class _Unprepared(Exception):
    """Raised if the files before a call cannot be set up."""


def _known(held: Text, recorded: Text, *, is_read: bool, may_be_absent: bool) -> Text:
    """Return the recorded contents of a file, unless its current contents would have been recorded in the same way."""
    if recorded is UNKNOWN:
        # A call that succeeds on a file shows that it exists, so something has created it; a failure may mean the
        # opposite.
        return UNKNOWN if held is None and not may_be_absent else held
    if is_same(held, recorded):
        return held
    # A recorded read does not always show whether the last line ends with a line break.
    is_unended = is_read and isinstance(recorded, str) and recorded != "" and is_same(held, recorded + "\n")
    return held if is_unended else recorded
