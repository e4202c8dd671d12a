"""A recorded session: every call is run on the mounted workspace, and the result is saved, loaded and compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from examples.demo.report import Report, megabytes
from weakfs import HostMount, InMemoryFilesystem, Session, Toolset
from weakfs.transcripts import read_transcript

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
WORKSPACE = FIXTURES / "workspaces" / "shop"
TRANSCRIPT = FIXTURES / "transcripts" / "shop.jsonl"
EXPECTED = FIXTURES / "transcripts" / "shop.expected.json"


class Expected(TypedDict):
    """How the session ends on a real directory: written by the program that recorded it, without weakfs."""

    failures: dict[str, str]
    directories: list[str]
    links: dict[str, str]
    executables: list[str]
    sha256: dict[str, str]


def mounted() -> tuple[Session, InMemoryFilesystem]:
    """Return a new session with the workspace mounted in it."""
    session = Session()
    return session, InMemoryFilesystem(session, mounts=[HostMount(WORKSPACE)])


def perform(session: Session, files: InMemoryFilesystem, transcript: Path) -> Iterator[tuple[str, bool, bool]]:
    """Make each call of a transcript; yield its id, whether it succeeded, and whether it changed the files."""
    toolset = Toolset(session, files)
    for call in read_transcript(transcript).calls:
        before = files.tree().fingerprint
        result = toolset.call(call.tool, call.arguments or {}, call_id=call.call_id)
        yield call.call_id or "", result.success, files.tree().fingerprint != before


def one_session(report: Report, file: Path) -> None:
    """Mount, run, save, load, and prove that nothing was lost."""
    expected: Expected = json.loads(EXPECTED.read_bytes())
    with report.step("mount the workspace") as step:
        session, files = mounted()
        start = session.snapshot("start")
        before = files.tree().fingerprint
        step.result = f"{files.statistics().file_count} files"
    with report.step("run the recorded calls") as step:
        calls = list(perform(session, files, TRANSCRIPT))
        failed = {call_id for call_id, success, _ in calls if not success}
        step.result = f"{len(calls)} calls, {len(failed)} of them fail and are rolled back"
    report.prove("the calls that fail are those that fail on a real directory", failed, set(expected["failures"]))
    report.prove(
        "a call that fails leaves no trace in the files",
        [call_id for call_id, success, changed in calls if changed and not success],
        [],
    )
    report.prove("every file, link and directory ends as on a real directory", ending(files), expected_ending(expected))

    end = files.tree().fingerprint
    with report.step("save") as step:
        saved = session.save(file)
        step.result = f"{saved.records} records, {megabytes(saved.size_bytes)}"
    with report.step("load") as step:
        loaded = Session.load(file)
        step.result = f"session {loaded.session_id:.12}"
    again = InMemoryFilesystem(loaded)
    report.prove("the loaded files have the same digest", again.tree().digest, files.tree().digest)
    report.prove("and the same fingerprint: modes and empty directories too", again.tree().fingerprint, end)
    last = loaded.records[-1].seq
    with report.step("roll back to the start"):
        loaded.rollback(start.tag or start)
    report.prove("everything is as it was mounted", again.tree().fingerprint, before)
    with report.step("roll the rollback back"):
        loaded.rollback(last)
    report.prove("everything is as it was saved", again.tree().fingerprint, end)


def all_forms(report: Report) -> None:
    """Run the session in each format in which it is recorded: the same calls must produce the same files."""
    endings: dict[str, str] = {}
    for transcript in sorted(TRANSCRIPT.parent.glob("shop*.jsonl")):
        with report.step(transcript.name) as step:
            session, files = mounted()
            calls = list(perform(session, files, transcript))
            endings[transcript.name] = files.tree().fingerprint
            step.result = f"{len(calls)} calls, ends at {files.tree().digest[:12]}"
    report.prove("all of them end with the same files", len(set(endings.values())), 1)


def ending(files: InMemoryFilesystem) -> dict[str, object]:
    """Describe every entry in the recording's terms."""
    found: dict[str, object] = {}
    for entry in files.walk():
        name, stat = entry.path[1:], files.stat(entry.path)
        if stat.is_directory:
            found[name] = "directory"
        elif stat.target is not None:
            found[name] = f"link to {stat.target}"
        else:
            content = files.read_bytes(entry.path).content
            found[name] = hashlib.sha256(content).hexdigest(), bool(stat.mode & 0o100)
    return found


def expected_ending(expected: Expected) -> dict[str, object]:
    """Return the same description from the recording's expectations."""
    found: dict[str, object] = dict.fromkeys(expected["directories"], "directory")
    found |= {name: f"link to {target}" for name, target in expected["links"].items()}
    found |= {name: (digest, name in expected["executables"]) for name, digest in expected["sha256"].items()}
    return found
