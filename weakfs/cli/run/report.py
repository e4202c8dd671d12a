"""The output of `weakfs run`: lines for people, or JSON Lines for programs."""

from __future__ import annotations

from typing import Protocol

from weakfs.backends import HostFilesystem
from weakfs.class_decorators import define
from weakfs.cli.commands.host.snapshots import show_taken
from weakfs.cli.commands.sessions.diff import amounts, named, show_names
from weakfs.cli.formatting import counted, shown
from weakfs.cli.output import Output
from weakfs.cli.performer import CallListener, Outcome
from weakfs.cli.run.recording_comparison import (
    agreement_fields,
    agreement_rows,
    comparison_fields,
    file_field,
    show_comparison,
)
from weakfs.history.descriptions import target_of
from weakfs.reducers import MountReport, TreeDiff
from weakfs.session import SaveReport
from weakfs.snapshots import StoredSnapshot
from weakfs.tools import ToolResult
from weakfs.transcripts import Skipped, TranscriptCall
from weakfs.transcripts.comparison import Verdict

# The maximum number of excluded paths of a mount that are listed.
NAMED = 10


class Reporter(CallListener, Protocol):
    """A listener that is called for each event of a run."""

    def mounted(self, report: MountReport) -> None: ...
    def working(self, how: str, directory: str) -> None: ...
    def kept(self, files: HostFilesystem, snapshot: StoredSnapshot) -> None: ...
    def skipped(self, skipped: Skipped) -> None: ...
    def changes(self, found: TreeDiff) -> None: ...
    def committed(self, directory: str, found: TreeDiff) -> None: ...
    def not_committed(self, reason: str) -> None: ...
    def saved(self, report: SaveReport) -> None: ...
    def total(self, outcome: Outcome, changes: str, undo: str | None) -> None: ...


def reporter(out: Output, calls: int, *, as_json: bool) -> Reporter:
    """Return the reporter for people, or the one for programs."""
    return _JsonLines(out) if as_json else _Lines(out, len(str(calls)))


def _summary(call: TranscriptCall, result: ToolResult[object]) -> str:
    # The transcript reader knows why the arguments are unreadable; the tool only knows that they are missing.
    if call.problem is not None and result.error_code == "invalid_arguments":
        return call.problem
    return result.summary_text


@define
class _Lines:
    """A reporter that prints one line per call, with errors below it."""

    out: Output
    width: int

    def mounted(self, report: MountReport) -> None:
        what = f"{counted(report.file_count, 'file')}, {counted(report.total_size, 'byte')}"
        self.out.line(("mounted", "bold"), f" {shown(report.source)}: {what}")
        for path, reason in report.skipped[:NAMED]:
            self.out.line(("left out", "yellow"), f" {shown(path)}: {shown(reason)}")
        if len(report.skipped) > NAMED:
            self.out.line(("left out", "yellow"), f" {counted(len(report.skipped) - NAMED, 'more path')}")

    def working(self, how: str, directory: str) -> None:
        what = "changed in place" if how == "root" else "read in place; changes stay in the session"
        self.out.line((how, "bold"), f" {shown(directory)}: {what}")

    def kept(self, files: HostFilesystem, snapshot: StoredSnapshot) -> None:
        show_taken(self.out, files, snapshot, as_json=False)

    def skipped(self, skipped: Skipped) -> None:
        where = f"{shown(skipped.file)}, line" if skipped.file else "line"
        self.out.line((f"{where} {skipped.line}", "yellow"), f" {shown(skipped.reason)}")

    def called(self, number: int | None, call: TranscriptCall, result: ToolResult[object]) -> None:
        mark, style = ("ok    ", "green") if result.success else ("failed", "red")
        head = f"{number or '':>{self.width}}  "
        tool, target, summary = f"  {shown(call.tool):<10}  ", target_of(call.arguments), shown(result.summary_text)
        if not result.success:
            self.out.line(head, (mark, style), f"{tool}{target}".rstrip())
            self.below(f"{result.error_code}: {shown(_summary(call, result))}")
            return
        text = summary if target in summary else f"{target}: {summary}"
        if self.out.fits(head + mark + tool + text):
            self.out.line(head, (mark, style), f"{tool}{text}")
        else:
            self.out.line(head, (mark, style), tool.rstrip())
            self.below(text, style="")

    def compared(self, number: int | None, call: TranscriptCall, verdict: Verdict) -> None:
        if number is not None:
            show_comparison(self.out, self.width, number, call, verdict)
        elif verdict.agreement != "no_counterpart":
            mark = f"{verdict.agreement.replace('_', ' '):<11}"
            text = f"  {shown(call.tool):<10}  {target_of(call.arguments)}"
            self.out.line(" " * self.width + "  ", (mark, "yellow"), text.rstrip())
            if verdict.detail:
                self.out.below(self.width + len(mark) + len("    "), shown(verdict.detail), "")

    def broke(self, number: int | None, call: TranscriptCall, error: Exception) -> None:
        self.out.line(
            f"{number or '':>{self.width}}  ",
            ("broken", "bold red"),
            f"  {shown(call.tool)}  {target_of(call.arguments)}",
        )
        self.below(f"internal error in the tool, rolled back: {type(error).__name__}: {shown(str(error))}")

    def below(self, text: str, *, style: str = "red") -> None:
        self.out.below(self.width + len("  failed  "), text, style)

    def changes(self, found: TreeDiff) -> None:
        if found:
            self.out.line(("changes to the directory", "bold"))
            show_names(self.out, found)

    def committed(self, directory: str, found: TreeDiff) -> None:
        self.out.line(("committed", "bold"), f" to {shown(directory)}: {amounts(found)}")

    def not_committed(self, reason: str) -> None:
        self.out.line(("not committed", "yellow"), f": {reason}")

    def saved(self, report: SaveReport) -> None:
        what = f"{counted(report.size_bytes, 'byte')}, {counted(report.records, 'record')}"
        self.out.line(("saved", "bold"), f" {shown(report.path)}: {what}")
        for one in report.missing[:NAMED]:
            self.out.line(("missing", "yellow"), f" {one.kind} {shown(one.id)}: its content no longer exists")
        if len(report.missing) > NAMED:
            self.out.line(("missing", "yellow"), f" {counted(len(report.missing) - NAMED, 'more item')}")

    def total(self, outcome: Outcome, changes: str, undo: str | None) -> None:
        calls = sum(outcome.statuses.values())
        kinds = ", ".join(f"{number:,} {shown(status)}" for status, number in sorted(outcome.statuses.items()))
        rows = [("calls", f"{calls:,}" + (f" ({kinds})" if calls else "")), ("rolled back", f"{outcome.failed:,}")]
        rows += [("paths", changes), *agreement_rows(outcome)]
        if outcome.unread:
            rows.append(("not read", f"{outcome.unread:,}"))
        if undo is not None:
            rows.append(("to undo", undo))
        self.out.table("total", rows)


