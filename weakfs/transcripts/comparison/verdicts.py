"""Verdicts: whether our answer to a recorded call, and the files after it, agree with the recording."""

from __future__ import annotations

from typing import Literal

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.tools.handlers import ReadFileReceipt
from weakfs.tools.results import ToolResult
from weakfs.transcripts.comparison.file_states import FileStates
from weakfs.transcripts.programs.dialects import ChangeReceipt
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Difference, Text, as_programs_show, first_difference
from weakfs.transcripts.reconstruction.recorded_calls import Step, Texts

Agreement = Literal["agreed", "differs", "ours_succeeded", "not_checked", "outside", "no_counterpart"]
Checked = Literal["exactly", "rebuilt", "not_at_all"]

_STALE = "the recorded contents of the file before the call differ from the known ones"
_DOUBTFUL = "a program that ran since the file was last seen may have changed it"


@frozen
class Verdict:
    """The result of one recorded call.

    `tool` and `arguments` are the call that we made and `result` is our answer to it; `None` if we made none.
    `recorded_success` is `None` if the recording does not say; `recorded_error` is the recorded text of a failure.
    `agreement` is "agreed", "differs", "ours_succeeded" (theirs failed), "not_checked", "outside" the session's
    directory, or "no_counterpart". `checked` says how: "exactly" as recorded with the call, from "rebuilt" text, or
    "not_at_all"; `detail` and `difference` say why.
    """

    agreement: Agreement
    checked: Checked = "not_at_all"
    detail: str = ""
    difference: Difference | None = None
    recorded_success: bool | None = None
    recorded_error: str | None = field(default=None, repr=False)
    tool: str | None = None
    arguments: dict[str, object] | None = field(default=None, repr=False)
    result: ToolResult[object] | None = field(default=None, repr=False)


@define
class Comparison:
    """Compares the result of a call that was run with its recording.

    `wanted` is the expected contents of the files after the call, and `checked` says how they are known.
    """

    world: FileStates
    step: Step
    result: ToolResult[object]
    arguments: dict[str, object]
    wanted: Texts
    checked: Checked

    def verdict(self) -> Verdict:
        """Return the verdict, and discard what is known about files whose contents turn out to be different."""
        step, result = self.step, self.result
        if step.unchecked or step.succeeded is None:
            return self._verdict("not_checked", step.unchecked or "no answer is recorded")
        if not step.succeeded and result.success:
            was_found = not isinstance(result.value, ChangeReceipt) or result.value.how == "exact"
            if self.checked == "rebuilt" and was_found:
                return self._verdict("not_checked", _STALE)
            return self._disagreeing("ours_succeeded", f"theirs failed, ours succeeded: {result.summary_text}")
        if step.succeeded and not result.success:
            if UNKNOWN in self.wanted.values():
                return self._verdict("not_checked", _STALE)
            return self._disagreeing("differs", f"theirs succeeded, ours failed: {result.summary_text}")
        for path, text in self.wanted.items():
            found = self.world.held(path)
            if text is not UNKNOWN and found != text:
                return self._disagreeing("differs", _changed(path, found, text), first_difference(path, found, text))
        return self._reading()

    def _reading(self) -> Verdict:
        step, value = self.step, self.result.value
        if step.shown is None or not isinstance(value, ReadFileReceipt) or not self.result.success:
            return self._verdict("agreed")
        ours = as_programs_show(value.content) if isinstance(value.content, str) else ""
        theirs = as_programs_show(step.shown)
        # Versions differ in whether they show the end of the last line.
        if ours.removesuffix("\n") == theirs.removesuffix("\n"):
            return self._verdict("agreed")
        path = next(iter(step.before))
        if self.checked == "rebuilt":
            self.world.lose([path])
            if step.part is not None:
                self.world.learn(path, step.part)
            return self._verdict("not_checked", "the file was changed by something that is not recorded")
        return self._verdict("differs", "other text was read", first_difference(path, ours, theirs))

    def _disagreeing(self, agreement: Agreement, detail: str, difference: Difference | None = None) -> Verdict:
        """Return the verdict on a disagreement: "not_checked" if a program may have changed a file before."""
        if self.checked == "rebuilt" and any(self.world.is_doubtful(path) for path in self.step.before):
            return self._verdict("not_checked", _DOUBTFUL)
        return self._verdict(agreement, detail, difference)

    def _verdict(self, agreement: Agreement, detail: str = "", difference: Difference | None = None) -> Verdict:
        return Verdict(
            agreement,
            self.checked if agreement != "not_checked" else "not_at_all",
            detail,
            difference,
            self.step.succeeded,
            None,
            self.step.tool,
            self.arguments,
            self.result,
        )


def _changed(path: str, ours: Text, theirs: Text) -> str:
    if theirs is None:
        return f"{path} exists, but not in the recording"
    return f"{path} does not exist" if ours is None or ours is UNKNOWN else f"{path} has different text"
