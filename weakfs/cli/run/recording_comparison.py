"""How `weakfs run` reports whether calls agree with the recording, and how that was checked."""

from __future__ import annotations

from typing import Final

import attrs

from weakfs.cli.formatting import shown
from weakfs.cli.output import Output
from weakfs.cli.performer import Outcome
from weakfs.tools.results import summarize
from weakfs.transcripts import TranscriptCall
from weakfs.transcripts.comparison import Verdict

# The label of a call, and its style.
_MARKS: Final = {
    "agreed": ("agreed     ", "green"),
    "differs": ("differs    ", "bold red"),
    "ours_succeeded": ("tolerant   ", "yellow"),
    "not_checked": ("not checked", "yellow"),
    "outside": ("outside    ", "yellow"),
}
_HOW: Final = {"exactly": "exactly", "rebuilt": "from rebuilt text", "not_at_all": "not at all"}


def show_comparison(out: Output, width: int, number: int, call: TranscriptCall, verdict: Verdict) -> None:
    """Print the line of one call, with reasons below it. Calls of tools without a counterpart are only counted."""
    if verdict.agreement == "no_counterpart":
        return
    head = f"{number:>{width}}  "
    text = f"  {shown(call.tool):<10}  {_target(call, verdict)}".rstrip()
    how = f" ({_HOW[verdict.checked]})" if verdict.checked != "not_at_all" else ""
    out.line(head, _MARKS[verdict.agreement], text + how)
    if verdict.detail:
        style = "red" if verdict.agreement == "differs" else ""
        out.below(width + len("  agreed       "), shown(verdict.detail) + _place(verdict), style)
    if verdict.result is None and verdict.recorded_error:
        error = summarize(verdict.recorded_error.strip())
        out.below(width + len("  agreed       "), f"it failed in the recording: {shown(error)}", "")


def comparison_fields(number: int | None, call: TranscriptCall, verdict: Verdict) -> dict[str, object]:
    """Return the JSON fields of one call: the recorded call, our answer, and how they agree."""
    result, difference = verdict.result, verdict.difference
    return {
        "type": "call",
        "number": number,
        "line": call.line,
        **file_field(call.file),
        "id": call.call_id,
        "tool": call.tool,
        "performed": verdict.tool if result is not None else None,
        "path": _path(verdict),
        "success": None if result is None else result.success,
        "status": None if result is None else result.status,
        "error_code": None if result is None else result.error_code,
        "summary": "" if result is None else result.summary_text,
        "recorded_success": verdict.recorded_success,
        "recorded_error": verdict.recorded_error,
        "agreement": verdict.agreement,
        "checked": verdict.checked,
        "detail": verdict.detail,
        "difference": None if difference is None else attrs.asdict(difference),
    }


def agreement_rows(outcome: Outcome) -> list[tuple[str, str]]:
    """Return the rows about the recording for the totals; none if no call was compared."""
    found = outcome.agreements
    if not found:
        return []
    checked = ", ".join(f"{outcome.checked[name]:,} {how}" for name, how in _HOW.items())
    rows = [
        ("agreed", f"{found['agreed']:,}"),
        ("differ", f"{found['differs']:,}"),
        ("succeeded here, failed in the recording", f"{found['ours_succeeded']:,}"),
        ("not checked", f"{found['not_checked']:,}"),
        ("checked", checked),
    ]
    if found["outside"]:
        rows.append(("outside the session's directory", f"{found['outside']:,}"))
    if outcome.passed:
        rows.append(("passed over", ", ".join(f"{number:,} {name}" for name, number in sorted(outcome.passed.items()))))
    return rows


def agreement_fields(outcome: Outcome) -> dict[str, object]:
    """Return the same totals as JSON fields."""
    if not outcome.agreements:
        return {}
    names = (*_MARKS, "no_counterpart")
    return {
        "agreement": {name: outcome.agreements[name] for name in names},
        "checked": {name: outcome.checked[name] for name in _HOW},
        "passed_over": dict(sorted(outcome.passed.items())),
    }


def file_field(file: str) -> dict[str, str]:
    """Return the field that names the transcript file; empty if there is only one file."""
    return {"transcript": file} if file else {}


def _path(verdict: Verdict) -> str | None:
    path = (verdict.arguments or {}).get("path")
    return path if isinstance(path, str) else None


def _target(call: TranscriptCall, verdict: Verdict) -> str:
    for value in (_path(verdict), *((call.arguments or {}).get(name) for name in ("file_path", "path", "pattern"))):
        if isinstance(value, str):
            return shown(value)
    return ""


def _place(verdict: Verdict) -> str:
    found = verdict.difference
    return "" if found is None else f", from byte {found.offset:,} in line {found.line:,}"
