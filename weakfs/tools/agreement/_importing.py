"""Performing a recorded call by our tools in the world as it was recorded, and comparing what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import attrs
from attrs import define, field, frozen

from weakfs.filesystem import Filesystem
from weakfs.session import Session
from weakfs.tools.agreement import _claude_code, _codex
from weakfs.tools.agreement._dialects import DIALECT_TOOLS, ChangeReceipt
from weakfs.tools.agreement._recorded import OutsideRoot, Recorded
from weakfs.tools.agreement._steps import NoCounterpart, NotPerformed, Step, Texts
from weakfs.tools.agreement._texts import UNKNOWN, Difference, Text, as_programs_tell, first_difference, is_same
from weakfs.tools.agreement._world import World
from weakfs.tools.handlers import ReadFileReceipt
from weakfs.tools.results import ToolResult
from weakfs.tools.tool import Tool
from weakfs.tools.toolset import Toolset
from weakfs.tools.transcripts import TranscriptCall

Agreement = Literal["agreed", "differs", "ours_succeeded", "not_checked", "outside", "no_counterpart"]
Checked = Literal["exactly", "rebuilt", "not_at_all"]

_PROGRAMS: Mapping[str, Callable[[Recorded], Step]] = {
    "claude-code": _claude_code.step_of,
    "codex": _codex.step_of,
}


@frozen
class Verdict:
    """What came of one recorded call.

    `tool` and `arguments` are the call that we made, `result` our answer to it: None where none was made.
    `recorded_success` is None where the recording does not say. `agreement` is "agreed", "differs", "ours_succeeded"
    where theirs failed, "not_checked", "outside" the session's directory, or "no_counterpart". `checked` says how:
    "exactly" as recorded with the call, from "rebuilt" text, or "not_at_all"; `detail` and `difference` say why.
    """

    agreement: Agreement
    checked: Checked = "not_at_all"
    detail: str = ""
    difference: Difference | None = None
    recorded_success: bool | None = None
    tool: str | None = None
    arguments: dict[str, object] | None = field(default=None, repr=False)
    result: ToolResult[object] | None = field(default=None, repr=False)


@define
class Importer:
    """Performs recorded calls one after another in one session, each in the world as it was recorded."""

    toolset: Toolset
    world: World

    @classmethod
    def over(cls, session: Session, files: Filesystem, tools: tuple[Tool, ...]) -> Importer:
        """Make an importer that works on `files` with `tools`, of which some get the ways of other programs."""
        own = {tool.name for tool in DIALECT_TOOLS}
        chosen = (*(tool for tool in tools if tool.name not in own), *DIALECT_TOOLS)
        toolset = Toolset(session, files, tools=chosen, refuse_stale_writes=False)
        return cls(toolset, World(session, files))

    def perform(self, call: TranscriptCall) -> Verdict:
        """Perform one call and compare; a fault of a program is raised, and nothing else."""
        assert call.source is not None, "only calls of a program's own files are imported"
        recorded = Recorded(call, call.source)
        try:
            step = _PROGRAMS[call.source.program](recorded)
            if step.tool not in {tool.name for tool in self.toolset.tools}:
                return Verdict("no_counterpart", detail=f"{step.tool} is not performed", tool=step.tool)
        except NotPerformed as error:
            return self._passed(error)
        except (ValueError, OSError) as error:
            return Verdict("not_checked", detail=str(error))
        try:
            return self._perform(step, call.call_id)
        except _Unprepared as error:
            self.world.lose(step.before)
            return self._verdict(step, "not_checked", detail=str(error))

    def _passed(self, error: NotPerformed) -> Verdict:
        self.world.settle(error.after)
        if isinstance(error, OutsideRoot):
            return Verdict("outside", detail=str(error))
        return Verdict("no_counterpart" if isinstance(error, NoCounterpart) else "not_checked", detail=str(error))

    def _perform(self, step: Step, call_id: str | None) -> Verdict:
        if step.needs is not None and not self.world.has(step.needs):
            raise _Unprepared("what it looked at is not recorded")
        before = self._before(step)
        wanted, checked = self._wanted(step, before)
        if checked == "not_at_all" and not step.unchecked:
            verdict = self._perform_on_skeletons(step, before, call_id) if step.succeeded else None
            if verdict is not None:
                return verdict
            if step.tool != "read_file":
                self.world.settle(wanted)
            return self._verdict(step, "not_checked", detail="what the file held before is not recorded")
        self._prepare(step, before, wanted)
        arguments = step.arguments
        if step.succeeded and step.arguments_for is not None:
            arguments = step.arguments_for(before)
        try:
            result = self.toolset.call(step.tool, arguments, call_id=call_id)
        except Exception:
            self.world.settle(wanted)
            raise
        verdict = self._compared(step, result, arguments, wanted, checked)
        if step.succeeded is None or (step.is_silent and result.success):
            # Nothing says better what the files hold now than what we did.
            wanted = {path: text for path, text in wanted.items() if text is not UNKNOWN and result.success}
        self.world.settle(wanted)
        return verdict

    def _before(self, step: Step) -> Texts:
        """Give what the files held that a call is about, from its own recording or from earlier ones."""
        is_read, may_be_absent = step.shown is not None, step.succeeded is False
        before: dict[str, Text] = {}
        for path, told in step.before.items():
            held = self.world.text(path)
            if step.part is not None and held is UNKNOWN:
                self.world.learn(path, step.part)
                held = self.world.text(path)
            before[path] = _known(held, told, is_read=is_read, may_be_absent=may_be_absent)
        return before

    def _prepare(self, step: Step, before: Texts, wanted: Texts) -> None:
        """Make the files what they were before a call; `_Unprepared` if that cannot be."""
        for path, text in before.items():
            if step.before[path] is UNKNOWN or self.world.text(path) == text:
                continue
            if not self.world.put(path, text):
                raise _Unprepared(f"{path!r} cannot be made what it was: {self.world.refusal}")
        for path, text in wanted.items():
            if step.succeeded and isinstance(text, str) and not self.world.make_way(path):
                raise _Unprepared(f"{path!r} cannot be made what it was: {self.world.refusal}")

    def _perform_on_skeletons(self, step: Step, before: Texts, call_id: str | None) -> Verdict | None:
        """Perform a change on what its own recording shows of the files; None where that is not enough for it."""
        found = {path: step.skeletons[path] for path in before if path in step.skeletons}
        if not found:
            return None
        shown: dict[str, Text] = {**before, **{path: one.text for path, one in found.items()}}
        wanted = step.after(shown)
        if UNKNOWN in wanted.values() or UNKNOWN in shown.values():
            return None
        earlier = {path: self.world.held(path) for path in (*shown, *wanted)}
        verdict = None
        if all(self.world.put(path, text) for path, text in shown.items()):
            arguments = step.arguments if step.arguments_for is None else step.arguments_for(shown)
            result = self.toolset.call(step.tool, arguments, call_id=call_id)
            verdict = self._compared(step, result, arguments, wanted, "rebuilt")
        if verdict is None or verdict.agreement != "agreed" or not all(one.is_gapless for one in found.values()):
            # Lines that nobody wrote are not left behind.
            self.world.settle({path: text for path, text in earlier.items() if text is not UNKNOWN})
        # More of the files than is shown may have been there.
        self.world.settle(step.after(step.before))
        if verdict is None or verdict.agreement != "agreed":
            return None
        return attrs.evolve(verdict, detail="from the lines that the recording of the change shows")

    def _wanted(self, step: Step, before: Texts) -> tuple[Texts, Checked]:
        """Give what the files are to hold afterwards, and how that is known."""
        if step.succeeded is False:
            is_known = UNKNOWN not in before.values()
            told = UNKNOWN not in step.before.values()
            return before, "exactly" if told else "rebuilt" if is_known else "not_at_all"
        wanted = step.after(before)
        if UNKNOWN not in step.after(step.before).values() and step.is_told:
            return wanted, "exactly"
        if UNKNOWN not in wanted.values():
            return wanted, "rebuilt"
        # Where the recording says nothing of the files afterwards, at least the answer can be compared.
        return wanted, "rebuilt" if step.is_silent and UNKNOWN not in before.values() else "not_at_all"

    def _compared(
        self, step: Step, result: ToolResult[object], arguments: dict[str, object], wanted: Texts, checked: Checked
    ) -> Verdict:
        def verdict(agreement: Agreement, detail: str = "", difference: Difference | None = None) -> Verdict:
            how = checked if agreement != "not_checked" else "not_at_all"
            return Verdict(agreement, how, detail, difference, step.succeeded, step.tool, arguments, result)

        if step.unchecked or step.succeeded is None:
            return verdict("not_checked", step.unchecked or "no answer is recorded")
        is_stale = "what the file held before is not what is known of it"
        if not step.succeeded and result.success:
            was_found = not isinstance(result.value, ChangeReceipt) or result.value.how == "exact"
            if checked == "rebuilt" and was_found:
                return verdict("not_checked", is_stale)
            return verdict("ours_succeeded", f"theirs failed, ours succeeded: {result.summary_text}")
        if step.succeeded and not result.success:
            if UNKNOWN in wanted.values():
                return verdict("not_checked", is_stale)
            return verdict("differs", f"theirs succeeded, ours failed: {result.summary_text}")
        for path, text in wanted.items():
            found = self.world.held(path)
            if text is not UNKNOWN and found != text:
                return verdict("differs", _told(path, found, text), first_difference(path, found, text))
        return self._compared_reading(step, result, checked, verdict)

    def _compared_reading(
        self, step: Step, result: ToolResult[object], checked: Checked, verdict: Callable[..., Verdict]
    ) -> Verdict:
        if step.shown is None or not isinstance(result.value, ReadFileReceipt) or not result.success:
            return verdict("agreed")
        content = result.value.content
        ours = as_programs_tell(content) if isinstance(content, str) else ""
        theirs = as_programs_tell(step.shown)
        # Whether the last line's end was read is told differently by each version.
        if ours.removesuffix("\n") == theirs.removesuffix("\n"):
            return verdict("agreed")
        path = next(iter(step.before))
        if checked == "rebuilt":
            self.world.lose([path])
            if step.part is not None:
                self.world.learn(path, step.part)
            return verdict("not_checked", "the file was changed by something that is not recorded")
        return verdict("differs", "other text was read", first_difference(path, ours, theirs))

    def _verdict(self, step: Step, agreement: Agreement, detail: str) -> Verdict:
        return Verdict(agreement, "not_at_all", detail, None, step.succeeded, step.tool, step.arguments)


class _Unprepared(Exception):
    """The world cannot be made what it was before a call."""


def _known(held: Text, told: Text, *, is_read: bool, may_be_absent: bool) -> Text:
    """Give what a file held: as it is told, unless what is there may be told like that."""
    if told is UNKNOWN:
        # A call that works on a file finds one, so that something made it meanwhile; a failure may be for want of it.
        return UNKNOWN if held is None and not may_be_absent else held
    if is_same(held, told):
        return held
    # Whether the last line ends is not always told of what was read.
    is_unended = is_read and isinstance(told, str) and told != "" and is_same(held, told + "\n")
    return held if is_unended else told


def _told(path: str, ours: Text, theirs: Text) -> str:
    if theirs is None:
        return f"{path} is there and was not"
    return f"{path} is not there" if ours is None or ours is UNKNOWN else f"{path} holds other text"