@define
class _JsonLines:
    """A reporter that prints one JSON object per line, each with its type."""

    out: Output

    def mounted(self, report: MountReport) -> None:
        self.out.record(
            type="mount",
            source=report.source,
            path=report.path,
            files=report.file_count,
            directories=report.directory_count,
            bytes=report.total_size,
            skipped=[{"path": path, "reason": reason} for path, reason in report.skipped],
        )

    def working(self, how: str, directory: str) -> None:
        self.out.record(type=how, path=directory)

    def kept(self, files: HostFilesystem, snapshot: StoredSnapshot) -> None:
        show_taken(self.out, files, snapshot, as_json=True)

    def skipped(self, skipped: Skipped) -> None:
        self.out.record(type="skipped", line=skipped.line, reason=skipped.reason, **file_field(skipped.file))

    def called(self, number: int | None, call: TranscriptCall, result: ToolResult[object]) -> None:
        self._call_ended(number, call, result.success, result.status, result.error_code, _summary(call, result))

    def compared(self, number: int | None, call: TranscriptCall, verdict: Verdict) -> None:
        self.out.record(**comparison_fields(number, call, verdict))

    def broke(self, number: int | None, call: TranscriptCall, error: Exception) -> None:
        self._call_ended(number, call, False, "broken", None, f"{type(error).__name__}: {error}")

    def _call_ended(
        self, number: int | None, call: TranscriptCall, success: bool, status: str, error_code: str | None, summary: str
    ) -> None:
        self.out.record(
            type="call",
            number=number,
            line=call.line,
            **file_field(call.file),
            id=call.call_id,
            tool=call.tool,
            success=success,
            status=status,
            error_code=error_code,
            summary=summary,
        )

    def changes(self, found: TreeDiff) -> None:
        for one in named(found):
            origin = {} if one.source is None else {"from": one.source}
            self.out.record(type="change", change=one.change, path=one.path, **origin)

    def committed(self, directory: str, found: TreeDiff) -> None:
        self.out.record(type="committed", path=directory, changes=amounts(found))

    def not_committed(self, reason: str) -> None:
        self.out.record(type="not_committed", reason=reason)

    def saved(self, report: SaveReport) -> None:
        self.out.record(
            type="saved",
            path=report.path,
            bytes=report.size_bytes,
            records=report.records,
            snapshots=report.snapshots,
            blobs=report.blobs,
            missing=[{"kind": one.kind, "id": one.id} for one in report.missing],
        )

    def total(self, outcome: Outcome, changes: str, undo: str | None) -> None:
        self.out.record(
            type="total",
            calls=sum(outcome.statuses.values()),
            failed=outcome.failed,
            statuses=dict(sorted(outcome.statuses.items())),
            not_read=outcome.unread,
            changes=changes,
            **agreement_fields(outcome),
            **({} if undo is None else {"undo": undo}),
        )
