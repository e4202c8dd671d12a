"""The recorded session in the small project `shop`: every call is repeated, with the same failures and result."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from weakfs import Session, Toolset
from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.tools import ToolCalls
from weakfs.transcripts import read_transcript

FIXTURES = Path(__file__).parents[2] / "fixtures"
EXPECTED: dict[str, Any] = json.loads((FIXTURES / "transcripts" / "shop.expected.json").read_bytes())

# What the recording reports as failures, and what our receipts say about them.
RECEIPTS = {
    "link_as_path": ("forbidden", "path_forbidden"),
    "unknown_tool": ("error", "unknown_tool"),
    "wrong_argument_type": ("error", "invalid_arguments"),
    "old_string_not_found": ("not_found", "edit_target_not_found"),
    "missing_file": ("not_found", "not_found"),
    "climbs_out": ("forbidden", "path_forbidden"),
    "already_exists": ("conflict", "already_exists"),
    "ambiguous_old_string": ("ambiguous", "ambiguous_matches"),
    "lookbehind_in_pattern": ("invalid_regex", "invalid_regex"),
    "binary_file": ("error", "not_utf8"),
    "missing_argument": ("error", "invalid_arguments"),
    "empty_old_string": ("error", "invalid_input_empty_old_string"),
    "directory_not_empty": ("error", "directory_not_empty"),
    "move_into_itself": ("error", "invalid_input"),
    "directory_over_file": ("conflict", "already_exists"),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    workspace = tmp_path_factory.mktemp("shop") / "shop"
    shutil.copytree(FIXTURES / EXPECTED["workspace"], workspace, symlinks=True)
    session = Session(session_id="shop")
    toolset = Toolset(session, InMemoryFilesystem(session, mounts=[HostMount(str(workspace))]))
    for call in read_transcript(FIXTURES / "transcripts" / "shop.jsonl").calls:
        assert call.arguments is not None
        before = toolset.filesystem.tree()
        result = toolset.call(call.tool, call.arguments, call_id=call.call_id)
        assert result.success or toolset.filesystem.tree() is before
    return session


def test_the_same_calls_fail_for_the_same_reasons(session: Session) -> None:
    calls = session[ToolCalls].all()

    failed = {call.call_id: (call.status, call.error_code) for call in calls if call.status != "ok"}

    assert len(calls) == EXPECTED["calls"]
    assert failed == {call_id: RECEIPTS[why] for call_id, why in EXPECTED["failures"].items()}


def test_the_files_are_those_of_the_recording(session: Session) -> None:
    fs = InMemoryFilesystem(session)
    entries = list(fs.walk())

    found = {e.path[1:]: hashlib.sha256(fs.read_bytes(e.path).content).hexdigest() for e in entries if e.is_file}

    assert found == EXPECTED["sha256"]
    assert sorted(e.path[1:] for e in entries if e.is_directory) == EXPECTED["directories"]
    assert {e.path[1:]: fs.readlink(e.path) for e in entries if e.is_symlink} == EXPECTED["links"]
    executable = [e.path[1:] for e in entries if e.is_file and fs.stat(e.path).mode & 0o100]
    assert sorted(executable) == EXPECTED["executables"]


def test_the_answers_contain_the_texts_of_the_recorded_ones(session: Session) -> None:
    """The recorded tools differ from ours, but the texts of files in their answers are the same."""
    recorded = {c.call_id: c for c in read_transcript(FIXTURES / "transcripts" / "shop.anthropic.jsonl").calls}
    calls = {call.call_id: call for call in session[ToolCalls].all()}
    compared = 0

    for call_id, call in calls.items():
        if call.tool == "read_file" and call.status == "ok":
            receipt: Any = call.read_receipt()
            assert receipt["content"] == recorded[call_id].recorded
            compared += 1
        assert (call.status != "ok") == recorded[call_id].recorded_error

    assert compared > 15


def test_every_record_of_the_session_names_its_call(session: Session) -> None:
    calls = session[ToolCalls].all()
    made = {record.cause for record in session.records}

    assert made == {None, *(call.call_id for call in calls)}
    for call in calls:
        if call.first_seq is not None and call.last_seq is not None:
            causes = {record.cause for record in session.records[call.first_seq - 1 : call.last_seq]}
            assert causes == {call.call_id}


def test_the_file_before_and_after_a_call_can_be_read_from_history(session: Session) -> None:
    (call,) = session[ToolCalls].where(lambda one: one.call_id == "call_102")
    assert call.first_seq is not None
    assert call.last_seq is not None

    before = InMemoryFilesystem(session.at(call.first_seq - 1)).read("/pyproject.toml").content
    after = InMemoryFilesystem(session.at(call.last_seq)).read("/pyproject.toml").content

    assert 'version = "0.4.2"' in before
    assert after == before.replace('version = "0.4.2"', 'version = "0.5.0"')
