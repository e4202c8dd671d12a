"""A real directory under git, changed in place: failed calls leave no trace, and everything can be undone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import attrs

from examples.demo.recorded import TRANSCRIPT, WORKSPACE
from examples.demo.report import Report
from examples.demo.witness import Repository, walked
from weakfs import HostFilesystem, Limits, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.processes import Bubblewrap
from weakfs.reducers import FileSpliced, FileWritten
from weakfs.tools import ToolCalls, require_filesystem
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.transcripts import TranscriptCall, read_transcript

# Calls that fail in the middle, after changing many files.
UNFINISHED = Path(__file__).with_name("unfinished.jsonl")

# The size limit of the directory; one of the commands writes more.
LIMITS = Limits(max_total_size=8_000_000)


@attrs.frozen
class RenameWord:
    """The parameters of `rename_word`."""

    old: str
    new: str


def rename_word(params: RenameWord, *, context: ToolContext) -> ToolResult[int]:
    """Replace a word in every file; a file that is not text makes the call fail after others are already changed."""
    files, changed = require_filesystem(context), 0
    for match in files.glob("*", sort="path"):
        if not match.is_file:
            continue
        text = files.read(match.path, limit=-1).content
        if params.old in text:
            files.write(match.path, text.replace(params.old, params.new))
            changed += 1
    return ToolResult(f"{changed} files changed", changed)


@attrs.frozen
class Seen:
    """The state of a directory according to git, to a plain walk, and to weakfs."""

    git: str = attrs.field(repr=False)
    walk: str
    fingerprint: str


@attrs.frozen
class Witness:
    """Examines one directory whenever asked."""

    repository: Repository
    files: HostFilesystem

    def look(self) -> Seen:
        return Seen(self.repository.status(), walked(self.repository.directory), self.files.tree().fingerprint)


@attrs.frozen
class FailedCall:
    """A call that failed, and the directory before and after it."""

    tool: str
    call_id: str
    error_code: str
    before: Seen
    after: Seen


RENAME_WORD = Tool("rename_word", "Replace a word in every file.", RenameWord, rename_word)


def in_place(report: Report, scratch: Path, file: Path) -> None:
    """Run recorded calls on a real repository, prove that failures leave no trace, and undo everything."""
    directory, store = scratch / "shop", scratch / "store"
    with report.step("copy the workspace, commit it") as step:
        shutil.copytree(WORKSPACE, directory, symlinks=True)
        repository = Repository(directory)
        step.result = "one commit" if repository.exists else "git is not installed: only digests are compared"
    session = Session()
    files = HostFilesystem(directory, session=session, limits=LIMITS, store=store)
    witness = Witness(repository, files)
    beginning = witness.look()
    with report.step("take a snapshot") as step:
        session.snapshot("start")
        step.result = f"{files.statistics().file_count} files"
    with report.step("run the recorded calls in place") as step, report.bar("calls") as advance:
        calls = list(read_transcript(TRANSCRIPT).calls)
        failed = perform(Toolset(session, files), calls, witness, advance)
        step.result = f"{len(calls)} calls, {len(failed)} of them fail"
    prove_no_trace(report, failed)
    fail_in_the_middle(report, session, files, witness)
    with report.step("save") as step:
        session.save(file)
        step.result = f"{len(session.records)} records"
    with report.step("another program changes files and commits"):
        shutil.rmtree(directory / "src")
        (directory / "notes.txt").write_text("the session was not told about this\n")
        repository.commit("not by us")
    with report.step("load in another process, roll back"):
        loaded = Session.load(file)
        later = HostFilesystem(directory, session=loaded, limits=LIMITS, store=store)
        loaded.rollback("start")
    end = Witness(repository, later).look()
    report.prove("a walk of the disk finds every byte, mode and time as at the beginning", end.walk, beginning.walk)
    if repository.exists:
        report.prove("git status and log show what they showed then", end.git, beginning.git)
    report.prove("and the fingerprint is that of the beginning", end.fingerprint, beginning.fingerprint)


def fail_in_the_middle(report: Report, session: Session, files: HostFilesystem, witness: Witness) -> None:
    """Make calls that change many files and then fail; run commands only if a sandbox contains them."""
    calls = list(read_transcript(UNFINISHED).calls)
    problem = Bubblewrap().problem()
    if problem is not None:
        report.note(f"no commands are run: {problem}")
        calls = [call for call in calls if call.tool != "shell"]
    with report.step("calls that fail in the middle") as step:
        shell = shell_tool(ShellOptions(sandbox="required"))
        failed = perform(Toolset(session, files, tools=(RENAME_WORD, shell)), calls, witness, lambda: None)
        step.result = ", ".join(f"{call.tool}: {call.error_code}" for call in failed)
    renaming = session[ToolCalls].where(lambda call: call.tool == "rename_word")[0]
    events = session.records.since((renaming.first_seq or 0) - 1)
    changed = {record.event.path for record in events if isinstance(record.event, FileWritten | FileSpliced)}
    report.prove("the first had changed files when it failed", len(changed) > 20, True)
    report.prove("all of them fail", len(failed), len(calls))
    prove_no_trace(report, failed)


def perform(
    toolset: Toolset, calls: list[TranscriptCall], witness: Witness, advance: Callable[[], None]
) -> list[FailedCall]:
    """Make each call and examine the disk after it; return the failed calls with what they changed."""
    failed: list[FailedCall] = []
    before = witness.look()
    for call in calls:
        result = toolset.call(call.tool, call.arguments or {}, call_id=call.call_id)
        after = witness.look()
        if not result.success:
            failed.append(FailedCall(call.tool, str(call.call_id), str(result.error_code), before, after))
        before = after
        advance()
    return failed


def prove_no_trace(report: Report, failed: list[FailedCall]) -> None:
    """Prove that the disk is the same before and after each call that failed."""
    by_git = [call.call_id for call in failed if call.before.git != call.after.git]
    by_walk = [call.call_id for call in failed if call.before.walk != call.after.walk]
    by_fingerprint = [call.call_id for call in failed if call.before.fingerprint != call.after.fingerprint]
    report.prove("a walk of the disk finds no trace of the calls that fail", by_walk, [])
    if failed and failed[0].before.git:
        report.prove("git status says the same", by_git, [])
    report.prove("and the fingerprint is the same", by_fingerprint, [])
