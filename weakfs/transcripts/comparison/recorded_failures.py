"""Calls that failed in a recording and are not run: they are recorded as failed, with the recorded text."""

from __future__ import annotations

import attrs

from weakfs.messages import clip, one_line
from weakfs.session import Session
from weakfs.tools.calls.call_json import recorded
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.slices import ToolCall
from weakfs.transcripts import TranscriptCall
from weakfs.transcripts.json_lines import fields_of

RECORDED_FAILURE = "recorded_failure"


@attrs.frozen(kw_only=True)
class RecordedFailure(Receipt):
    """The receipt of a call that was not run; `text` is its recorded answer."""

    text: str = ""


def failure_text(call: TranscriptCall) -> str:
    """Return the recorded text of a call that failed."""
    beside = call.result if isinstance(call.result, str) else fields_of(call.result).get("stderr")
    return call.recorded or (beside if isinstance(beside, str) else "")


def record_failure(session: Session, call: TranscriptCall) -> ToolResult[Receipt]:
    """Record a call that failed in the recording, under its recorded tool name, and return its answer."""
    text = failure_text(call)
    summary = summarize(text.strip() or "it failed; the recording does not say why")
    receipt = RecordedFailure(status="error", error_code=RECORDED_FAILURE, summary_text=summary, text=text)
    call_id = session.next_id("call") if call.call_id is None else one_line(call.call_id)
    started_at, ended_at = session.now(), session.now()
    event = ToolCall(
        call_id,
        one_line(clip(call.tool, 100)),
        recorded(call.arguments),
        recorded(receipt),
        receipt.status,
        receipt.error_code,
        summary,
        None,
        started_at,
        ended_at,
        None,
        None,
    )
    session.dispatch(event, cause=call_id)
    return answer(receipt, text)
